"""Streams of tasks: a pure function of a seed, random access to any task and row."""

from everlearn.stream.datasets.stream import ArrayStream
from everlearn.stream.environments.stream import Environments
from everlearn.stream.protocol import TaskStream
from everlearn.stream.read import read_stream
from everlearn.stream.sprites.stream import Stream
from everlearn.stream.synthetic.gaussians import Gaussians
from everlearn.stream.synthetic.latents import Latents
from everlearn.stream.task import Batch, Split, Task

__all__ = [
    "ArrayStream",
    "Batch",
    "Environments",
    "Gaussians",
    "Latents",
    "Split",
    "Stream",
    "Task",
    "TaskStream",
    "read_stream",
]
