"""Streams of tasks: a pure function of a seed, random access to any task and row."""

from everlearn.stream.arrays import ArrayStream
from everlearn.stream.spec import Stream
from everlearn.stream.task import Batch, Split, Task

__all__ = ["ArrayStream", "Batch", "Split", "Stream", "Task"]
