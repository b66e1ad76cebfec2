"""A Triton kernel that updates all weights of Adam at once.

Weights and gradients lie anywhere, the state of all weights in two vectors. The weights are divided into
chunks of BLOCK numbers, one program each: the work is even whatever the sizes of the tensors.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 2048
_WARPS = 4


class AdamKernel:
    """The kernel for some weights, and the table of their chunks."""

    def __init__(self, weights: Sequence[Tensor], states: Sequence[Tensor]) -> None:
        """Divide the weights into chunks.

        Args:
            states: views of a vector, at the places where both vectors hold the state of each weight.
        """
        self._weights = tuple(weight.detach() for weight in weights)
        chunks = [
            (tensor, start, state.storage_offset() + start, weight.numel() - start)
            for tensor, (weight, state) in enumerate(zip(weights, states, strict=True))
            for start in range(0, weight.numel(), _BLOCK)
        ]
        self._programs = len(chunks)
        # Made before a step is captured: a captured step may not copy from the host.
        self._chunks = torch.tensor(chunks, dtype=torch.int64).to(weights[0].device)

    def __call__(
        self,
        gradients: Sequence[Tensor],
        exp_avg: Tensor,
        exp_avg_sq: Tensor,
        step: Tensor,
        learning_rate: Tensor,
        betas: tuple[float, float],
        eps: float,
        weight_decay: float,
    ) -> None:
        """Update the weights and the state.

        Args:
            step: number of this step, counted from 1, in its first element.
        """
        with torch.cuda.device(exp_avg.device):
            adam_kernel[(self._programs,)](
                self._weights, tuple(gradients), exp_avg, exp_avg_sq, self._chunks, step,
                learning_rate, *betas, eps, weight_decay,
                TENSORS=len(self._weights), BLOCK=_BLOCK, num_warps=_WARPS,
            )  # fmt: skip


@triton.jit
def find_pointer(tensors, number, TENSORS: tl.constexpr):
    """Return tensors[number]. A tuple has no index at run time, so that all its pointers are compared."""
    address = tensors[0].to(tl.int64)
    for i in tl.static_range(1, TENSORS):
        address = tl.where(number == i, tensors[i].to(tl.int64), address)
    # Checked by the caller: with 16 bytes known, four numbers are loaded at once.
    return tl.multiple_of(address.to(tl.pointer_type(tl.float32)), 16)


@triton.jit
def update(
    weight, gradient, exp_avg, exp_avg_sq, inside, lr, correction1, correction2,
    beta1: tl.constexpr, beta2: tl.constexpr, eps: tl.constexpr, weight_decay: tl.constexpr,
):  # fmt: skip
    """Algorithm 1 of Kingma and Ba 2015; decay as in algorithm 2 of Loshchilov and Hutter 2019."""
    g = tl.load(gradient, mask=inside)
    m = beta1 * tl.load(exp_avg, mask=inside) + (1.0 - beta1) * g
    v = beta2 * tl.load(exp_avg_sq, mask=inside) + (1.0 - beta2) * g * g
    w = tl.load(weight, mask=inside)
    w -= lr * weight_decay * w
    w -= lr / correction1 * m / (tl.sqrt(v) / tl.sqrt(correction2) + eps)
    tl.store(exp_avg, m, mask=inside)
    tl.store(exp_avg_sq, v, mask=inside)
    tl.store(weight, w, mask=inside)


@triton.jit
def adam_kernel(
    weights, gradients, exp_avg, exp_avg_sq, chunks, step, learning_rate,
    beta1: tl.constexpr, beta2: tl.constexpr, eps: tl.constexpr, weight_decay: tl.constexpr,
    TENSORS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Update one chunk, (tensor, start in it, start in the state, numbers left) of `chunks` (P, 4)."""
    chunks += tl.program_id(0) * 4
    number = tl.load(chunks)
    start = tl.multiple_of(tl.load(chunks + 1), 16)
    place = tl.multiple_of(tl.load(chunks + 2), 16)
    left = tl.load(chunks + 3)
    lanes = tl.arange(0, BLOCK)
    weight = find_pointer(weights, number, TENSORS) + start + lanes
    gradient = find_pointer(gradients, number, TENSORS) + start + lanes
    exp_avg += place + lanes
    exp_avg_sq += place + lanes
    lr = tl.load(learning_rate)
    # 1 - beta^t loses most of its digits in float32 where t is small.
    t = tl.load(step).to(tl.float64)
    correction1 = (1.0 - tl.exp(t * tl.log(tl.full((), beta1, tl.float64)))).to(tl.float32)
    correction2 = (1.0 - tl.exp(t * tl.log(tl.full((), beta2, tl.float64)))).to(tl.float32)
    if left >= BLOCK:  # without a mask, so that four numbers are loaded at once
        update(
            weight, gradient, exp_avg, exp_avg_sq, None, lr, correction1, correction2,
            beta1, beta2, eps, weight_decay,
        )  # fmt: skip
    else:
        update(
            weight, gradient, exp_avg, exp_avg_sq, lanes < left, lr, correction1, correction2,
            beta1, beta2, eps, weight_decay,
        )  # fmt: skip
