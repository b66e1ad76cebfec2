"""A training step as one captured CUDA graph; eager on a CPU."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from everlearn.nets.fast.passes import steady

_WARM_UPS = 3


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
        # Detached: a copy of a weight that is to be trained would hold on to the stream it was made on.
        self._work, self._changed = work, [tensor.detach() for tensor in changed]
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
        with steady(), undisturbed(), torch.cuda.graph(graph, pool=self._pool):
            loss = self._work(*places).detach()
        with torch.no_grad():
            torch._foreach_copy_(self._changed, before)
        return Graph(places, graph, loss)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Throw nothing away inside: a graph that goes while another is captured spoils the capture."""
    gc.collect()
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def both_ways(work: Callable[..., Tensor], changed: Iterable[Tensor]) -> tuple[Step, Step]:
    """Two steps: of work that is told False, and True. What is captured cannot ask which later."""
    tensors = list(changed)
    return Step(partial(work, False), tensors), Step(partial(work, True), tensors)


def beside(device: str) -> AbstractContextManager[Any]:
    """Prepare things on a GPU while it works: transfers inside wait for nothing that runs outside."""
    if device == "cpu":
        return nullcontext()
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    return torch.cuda.stream(stream)
