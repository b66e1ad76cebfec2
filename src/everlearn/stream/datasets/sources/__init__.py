"""The data sets that streams are made of, by name; each is read once per process."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from everlearn.stream.datasets.files import Arrays
from everlearn.stream.datasets.sources.cifar import read_cifar10
from everlearn.stream.datasets.sources.core50 import read_core50
from everlearn.stream.datasets.sources.dsprites import read_dsprites
from everlearn.stream.datasets.sources.idx import read_fashion, read_mnist
from everlearn.stream.datasets.sources.latents import PREFIX, read_latents
from everlearn.stream.datasets.sources.nicv2 import FileLists, read_nicv2
from everlearn.stream.datasets.sources.omniglot import read_omniglot


class Source(NamedTuple):
    """How to read a data set, its default classes per task, and whether its images are latents."""

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
    """Find a data set by name; latents/NAME is a file of latents."""
    if isinstance(name, str) and _LATENTS.fullmatch(name):
        return Source(partial(read_latents, name=name), 5, latents=True)
    if not isinstance(name, str) or name not in SOURCES:
        raise ValueError(f"unknown data set {name!r}; known: {', '.join(SOURCES)}, latents/NAME")
    return SOURCES[name]


@lru_cache(maxsize=4)
def load(name: str, folder: Path, lists: FileLists | None = None) -> Arrays:
    """Read a data set; with CORe50, read only the frames in the official file lists if given."""
    if lists is None:
        return find_source(name).read(folder)
    if name != "core50":
        raise ValueError(f"scenario {lists.name!r} is made of CORe50, found data set {name!r}")
    return read_nicv2(folder, lists)
