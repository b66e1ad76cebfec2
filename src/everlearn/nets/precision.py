"""Forward passes: in bfloat16 while a net trains on a GPU, and the same bits each time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from everlearn.nets.cwr_head import CWRHead
from everlearn.nets.layers.class_head import ClassHead
from everlearn.nets.layers.head import Head
from everlearn.nets.layers.norm import Norm
from everlearn.nets.layers.renorm import Renorm
from everlearn.nets.layers.side_stream import WEIGHT_GRADIENTS, side_stream

_FLOAT32_LAYERS = (Norm, Renorm, Head, ClassHead, nn.LayerNorm, CWRHead)


def to_device(net: nn.Module, device: str) -> nn.Module:
    """Move a net to a device, in channels-last memory."""
    return net.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def forward_pass(net: nn.Module, images: Tensor, bfloat16: bool = True) -> Tensor:
    """Apply a net; in training on a GPU its body computes in bfloat16.

    Args:
        bfloat16: whether bfloat16 may be used; small nets gain little by it.
    """
    with deterministic():
        if not (bfloat16 and images.is_cuda and net.training):
            out: Tensor = net(images.contiguous(memory_format=torch.channels_last))
            return out
        names, weights = zip(*bfloat16_weights(net), strict=True)
        rounded = ToBFloat16.apply(*weights)  # type: ignore[no-untyped-call]
        replaced = dict(zip(names, rounded, strict=True))
        inputs = images.to(torch.bfloat16, memory_format=torch.channels_last)
        out = functional_call(net, replaced, (inputs,))
        return out


def bfloat16_weights(net: nn.Module) -> list[tuple[str, Tensor]]:
    """The weights that are rounded to bfloat16, by name."""
    float32 = {
        id(weight)
        for layer in net.modules()
        if isinstance(layer, _FLOAT32_LAYERS)
        for weight in layer.parameters()
    }
    return [(name, weight) for name, weight in net.named_parameters() if id(weight) not in float32]


@contextmanager
def eval_mode(net: nn.Module) -> Iterator[None]:
    """Evaluate a net inside, without gradients; restore its mode afterwards."""
    training = net.training
    net.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        net.train(training)


@contextmanager
def frozen_running_stats(net: nn.Module) -> Iterator[None]:
    """Restore the running statistics of a net after training passes inside."""
    buffers = list(net.buffers())
    before = [buffer.clone() for buffer in buffers]
    try:
        yield
    finally:
        if buffers:
            torch._foreach_copy_(buffers, before)


def deterministic() -> AbstractContextManager[None]:
    """Restrict cuDNN to deterministic kernels, chosen without benchmarking.

    The backward pass reads these flags when it runs: put the context around both passes.
    """
    flags: AbstractContextManager[None] = torch.backends.cudnn.flags(
        enabled=True, benchmark=False, deterministic=True, allow_tf32=True
    )
    return flags


class ToBFloat16(torch.autograd.Function):
    """Round all weights to bfloat16 by one kernel, and widen their gradients to float32 by another."""

    @staticmethod
    def forward(ctx: Any, *weights: Tensor) -> tuple[Tensor, ...]:
        """Round to bfloat16."""
        out = [torch.empty_like(weight, dtype=torch.bfloat16) for weight in weights]
        torch._foreach_copy_(out, list(weights))
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        """Widen to float32, once the weight gradients that run on another stream are there."""
        if gradients[0].is_cuda:
            side_stream(gradients[0].device, WEIGHT_GRADIENTS).join()
        out = [torch.empty_like(gradient, dtype=torch.float32) for gradient in gradients]
        torch._foreach_copy_(out, list(gradients))
        return tuple(out)
