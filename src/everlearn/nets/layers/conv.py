"""A convolution whose weight gradient is computed on a second CUDA stream.

The backward pass of a layer needs the gradient of its input at once, and that of its weight only when all
layers are done. The kernels of small images leave most of a GPU idle, so both run side by side.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from everlearn.nets.layers.side_stream import WEIGHT_GRADIENTS, side_stream

ROUNDING_NODE = "ToBFloat16Backward"  # the backward pass that joins both streams


class Conv2d(nn.Conv2d):
    """A convolution; its weight gradient runs beside the other gradients while it trains in bfloat16."""

    def forward(self, input: Tensor) -> Tensor:
        """(B, C, H, W) to (B, C', H', W')."""
        if not is_parallel(input, self.weight):
            return super().forward(input)
        out: Tensor = ParallelConvolution.apply(  # type: ignore[no-untyped-call]
            input, self.weight, self.stride, self.padding
        )
        return out


def is_parallel(x: Tensor, weight: Tensor) -> bool:
    """Whether the weight gradient may run on another stream: only where `ToBFloat16` waits for it."""
    node = weight.grad_fn
    return x.is_cuda and node is not None and node.name() == ROUNDING_NODE


class ParallelConvolution(torch.autograd.Function):
    """A convolution without bias, and its two gradients on two streams."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, stride: tuple[int, ...], padding: tuple[int, ...]
    ) -> Tensor:
        """Convolve."""
        ctx.save_for_backward(x, weight)
        ctx.stride = stride
        ctx.padding = padding
        return torch.conv2d(x, weight, None, stride, padding)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """Return the gradients of the input and of the weight."""
        x, weight = ctx.saved_tensors
        arguments = (gradient, x, weight, None, ctx.stride, ctx.padding, (1, 1), False, (0, 0), 1)
        backward = torch.ops.aten.convolution_backward
        with side_stream(gradient.device, WEIGHT_GRADIENTS).fork(gradient, x):
            weight_gradient = backward(*arguments, [False, True, False])[1]
        x_gradient = None
        if ctx.needs_input_grad[0]:
            x_gradient = backward(*arguments, [True, False, False])[0]
        return x_gradient, weight_gradient, None, None
