"""The table of formats. A format is two pure functions: a task to files, and files to tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from everlearn.stream.export import npz, png, tar
from everlearn.stream.export.content import Content, Header, Table
from everlearn.stream.export.unit import File


class Format(NamedTuple):
    """How a task becomes files."""

    pack: Callable[[Content], Iterator[File]]
    unpack: Callable[[Header, Mapping[str, bytes]], dict[str, Table]]


FORMATS = {
    "npz": Format(npz.pack, npz.unpack),
    "png": Format(png.pack, png.unpack),
    "tar": Format(tar.pack, tar.unpack),
}


def find_format(name: str) -> Format:
    """Look a format up."""
    if name not in FORMATS:
        raise ValueError(f"unknown format {name!r}; known: {', '.join(FORMATS)}")
    return FORMATS[name]
