"""Any training step, fast: eager on a CPU; on a GPU in bfloat16 and as one captured CUDA graph.

A step is a function of tensors that computes a loss, goes backward, moves an optimiser and returns the
loss. A method writes it once, plainly; `Step` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.optim import SGD, Adam, Optimizer

from everlearn.nets.head import Head
from everlearn.nets.norm import Norm

_KEPT_WIDE = (Norm, Head, nn.LayerNorm)
_WARM_UPS = 3


def place(net: nn.Module, device: str) -> nn.Module:
    """Move a net to a device, in the memory format that is fast there."""
    return net.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def forward(net: nn.Module, images: Tensor) -> Tensor:
    """Apply a net: as it is, but on a GPU in bfloat16 (its head aside) while it trains."""
    with steady():
        if not (images.is_cuda and net.training):
            out: Tensor = net(images.contiguous(memory_format=torch.channels_last))
            return out
        names, weights = zip(*_narrowed(net), strict=True)
        rounded = Narrow.apply(*weights)  # type: ignore[no-untyped-call]
        narrow = dict(zip(names, rounded, strict=True))
        small = images.to(torch.bfloat16, memory_format=torch.channels_last)
        out = functional_call(net, narrow, (small,))
        return out


def _narrowed(net: nn.Module) -> list[tuple[str, Tensor]]:
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


def adam(weights: Iterable[Tensor], rate: float) -> Adam:
    """Adam with all its state there from the start, fused into few kernels on a GPU."""
    several = list(weights)
    on_gpu = several[0].is_cuda
    speed: Any = torch.tensor(rate, device=several[0].device) if on_gpu else rate
    optimizer = Adam(several, lr=speed, fused=True, capturable=on_gpu)
    for weight in several:
        optimizer.state[weight] = {
            "step": torch.zeros((), device=weight.device),
            "exp_avg": torch.zeros_like(weight),
            "exp_avg_sq": torch.zeros_like(weight),
        }
    return optimizer


def sgd(weights: Iterable[Tensor], rate: float, momentum: float) -> SGD:
    """Gradient descent with momentum, its state there from the start, fused on a GPU."""
    several = list(weights)
    on_gpu = several[0].is_cuda
    speed: Any = torch.tensor(rate, device=several[0].device) if on_gpu else rate
    optimizer = SGD(several, lr=speed, momentum=momentum, fused=on_gpu)
    for weight in several if momentum else ():
        optimizer.state[weight] = {"momentum_buffer": torch.zeros_like(weight)}
    return optimizer


def moments(optimizer: Optimizer) -> list[Tensor]:
    """Every tensor an optimiser keeps, in a fixed order."""
    return [value for state in optimizer.state.values() for value in state.values()]


def forget(optimizer: Optimizer) -> None:
    """Start an optimiser afresh, in the memory it has."""
    kept = moments(optimizer)
    if kept:  # gradient descent without momentum keeps nothing
        torch._foreach_zero_(kept)


def load_moments(optimizer: Optimizer, kept: Sequence[Tensor]) -> None:
    """Put back what an optimiser kept; nothing kept means a fresh start."""
    if kept:
        torch._foreach_copy_(moments(optimizer), list(kept))
    else:
        forget(optimizer)


def set_rate(optimizer: Optimizer, rate: float) -> None:
    """Set the learning rate, without waiting for a GPU."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def beside(device: str) -> AbstractContextManager[Any]:
    """Prepare things on a GPU while it works: transfers inside wait for nothing that runs outside."""
    if device == "cpu":
        return nullcontext()
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    return torch.cuda.stream(stream)


def descend(optimizer: Optimizer, loss: Tensor) -> Tensor:
    """Go one step down a loss, and return it."""
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return loss


class Graph(NamedTuple):
    """A captured step: the memory it reads from, the graph, the memory of its loss."""

    inputs: tuple[Tensor, ...]
    graph: Any
    loss: Tensor


class Step:
    """Runs a training step: eagerly on a CPU, as one CUDA graph for each size of input on a GPU.

    Args:
        work: takes tensors, changes weights and returns the loss; it may not wait for the GPU.
        changed: every tensor that `work` changes; capturing a graph leaves them as they were.
    """

    def __init__(self, work: Callable[..., Tensor], changed: Iterable[Tensor]) -> None:
        """Capture nothing yet."""
        self._work, self._changed = work, list(changed)
        self._graphs: dict[tuple[Any, ...], Graph] = {}
        self._pool: Any = None

    def __call__(self, *inputs: Tensor) -> Tensor:
        """Do one step and return its loss, on the device."""
        if not inputs[0].is_cuda:
            return self._work(*inputs).detach()
        with torch.cuda.device(inputs[0].device):
            return self._replay(*inputs)

    def _replay(self, *inputs: Tensor) -> Tensor:
        key = tuple((tuple(one.shape), one.dtype) for one in inputs)
        if key not in self._graphs:
            self._graphs[key] = self._capture(inputs)
        ready = self._graphs[key]
        for there, given in zip(ready.inputs, inputs, strict=True):
            there.copy_(given, non_blocking=True)
        ready.graph.replay()
        return ready.loss.clone()

    def _capture(self, inputs: tuple[Tensor, ...]) -> Graph:
        """Run the step a few times, undo that, and record it."""
        places = tuple(one.to(inputs[0].device, copy=True) for one in inputs)
        before = [one.clone() for one in self._changed]
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with steady(), torch.cuda.stream(side):
            for _ in range(_WARM_UPS):
                self._work(*places)
        torch.cuda.current_stream().wait_stream(side)
        # Graphs run one after another and losses are copied, so all may use the same memory.
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        with steady(), torch.cuda.graph(graph, pool=self._pool):
            loss = self._work(*places).detach()
        with torch.no_grad():
            torch._foreach_copy_(self._changed, before)
        return Graph(places, graph, loss)
