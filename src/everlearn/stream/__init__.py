"""Streams of tasks: a pure function of a seed, random access to any task and row."""

from everlearn.stream.spec import Stream
from everlearn.stream.task import Batch, Split, Task

__all__ = ["Batch", "Split", "Stream", "Task"]
