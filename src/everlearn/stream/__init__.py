"""Streams of tasks: a pure function of a seed, random access to any task and row."""

from pathlib import Path
from typing import TypeAlias

from everlearn.stream.arrays import ArrayStream
from everlearn.stream.arrays.codec import KEY
from everlearn.stream.environments import Environments
from everlearn.stream.environments.spec import KEY as ENVIRONMENTS
from everlearn.stream.gaussians import KEY as POINTS
from everlearn.stream.gaussians import Gaussians
from everlearn.stream.latents import KEY as LATENTS
from everlearn.stream.latents import Latents
from everlearn.stream.spec import Stream
from everlearn.stream.task import Batch, Split, Task

__all__ = [
    "AnyStream",
    "ArrayStream",
    "Batch",
    "Environments",
    "Gaussians",
    "Latents",
    "Split",
    "Stream",
    "Task",
    "read_stream",
]

AnyStream: TypeAlias = Stream | ArrayStream | Environments | Gaussians | Latents


def read_stream(text: str, data: str | Path | None = None) -> AnyStream:
    """Read any stream from its JSON; one of real images is on the data of a folder."""
    if f'"{POINTS}"' in text:
        return Gaussians.from_json(text)
    if f'"{LATENTS}"' in text:
        return Latents.from_json(text)
    if f'"{ENVIRONMENTS}"' in text:
        return Environments.from_json(text, data)
    return ArrayStream.from_json(text, data) if f'"{KEY}"' in text else Stream.from_json(text)
