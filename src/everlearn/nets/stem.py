"""The first layers of ResNet for large images: plain torch, and fused on a GPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool2d

from everlearn.nets.norm import EPS, MOMENTUM, MOST, Norm

_WIDTH = 64
_PARTS = 256
_FEW, _MANY = 32, 128


class Stem(nn.Module):
    """A 7 x 7 convolution of every second pixel, batch normalisation, ReLU and a 3 x 3 pool likewise."""

    def __init__(self, channels: int) -> None:
        """Make 64 channels of `channels`."""
        super().__init__()
        self.conv = nn.Conv2d(channels, _WIDTH, 7, 2, 3, bias=False)
        self.norm = Norm(_WIDTH)

    def forward(self, images: Tensor) -> Tensor:
        """(B, C, S, S) to (B, 64, S / 4, S / 4)."""
        norm = self.norm
        if self.training and is_fusible(images):
            out: Tensor = Fused.apply(  # type: ignore[no-untyped-call]
                images, self.conv.weight, norm.weight, norm.bias, norm.mean, norm.var
            )
            return out
        return max_pool2d(norm(self.conv(images)), 3, 2, 1)


def is_fusible(images: Tensor) -> bool:
    """Whether the kernels take these images: bfloat16, square, a side of whole fours, no slope asked."""
    count, channels, height, width = images.shape
    fits = height == width and height % 4 == 0
    # What the convolution gives holds 64 numbers for every four pixels.
    fits = fits and count * height * width * max(channels, _WIDTH // 4) < MOST
    return images.is_cuda and images.dtype == torch.bfloat16 and fits and not images.requires_grad


class Fused(torch.autograd.Function):
    """The kernels as one differentiable step; images get no slope."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor, scale: Tensor, bias: Tensor,
                mean: Tensor, var: Tensor) -> Tensor:  # fmt: skip
        """Convolve, normalise by the batch, move the kept moments, cut and pool."""
        from everlearn.nets import stem_kernel as kernel

        images, side = images.contiguous(), images.shape[2] // 2
        taps = weight.reshape(_WIDTH, -1).contiguous()
        rows, count = len(images) * side * side, taps.shape[1]
        x = images.new_empty((rows, _WIDTH))
        parts = torch.empty((_PARTS, 2, _WIDTH), device=x.device)
        moments = torch.empty((2, _WIDTH), device=x.device)
        kernel.convolve_kernel[(_PARTS,)](
            images, taps, x, parts, rows, count, 2 * side, side, _span(rows, _MANY),
            KP=_whole(count), ROWS=_MANY, COLS=_WIDTH,
        )  # fmt: skip
        kernel.moments_kernel[(_WIDTH // 16,)](
            parts, moments, mean, var, rows, EPS, MOMENTUM, P=_PARTS, COLS=_WIDTH
        )
        out = images.new_empty((len(images), side // 2, side // 2, _WIDTH))
        chosen = torch.empty(out.shape, dtype=torch.int8, device=x.device)
        pooled = rows // 4
        kernel.pool_kernel[(-(-pooled // _FEW),)](
            x, scale, bias, moments, out, chosen, pooled, side,
            ROWS=_FEW, COLS=_WIDTH, num_warps=8,
        )  # fmt: skip
        ctx.save_for_backward(images, x, chosen, scale, moments)
        ctx.shape = weight.shape
        return out.permute(0, 3, 1, 2)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        """Give the slopes of the convolution's weight and of the normalisation's."""
        from everlearn.nets import stem_kernel as kernel

        images, x, chosen, scale, moments = ctx.saved_tensors
        slope, side = slope.contiguous(memory_format=torch.channels_last), images.shape[2] // 2
        rows, count = len(x), ctx.shape[1] * 49
        parts = torch.empty((_PARTS, 2, _WIDTH), device=x.device)
        kernel.pool_sums_kernel[(_PARTS,)](
            slope, x, chosen, moments, parts, rows // 4, side, _span(rows // 4, _FEW),
            ROWS=_FEW, COLS=_WIDTH, num_warps=8,
        )  # fmt: skip
        sums, whole = parts.sum(0), _whole(count)
        shares = torch.empty((_PARTS, whole, _WIDTH), device=x.device)
        kernel.weight_slope_kernel[(_PARTS, whole // 64)](
            slope, x, chosen, images, scale, moments, sums, shares, rows, count, 2 * side, side,
            _span(rows, _FEW), KP=whole, ROWS=_FEW, COLS=_WIDTH,
        )  # fmt: skip
        to_weight = shares.sum(0)[:count].t().reshape(ctx.shape).to(images.dtype)
        return None, to_weight, sums[1], sums[0], None, None


def _span(rows: int, step: int) -> int:
    """Rows a program, in whole steps."""
    return -(-rows // (_PARTS * step)) * step


def _whole(count: int) -> int:
    """Taps in whole blocks of 64."""
    return -(-count // 64) * 64
