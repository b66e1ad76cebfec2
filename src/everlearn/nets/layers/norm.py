"""Batch normalisation with the addition and the ReLU that follow it: plain torch, and fused on a GPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, relu

from everlearn.nets.layers.tiling import Tiling, tile

EPS = 1e-5
MOMENTUM = 0.1
BLOCK_CHANNELS = 64
MAX_ELEMENTS = 2**31  # the kernels compute offsets in 32 bits


class Norm(nn.Module):
    """relu(batch_norm(x) + residual); the addition and the ReLU are optional.

    Attributes:
        instance_weight: weight of an image's own statistics beside the running ones in evaluation.
    """

    def __init__(self, channels: int, relu: bool = True) -> None:
        """Start with weight 1, bias 0, mean 0 and variance 1."""
        super().__init__()
        self.relu = relu
        self.instance_weight = 0.0
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.mean: Tensor
        self.var: Tensor
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("var", torch.ones(channels))

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """Normalise by batch statistics in training, by running statistics in evaluation."""
        if self.training and is_fusible(x, residual):
            out: Tensor = FusedNorm.apply(  # type: ignore[no-untyped-call]
                x, residual, self.weight, self.bias, self.mean, self.var, self.relu
            )
            return out
        if self.instance_weight and not self.training and _is_fusible_in_eval(x, residual):
            return self._fused_instance_norm(x, residual)
        out = self.plain(x)
        out = out if residual is None else out + residual
        return relu(out) if self.relu else out

    def plain(self, x: Tensor) -> Tensor:
        """Apply batch normalisation alone, by torch."""
        if self.instance_weight and not self.training:
            return self._instance_norm(x)
        return batch_norm(
            x, self.mean, self.var, self.weight, self.bias, self.training, MOMENTUM, EPS
        )

    def _instance_norm(self, x: Tensor) -> Tensor:
        """Normalise by a mixture of instance statistics, of weight a, and running ones, of weight 1 - a."""
        a = self.instance_weight
        image_var, image_mean = torch.var_mean(x.to(self.var.dtype), (2, 3), correction=0)
        offset = image_mean - self.mean
        # The variance of a mixture: within both parts, and a (1 - a) offset^2 between them.
        var = (1 - a) * (self.var + a * offset.square()) + a * image_var
        scale = self.weight / (var + EPS).sqrt()
        shift = self.bias - (self.mean + a * offset) * scale
        return (x * scale[:, :, None, None] + shift[:, :, None, None]).to(x.dtype)

    def _fused_instance_norm(self, x: Tensor, residual: Tensor | None) -> Tensor:
        """Apply `_instance_norm`, the addition and the ReLU in one kernel."""
        from everlearn.nets.layers import norm_kernel as kernel

        x = x.contiguous(memory_format=torch.channels_last)
        if residual is not None:
            residual = residual.contiguous(memory_format=torch.channels_last)
        out = torch.empty_like(x)
        rows = x.shape[2] * x.shape[3]
        with torch.cuda.device(x.device):
            kernel.instance_norm_kernel[(len(x), x.shape[1] // BLOCK_CHANNELS)](
                x, residual, self.weight, self.bias, self.mean, self.var, out, rows, x.shape[1],
                EPS, self.instance_weight, ROWS=min(64, max(16, 1 << (rows - 1).bit_length())),
                COLS=BLOCK_CHANNELS, ADD=residual is not None, RELU=self.relu,
            )  # fmt: skip
        return out


def use_instance_stats(net: nn.Module, weight: float) -> None:
    """Give an image's own statistics this weight in every normalisation of a net, in evaluation.

    In training each image moves the statistics of its batch a little, so that an outlier is damped layer
    by layer. Running statistics alone damp nothing. With its own counted as one image of a batch, an
    image is normalised as in training (Schneider et al. 2020, with one image).
    """
    for layer in net.modules():
        if isinstance(layer, Norm):
            layer.instance_weight = weight


def is_fusible(x: Tensor, residual: Tensor | None = None) -> bool:
    """Whether the training kernels take these: equal shapes, full blocks of channels, more than one row."""
    if residual is not None and not (residual.shape == x.shape and _is_channels_last(residual)):
        return False
    return (
        _is_channels_last(x)
        and x.shape[1] % BLOCK_CHANNELS == 0
        and x.shape[1] < x.numel() < MAX_ELEMENTS
    )


def _is_fusible_in_eval(x: Tensor, residual: Tensor | None) -> bool:
    """Whether the evaluation kernel takes these: equal shapes, full blocks of channels, no gradients."""
    fits = x.is_cuda and x.dtype in (torch.float32, torch.bfloat16) and x.dim() == 4
    fits = fits and x.shape[1] % BLOCK_CHANNELS == 0 and x.numel() < MAX_ELEMENTS
    return fits and (residual is None or residual.shape == x.shape) and not torch.is_grad_enabled()


def _is_channels_last(x: Tensor) -> bool:
    """Whether this is a bfloat16 tensor on a GPU, in channels-last memory."""
    bfloat16 = x.is_cuda and x.dtype == torch.bfloat16 and x.dim() == 4
    return bfloat16 and x.is_contiguous(memory_format=torch.channels_last)


class FusedNorm(torch.autograd.Function):
    """The training kernels as one differentiable function."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, residual: Tensor | None, weight: Tensor, bias: Tensor,
                mean: Tensor, var: Tensor, relu: bool) -> Tensor:  # fmt: skip
        """Normalise by batch statistics and update the running ones."""
        tiling = tile(x.numel() // x.shape[1], x.shape[1])
        out, stats = normalize(x, residual, weight, bias, mean, var, relu, tiling)
        ctx.relu = relu
        ctx.add = residual is not None
        # The backward pass needs the output only where the ReLU's sign cannot be computed from x.
        ctx.save_for_backward(x, out if ctx.add and relu else None, weight, bias, stats)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """Return the gradients of x, residual, weight and bias."""
        x, out, weight, bias, stats = ctx.saved_tensors
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        tiling = tile(x.numel() // x.shape[1], x.shape[1])
        gradients = norm_gradients(gradient, x, out, weight, bias, stats, ctx.add, ctx.relu, tiling)
        return *gradients, None, None, None


def normalize(x: Tensor, residual: Tensor | None, weight: Tensor, bias: Tensor, mean: Tensor,
              var: Tensor, relu: bool, tiling: Tiling) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the output and the batch's mean and 1 / std (2, C); update the running statistics."""
    from everlearn.nets.layers import norm_kernel as kernel

    out = torch.empty_like(x)
    partial_sums = torch.empty((tiling.programs, 2, tiling.channels), device=x.device)
    stats = torch.empty((2, tiling.channels), device=x.device)
    kernel.sums_kernel[tiling.grid](x, partial_sums, *tiling.sizes, **tiling.constants)
    kernel.normalize_kernel[tiling.grid](
        x, residual, weight, bias, partial_sums, out, stats, mean, var, *tiling.sizes, EPS,
        MOMENTUM, P=tiling.programs, ADD=residual is not None, RELU=relu, **tiling.constants,
    )  # fmt: skip
    return out, stats


def norm_gradients(
    gradient: Tensor, x: Tensor, out: Tensor | None, weight: Tensor, bias: Tensor, stats: Tensor,
    add: bool, relu: bool, tiling: Tiling,
) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:  # fmt: skip
    """Return the gradients of x, residual, weight and bias."""
    from everlearn.nets.layers import norm_kernel as kernel

    partial_sums = torch.empty((tiling.programs, 2, tiling.channels), device=x.device)
    x_gradient = torch.empty_like(x)
    weight_gradient = torch.empty_like(weight)
    bias_gradient = torch.empty_like(weight)
    # Without a ReLU after it, the addition passes its gradient on as it is.
    masked = torch.empty_like(x) if add and relu else None
    residual_gradient = (masked if relu else gradient) if add else None
    kernel.gradient_sums_kernel[tiling.grid](
        gradient, x, out, weight, bias, stats, masked, partial_sums, *tiling.sizes,
        ADD=add and relu, RELU=relu, **tiling.constants,
    )  # fmt: skip
    # A gradient that the first kernel masked and wrote is read by the second as it is.
    kernel.gradient_kernel[tiling.grid](
        gradient if masked is None else masked, x, weight, bias, stats, partial_sums, x_gradient,
        weight_gradient, bias_gradient, *tiling.sizes,
        P=tiling.programs, RELU=relu and not add, **tiling.constants,
    )  # fmt: skip
    return x_gradient, residual_gradient, weight_gradient, bias_gradient
