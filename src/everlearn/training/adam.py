"""Adam (Kingma and Ba 2015) with its state allocated from the start, where a captured step finds it.

On a CPU the arithmetic is torch's. On a GPU one kernel updates all weights: torch's fused one divides the
few large tensors of a ResNet-18 unevenly. `torch.optim.Adam` also imports torch's compiler when it is made,
which would cost every run seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam as torch_adam

from everlearn.training.flat_params import FlatParams

BETAS = (0.9, 0.999)
EPS = 1e-8
_ALIGNMENT = 16  # bytes that the kernel loads at once
_PADDING = 64  # numbers; the state of every weight starts at a multiple


class Adam:
    """Adam for a fixed list of weights.

    Args:
        weight_decay: decoupled from the gradient, as in AdamW (Loshchilov and Hutter 2019).
        fused_on_cpu: use torch's fused kernel on a CPU, which rounds the last few weights of a tensor
            differently. False for tensors whose size is the number of classes of a stream: there, weights
            of a class must not depend on whether others follow.

    Attributes:
        param_groups: one group with the learning rate, as in torch's optimisers.
        state: step, exp_avg and exp_avg_sq of each weight.
    """

    def __init__(
        self,
        weights: Iterable[Tensor],
        learning_rate: float,
        weight_decay: float = 0.0,
        fused_on_cpu: bool = True,
    ) -> None:
        """Start with a state of zeros."""
        self._weights = list(weights)
        self._weight_decay = weight_decay
        self._fused_on_cpu = fused_on_cpu
        lr = place_learning_rate(self._weights, learning_rate)
        self.param_groups: list[dict[str, Any]] = [{"params": self._weights, "lr": lr}]
        self._steps = torch.zeros(len(self._weights), device=self._weights[0].device)
        self._exp_avg = FlatParams(self._weights, _PADDING)
        self._exp_avg_sq = FlatParams(self._weights, _PADDING)
        parts = (self._steps.unbind(), self._exp_avg.views, self._exp_avg_sq.views)
        self.state = {
            weight: {"step": step, "exp_avg": exp_avg, "exp_avg_sq": exp_avg_sq}
            for weight, step, exp_avg, exp_avg_sq in zip(self._weights, *parts, strict=True)
        }
        self._kernel: Any = None

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for weight in self._weights:
            weight.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update the weights that have a gradient."""
        reached = [weight for weight in self._weights if weight.grad is not None]
        if not reached:
            return
        for weight in reached:
            _match_layout(weight)
        if len(reached) == len(self._weights) and all(map(_fits_kernel, reached)):
            self._step_on_gpu()
        else:
            self._step_by_torch(reached)

    def _step_on_gpu(self) -> None:
        from everlearn.training.adam_kernel import AdamKernel

        if self._kernel is None:
            self._kernel = AdamKernel(self._weights, self._exp_avg.views)
        self._steps.add_(1)
        self._kernel(
            [weight.grad for weight in self._weights],
            self._exp_avg.flat,
            self._exp_avg_sq.flat,
            self._steps,
            self.param_groups[0]["lr"],
            BETAS,
            EPS,
            self._weight_decay,
        )

    def _step_by_torch(self, weights: list[Tensor]) -> None:
        states = [self.state[weight] for weight in weights]
        fused = self._fused_on_cpu or weights[0].is_cuda
        torch_adam(
            weights,
            [weight.grad for weight in weights if weight.grad is not None],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            fused=fused,
            foreach=not fused,
            capturable=weights[0].is_cuda,
            amsgrad=False,
            beta1=BETAS[0],
            beta2=BETAS[1],
            lr=self.param_groups[0]["lr"],
            weight_decay=self._weight_decay,
            decoupled_weight_decay=self._weight_decay > 0,
            eps=EPS,
            maximize=False,
        )


def place_learning_rate(weights: Sequence[Tensor], value: float) -> Any:
    """Return a learning rate as a tensor on a GPU: a captured graph would keep a float forever."""
    return torch.tensor(value, device=weights[0].device) if weights[0].is_cuda else value


def _match_layout(weight: Tensor) -> None:
    """Copy a gradient in another order of memory: fused kernels, torch's too, read both as vectors."""
    gradient = weight.grad
    if gradient is not None and gradient.stride() != weight.stride():
        weight.grad = torch.empty_like(weight).copy_(gradient)


def _fits_kernel(weight: Tensor) -> bool:
    """Whether the kernel takes a weight and its gradient: both of float32 and aligned."""
    gradient = weight.grad
    return (
        gradient is not None
        and weight.is_cuda
        and weight.dtype == gradient.dtype == torch.float32
        and weight.data_ptr() % _ALIGNMENT == gradient.data_ptr() % _ALIGNMENT == 0
    )
