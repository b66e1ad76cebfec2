"""A training step as one captured CUDA graph; eager on a CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from everlearn.nets.precision import deterministic
from everlearn.training.cuda import no_garbage_collection

_WARM_UPS = 3


class Graph(NamedTuple):
    """A captured step: its input tensors, the graph and its loss."""

    inputs: tuple[Tensor, ...]
    graph: Any
    loss: Tensor


class CapturedStep:
    """A training step: eager on a CPU, one CUDA graph per shape of input on a GPU.

    Args:
        step: takes tensors, updates weights and returns the loss; it may not synchronise with the GPU.
        state: every tensor that `step` changes; capturing a graph restores them.
    """

    def __init__(self, step: Callable[..., Tensor], state: Iterable[Tensor]) -> None:
        """Capture nothing yet."""
        self._step = step
        # Detached: a clone of a weight that requires grad would refer to the stream it was made on.
        self._state = [tensor.detach() for tensor in state]
        self._graphs: dict[tuple[Any, ...], Graph] = {}
        self._pool: Any = None

    def __call__(self, *inputs: Tensor) -> Tensor:
        """Run one step and return its loss, on the device."""
        if not inputs[0].is_cuda:
            return self._step(*inputs).detach()
        with torch.cuda.device(inputs[0].device):
            return self._replay(*inputs)

    def _replay(self, *inputs: Tensor) -> Tensor:
        key = tuple((tuple(tensor.shape), tensor.dtype) for tensor in inputs)
        if key not in self._graphs:
            self._graphs[key] = self._capture(inputs)
        captured = self._graphs[key]
        for static, tensor in zip(captured.inputs, inputs, strict=True):
            static.copy_(tensor, non_blocking=True)
        captured.graph.replay()
        return captured.loss.clone()

    def _capture(self, inputs: tuple[Tensor, ...]) -> Graph:
        """Run the step a few times, record it, and restore the state."""
        static_inputs = tuple(tensor.to(inputs[0].device, copy=True) for tensor in inputs)
        before = [tensor.clone() for tensor in self._state]
        # Lazy initialisation must happen before the capture, on a side stream as torch requires.
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with deterministic(), torch.cuda.stream(side):
            for _ in range(_WARM_UPS):
                self._step(*static_inputs)
        torch.cuda.current_stream().wait_stream(side)
        # Graphs run one after another and losses are copied, so all may share one memory pool.
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        with deterministic(), no_garbage_collection(), torch.cuda.graph(graph, pool=self._pool):
            loss = self._step(*static_inputs).detach()
        with torch.no_grad():
            torch._foreach_copy_(self._state, before)
        return Graph(static_inputs, graph, loss)
