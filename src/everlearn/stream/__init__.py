"""Streams of tasks: a pure function of a seed, random access to any task and row."""

from pathlib import Path

from everlearn.stream.arrays import ArrayStream
from everlearn.stream.arrays.codec import KEY
from everlearn.stream.gaussians import KEY as POINTS
from everlearn.stream.gaussians import Gaussians
from everlearn.stream.spec import Stream
from everlearn.stream.task import Batch, Split, Task

__all__ = ["ArrayStream", "Batch", "Gaussians", "Split", "Stream", "Task", "read_stream"]


def read_stream(text: str, data: str | Path | None = None) -> Stream | ArrayStream | Gaussians:
    """Read any stream from its JSON; one of real images is on the data of a folder."""
    if f'"{POINTS}"' in text:
        return Gaussians.from_json(text)
    return ArrayStream.from_json(text, data) if f'"{KEY}"' in text else Stream.from_json(text)
