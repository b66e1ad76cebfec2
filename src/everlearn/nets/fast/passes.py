"""A net's way there: in bfloat16 while it trains on a GPU, and the same bits each time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from everlearn.nets.cwr import CopyWeights
from everlearn.nets.head import Head
from everlearn.nets.norm import Norm
from everlearn.nets.renorm import Renorm

_KEPT_WIDE = (Norm, Renorm, Head, nn.LayerNorm, CopyWeights)


def place(net: nn.Module, device: str) -> nn.Module:
    """Move a net to a device, in the memory format that is fast there."""
    return net.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def forward(net: nn.Module, images: Tensor, narrow: bool = True) -> Tensor:
    """Apply a net: as it is, but on a GPU in bfloat16 (its head aside) while it trains.

    Args:
        narrow: whether bfloat16 may be used; small nets gain little by it.
    """
    with steady():
        if not (narrow and images.is_cuda and net.training):
            out: Tensor = net(images.contiguous(memory_format=torch.channels_last))
            return out
        names, weights = zip(*narrowed(net), strict=True)
        rounded = Narrow.apply(*weights)  # type: ignore[no-untyped-call]
        lent = dict(zip(names, rounded, strict=True))
        small = images.to(torch.bfloat16, memory_format=torch.channels_last)
        out = functional_call(net, lent, (small,))
        return out


def narrowed(net: nn.Module) -> list[tuple[str, Tensor]]:
    """The weights that are rounded to bfloat16, by name."""
    kept = {
        id(weight)
        for layer in net.modules()
        if isinstance(layer, _KEPT_WIDE)
        for weight in layer.parameters()
    }
    return [(name, weight) for name, weight in net.named_parameters() if id(weight) not in kept]


@contextmanager
def evaluating(net: nn.Module) -> Iterator[None]:
    """Use the moments that a net keeps, not those of the batch; afterwards all is as before."""
    training = net.training
    net.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        net.train(training)


@contextmanager
def keeping_moments(net: nn.Module) -> Iterator[None]:
    """Let a net train inside without moving the moments that it keeps."""
    kept = list(net.buffers())
    before = [one.clone() for one in kept]
    try:
        yield
    finally:
        if kept:
            torch._foreach_copy_(kept, before)


def steady() -> AbstractContextManager[None]:
    """Let cuDNN use only kernels that give the same bits each time, chosen without a race.

    The way back asks for this when it runs, not when the way forward did: put it around both.
    """
    flags: AbstractContextManager[None] = torch.backends.cudnn.flags(
        enabled=True, benchmark=False, deterministic=True, allow_tf32=True
    )
    return flags


class Narrow(torch.autograd.Function):
    """All weights in bfloat16 by one kernel, and their slopes back in float32 by another."""

    @staticmethod
    def forward(ctx: Any, *weights: Tensor) -> tuple[Tensor, ...]:
        """Round."""
        out = [torch.empty_like(weight, dtype=torch.bfloat16) for weight in weights]
        torch._foreach_copy_(out, list(weights))
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, ...]:
        """Widen."""
        out = [torch.empty_like(slope, dtype=torch.float32) for slope in slopes]
        torch._foreach_copy_(out, list(slopes))
        return tuple(out)
