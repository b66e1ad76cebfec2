"""Batch normalisation with the addition and the ReLU that follow it: plain torch, and fused on a GPU."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, relu

EPS = 1e-5
MOMENTUM = 0.1
COLS = 64
_MOST_PARTS = 128
MOST = 2**31  # the kernels count in 32 bits


class Norm(nn.Module):
    """relu(batch_norm(x) + other); the addition and the cut below 0 are optional.

    Attributes:
        own: what an image's own moments count in evaluation, beside the kept ones; usually nothing.
    """

    def __init__(self, channels: int, cut: bool = True) -> None:
        """Start with weight 1, bias 0, mean 0 and variance 1."""
        super().__init__()
        self.cut = cut
        self.own = 0.0
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.mean: Tensor
        self.var: Tensor
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("var", torch.ones(channels))

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        """Normalise by the batch when training, by the kept moments otherwise."""
        if self.training and is_fusible(x, other):
            out: Tensor = Fused.apply(  # type: ignore[no-untyped-call]
                x, other, self.weight, self.bias, self.mean, self.var, self.cut
            )
            return out
        if self.own and not self.training and _is_fusible_alone(x, other):
            return self._fused_by_own(x, other)
        out = self.plain(x)
        out = out if other is None else out + other
        return relu(out) if self.cut else out

    def plain(self, x: Tensor) -> Tensor:
        """Batch normalisation alone, by torch."""
        if self.own and not self.training:
            return self._by_own(x)
        return batch_norm(
            x, self.mean, self.var, self.weight, self.bias, self.training, MOMENTUM, EPS
        )

    def _by_own(self, x: Tensor) -> Tensor:
        """Normalise by the moments of a batch that holds this image and others like those kept."""
        spread, middle = torch.var_mean(x.to(self.var.dtype), (2, 3), correction=0)
        off = middle - self.mean
        var = (1 - self.own) * (self.var + self.own * off.square()) + self.own * spread
        scale = self.weight / (var + EPS).sqrt()
        shift = self.bias - (self.mean + self.own * off) * scale
        return (x * scale[:, :, None, None] + shift[:, :, None, None]).to(x.dtype)

    def _fused_by_own(self, x: Tensor, other: Tensor | None) -> Tensor:
        """The same with the addition and the cut, by one kernel."""
        from everlearn.nets import norm_kernel as kernel

        x = x.contiguous(memory_format=torch.channels_last)
        other = None if other is None else other.contiguous(memory_format=torch.channels_last)
        out, rows = torch.empty_like(x), x.shape[2] * x.shape[3]
        with torch.cuda.device(x.device):
            kernel.own_kernel[(len(x), x.shape[1] // COLS)](
                x, other, self.weight, self.bias, self.mean, self.var, out, rows, x.shape[1], EPS,
                self.own, ROWS=min(64, max(16, 1 << (rows - 1).bit_length())), COLS=COLS,
                ADD=other is not None, RELU=self.cut,
            )  # fmt: skip
        return out


def count_own(net: nn.Module, own: float) -> None:
    """Let an image's own moments count so much in every normalisation of a net, in evaluation.

    A net learns from batches, whose moments each image moves a little: one that stands out is damped by
    itself, layer by layer. Where only the kept moments count, nothing damps it. Counting itself as one
    in a batch, it is normalised as it was there (Schneider et al. 2020, with one image).
    """
    for layer in net.modules():
        if isinstance(layer, Norm):
            layer.own = own


def is_fusible(x: Tensor, other: Tensor | None = None) -> bool:
    """Whether the kernels take these: of one shape, whole blocks of channels, more than one row."""
    if other is not None and not (other.shape == x.shape and _is_flat(other)):
        return False
    return _is_flat(x) and x.shape[1] % COLS == 0 and x.shape[1] < x.numel() < MOST


def _is_fusible_alone(x: Tensor, other: Tensor | None) -> bool:
    """Whether the kernel of evaluation takes these: of one shape, whole blocks of channels, no slopes."""
    fits = x.is_cuda and x.dtype in (torch.float32, torch.bfloat16) and x.dim() == 4
    fits = fits and x.shape[1] % COLS == 0 and x.numel() < MOST
    return fits and (other is None or other.shape == x.shape) and not torch.is_grad_enabled()


def _is_flat(x: Tensor) -> bool:
    """Whether this is bfloat16 and channels last, on a GPU."""
    narrow = x.is_cuda and x.dtype == torch.bfloat16 and x.dim() == 4
    return narrow and x.is_contiguous(memory_format=torch.channels_last)


class Plan(NamedTuple):
    """How the rows of a matrix are shared among programs.

    Attributes:
        parts: programs, a power of two.
        span: rows a program.
        step: rows a program takes at once.
    """

    rows: int
    channels: int
    parts: int
    span: int
    step: int

    @property
    def grid(self) -> tuple[int, int]:
        """Programs over rows and over blocks of channels."""
        return self.parts, self.channels // COLS

    @property
    def sizes(self) -> tuple[int, int, int]:
        """What every kernel is told."""
        return self.rows, self.channels, self.span

    @property
    def block(self) -> dict[str, int]:
        """The constants every kernel is compiled for."""
        return {"ROWS": self.step, "COLS": COLS, "num_warps": self.step // 16}


@lru_cache(maxsize=256)
def plan(rows: int, channels: int) -> Plan:
    """Share rows so that about 256 programs have work."""
    blocks = channels // COLS
    step = 128 if rows * blocks >= 128 * 256 else 64 if rows * blocks >= 64 * 256 else 32
    steps = -(-rows // step)
    parts = min(_MOST_PARTS, 1 << (steps - 1).bit_length())
    return Plan(rows, channels, parts, -(-steps // parts) * step, step)


class Fused(torch.autograd.Function):
    """The four kernels as one differentiable step."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, other: Tensor | None, weight: Tensor, bias: Tensor,
                mean: Tensor, var: Tensor, cut: bool) -> Tensor:  # fmt: skip
        """Normalise by the batch and move the kept moments."""
        from everlearn.nets import norm_kernel as kernel

        p = plan(x.numel() // x.shape[1], x.shape[1])
        out = torch.empty_like(x)
        parts = torch.empty((p.parts, 2, p.channels), device=x.device)
        moments = torch.empty((2, p.channels), device=x.device)
        kernel.sums_kernel[p.grid](x, parts, *p.sizes, **p.block)
        kernel.normalise_kernel[p.grid](
            x, other, weight, bias, parts, out, moments, mean, var, *p.sizes, EPS, MOMENTUM,
            P=p.parts, ADD=other is not None, RELU=cut, **p.block,
        )  # fmt: skip
        ctx.save_for_backward(x, out, weight, moments)
        ctx.cut, ctx.add = cut, other is not None
        return out

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        """Give the slopes of x, other, weight and bias."""
        from everlearn.nets import norm_kernel as kernel

        x, out, weight, moments = ctx.saved_tensors
        slope = slope.contiguous(memory_format=torch.channels_last)
        p = plan(x.numel() // x.shape[1], x.shape[1])
        parts = torch.empty((p.parts, 2, p.channels), device=x.device)
        to_x, to_other = torch.empty_like(x), torch.empty_like(x) if ctx.add else None
        to_weight, to_bias = torch.empty_like(weight), torch.empty_like(weight)
        kernel.slope_sums_kernel[p.grid](
            slope, x, out, moments, parts, *p.sizes, RELU=ctx.cut, **p.block
        )
        kernel.slope_kernel[p.grid](
            slope, x, out, weight, moments, parts, to_x, to_other, to_weight, to_bias, *p.sizes,
            P=p.parts, ADD=ctx.add, RELU=ctx.cut, **p.block,
        )  # fmt: skip
        return to_x, to_other, to_weight, to_bias, None, None, None
