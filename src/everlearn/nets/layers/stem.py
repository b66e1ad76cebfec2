"""The first layers of ResNet for large images: plain torch, and fused on a GPU."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool2d

from everlearn.nets.layers.norm import EPS, MAX_ELEMENTS, MOMENTUM, Norm

_WIDTH = 64
_PROGRAMS = 256
_SMALL_STEP = 32  # rows that a program loads at once
_LARGE_STEP = 128


class GradientTiling(NamedTuple):
    """How the windows of the pool are divided among the programs of the filters' gradient.

    Attributes:
        programs: over windows; their partial gradients are added up afterwards.
        step: windows that a program loads at once, four pixels each.
        warps: of 32 threads, per program.
        stages: steps that are loaded ahead, plus one.
    """

    programs: int = 256
    step: int = 16
    warps: int = 4
    stages: int = 3


_GRADIENT_TILING = GradientTiling()


class Stem(nn.Module):
    """A 7 x 7 convolution of stride 2, batch normalisation, ReLU and a 3 x 3 max pool of stride 2."""

    def __init__(self, channels: int) -> None:
        """Map `channels` channels to 64."""
        super().__init__()
        self.conv = nn.Conv2d(channels, _WIDTH, 7, 2, 3, bias=False)
        self.norm = Norm(_WIDTH)

    def forward(self, images: Tensor) -> Tensor:
        """(B, C, S, S) to (B, 64, S / 4, S / 4)."""
        norm = self.norm
        if self.training and is_fusible(images):
            out: Tensor = FusedStem.apply(  # type: ignore[no-untyped-call]
                images, self.conv.weight, norm.weight, norm.bias, norm.mean, norm.var
            )
            return out
        return max_pool2d(norm(self.conv(images)), 3, 2, 1)


def is_fusible(images: Tensor) -> bool:
    """Whether the kernels take these images: bfloat16, square, side divisible by 4, no gradient needed."""
    count, channels, height, width = images.shape
    fits = height == width and height % 4 == 0
    # The convolution's output has 64 elements for every four pixels.
    fits = fits and count * height * width * max(channels, _WIDTH // 4) < MAX_ELEMENTS
    return images.is_cuda and images.dtype == torch.bfloat16 and fits and not images.requires_grad


class FusedStem(torch.autograd.Function):
    """The kernels as one differentiable function; images get no gradient."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, conv_weight: Tensor, weight: Tensor, bias: Tensor,
                mean: Tensor, var: Tensor) -> Tensor:  # fmt: skip
        """Convolve, normalise by batch statistics, update the running ones, apply ReLU and pool."""
        from everlearn.nets.layers import stem_kernel as kernel

        images = images.contiguous()
        side = images.shape[2] // 2
        filters = conv_weight.reshape(_WIDTH, -1).contiguous()
        taps = filters.shape[1]
        rows = len(images) * side * side
        x = images.new_empty((rows, _WIDTH))
        partial_sums = torch.empty((_PROGRAMS, 2, _WIDTH), device=x.device)
        stats = torch.empty((2, _WIDTH), device=x.device)
        kernel.convolve_kernel[(_PROGRAMS,)](
            images, filters, x, partial_sums, rows, taps, 2 * side, side, _span(rows, _LARGE_STEP),
            KP=_pad(taps), ROWS=_LARGE_STEP, COLS=_WIDTH,
        )  # fmt: skip
        kernel.stats_kernel[(_WIDTH // 16,)](
            partial_sums, stats, mean, var, rows, EPS, MOMENTUM, P=_PROGRAMS, COLS=_WIDTH
        )
        out = images.new_empty((len(images), side // 2, side // 2, _WIDTH))
        argmax = torch.empty(out.shape, dtype=torch.int8, device=x.device)
        winners = torch.empty_like(out)
        pooled_rows = rows // 4
        kernel.pool_kernel[(-(-pooled_rows // _SMALL_STEP),)](
            x, weight, bias, stats, out, argmax, winners, pooled_rows, side,
            ROWS=_SMALL_STEP, COLS=_WIDTH, num_warps=8,
        )  # fmt: skip
        ctx.save_for_backward(images, x, argmax, winners, weight, stats)
        ctx.shape = conv_weight.shape
        return out.permute(0, 3, 1, 2)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """Return the gradients of the convolution's weight and of the normalisation's weight and bias."""
        from everlearn.nets.layers import stem_kernel as kernel

        images, x, argmax, winners, weight, stats = ctx.saved_tensors
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        pooled_rows = len(x) // 4
        partial_sums = torch.empty((_PROGRAMS, 2, _WIDTH), device=x.device)
        kernel.pool_sums_kernel[(_PROGRAMS,)](
            gradient, winners, argmax, stats, partial_sums, pooled_rows,
            _span(pooled_rows, _SMALL_STEP), ROWS=_SMALL_STEP, COLS=_WIDTH, num_warps=8,
        )  # fmt: skip
        sums = partial_sums.sum(0)
        conv_gradient = filter_gradient(gradient, x, argmax, images, weight, stats, sums)
        return None, conv_gradient.reshape(ctx.shape), sums[1], sums[0], None, None


def filter_gradient(
    gradient: Tensor, x: Tensor, argmax: Tensor, images: Tensor, weight: Tensor, stats: Tensor,
    sums: Tensor, tiling: GradientTiling = _GRADIENT_TILING,
) -> Tensor:  # fmt: skip
    """Return the gradient of the convolution's filters (64, 49 C)."""
    from everlearn.nets.layers import stem_kernel as kernel

    pooled_rows = len(x) // 4
    taps = images.shape[1] * 49
    padded = _pad(taps)
    partial_gradients = torch.empty((tiling.programs, padded, _WIDTH), device=x.device)
    kernel.weight_gradient_kernel[(tiling.programs, padded // 64)](
        gradient, x, argmax, images, weight, stats, sums, partial_gradients, pooled_rows, taps,
        images.shape[2], images.shape[2] // 2, _span(pooled_rows, tiling.step, tiling.programs),
        KP=padded, ROWS=tiling.step, COLS=_WIDTH, num_warps=tiling.warps, num_stages=tiling.stages,
    )  # fmt: skip
    return partial_gradients.sum(0)[:taps].t().to(images.dtype)


def _span(rows: int, step: int, programs: int = _PROGRAMS) -> int:
    """Rows of a program, a multiple of its step."""
    return -(-rows // (programs * step)) * step


def _pad(taps: int) -> int:
    """The number of taps, rounded up to full blocks of 64."""
    return -(-taps // 64) * 64
