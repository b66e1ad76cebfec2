"""The table of formats. A format is two functions: from a task to files, and from files to tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from everlearn.stream.export import npz, png, tar
from everlearn.stream.export.task_arrays import Table, TaskArrays, TaskHeader
from everlearn.stream.export.task_files import TaskFile


class Format(NamedTuple):
    """How a task is packed into files and unpacked."""

    pack: Callable[[TaskArrays], Iterator[TaskFile]]
    unpack: Callable[[TaskHeader, Mapping[str, bytes]], dict[str, Table]]


FORMATS = {
    "npz": Format(npz.pack, npz.unpack),
    "png": Format(png.pack, png.unpack),
    "tar": Format(tar.pack, tar.unpack),
}


def find_format(name: str) -> Format:
    """Find a format by name."""
    if name not in FORMATS:
        raise ValueError(f"unknown format {name!r}; known: {', '.join(FORMATS)}")
    return FORMATS[name]
