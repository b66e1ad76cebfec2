"""Data sets that streams can be made of, by name; each is read once a process."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from everlearn.stream.arrays.files import Arrays
from everlearn.stream.arrays.sources.cifar import read_cifar10
from everlearn.stream.arrays.sources.core50 import read_core50
from everlearn.stream.arrays.sources.dsprites import read_dsprites
from everlearn.stream.arrays.sources.idx import read_fashion, read_mnist
from everlearn.stream.arrays.sources.latents import PREFIX, read_latents
from everlearn.stream.arrays.sources.nicv2 import FileLists, read_nicv2
from everlearn.stream.arrays.sources.omniglot import read_omniglot


class Source(NamedTuple):
    """How a data set is read, how many of its classes usually make a task, what its images are."""

    read: Callable[[Path], Arrays]
    classes_per_task: int
    latents: bool = False


SOURCES = {
    "mnist": Source(read_mnist, 2),
    "fashion-mnist": Source(read_fashion, 2),
    "omniglot": Source(read_omniglot, 10),
    "dsprites": Source(read_dsprites, 1),
    "cifar10": Source(read_cifar10, 2),
    "core50": Source(read_core50, 5),
}
_LATENTS = re.compile(PREFIX + r"\w[\w.-]*")


def find_source(name: str) -> Source:
    """Choose a data set by its name; latents/NAME is a file of latents."""
    if isinstance(name, str) and _LATENTS.fullmatch(name):
        return Source(partial(read_latents, name=name), 5, latents=True)
    if not isinstance(name, str) or name not in SOURCES:
        raise ValueError(f"unknown data set {name!r}; known: {', '.join(SOURCES)}, latents/NAME")
    return SOURCES[name]


@lru_cache(maxsize=4)
def load(name: str, folder: Path, lists: FileLists | None = None) -> Arrays:
    """Read a data set, or for CORe50 what official lists name."""
    if lists is None:
        return find_source(name).read(folder)
    if name != "core50":
        raise ValueError(f"scenario {lists.name!r} is made of CORe50, found data set {name!r}")
    return read_nicv2(folder, lists)
