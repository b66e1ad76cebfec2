"""Checkpoints: a zip of arrays that numpy reads, with a header in JSON."""

from __future__ import annotations

import errno
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from numpy.lib.format import read_array, write_array
from numpy.typing import NDArray

from everlearn.core.files import replace_atomically
from everlearn.core.state import Arrays, check_array

_FORMAT = 1
_HEADER = "checkpoint.json"
_SUFFIX = ".npy"
# What zipfile, numpy and json raise for a damaged file.
_DAMAGE_ERRORS = (
    zipfile.BadZipFile, zlib.error, struct.error,
    ValueError, TypeError, KeyError, EOFError, RuntimeError,
)  # fmt: skip


class Checkpoint(NamedTuple):
    """The state of a learner after a task: arrays by name, and plain values."""

    task: int
    step: int
    arrays: Arrays
    values: dict[str, Any]


class Header(NamedTuple):
    """The header of a checkpoint; its field names are part of the file format.

    Attributes:
        digest: SHA-256 of the stream and the settings of the run.
        rows: size of rows.jsonl when the checkpoint was written, in bytes.
        costs: size of costs.jsonl, in bytes.
        names: names of the arrays.
    """

    digest: str
    task: int
    step: int
    rows: int
    costs: int
    values: dict[str, Any]
    names: list[str]


def write_checkpoint(path: Path, header: Header, arrays: Arrays) -> None:
    """Replace the last checkpoint atomically."""
    for name, array in arrays.items():
        _check_name(name)
        check_array(array, name)
    text = json.dumps({"everlearn_checkpoint": _FORMAT, **header._asdict()})
    with replace_atomically(path) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo(_HEADER), text)
        for name, array in arrays.items():
            info = zipfile.ZipInfo(name + _SUFFIX)
            with archive.open(info, "w", force_zip64=True) as member:
                write_array(member, array, allow_pickle=False)


def read_header(path: Path, digest: str) -> Header:
    """Read the header of a checkpoint; raise where it belongs to another run."""
    with _damage_explained(path), zipfile.ZipFile(path) as archive:
        fields = json.loads(archive.read(_HEADER))
        file_format = fields.pop("everlearn_checkpoint")
    if file_format != _FORMAT:
        raise ValueError(
            f"{path} has checkpoint format {file_format!r}; this version of everlearn reads {_FORMAT}: "
            "update everlearn"
        )
    with _damage_explained(path):
        header = Header(**fields)
    if header.digest != digest:
        raise ValueError(
            f"{path} belongs to another run with another stream or other settings; put back the checkpoint "
            "of this run, or delete it to start the run from its beginning"
        )
    return header


def read_checkpoint(path: Path, digest: str) -> Checkpoint:
    """Read a checkpoint of this run."""
    header = read_header(path, digest)
    with _damage_explained(path), zipfile.ZipFile(path) as archive:
        arrays = {name: _read_member(archive, name + _SUFFIX) for name in header.names}
    return Checkpoint(header.task, header.step, arrays, header.values)


def _read_member(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(name) as member:
        array: NDArray[Any] = read_array(member, allow_pickle=False)
        # zipfile compares the checksum only when it reads past the end.
        if member.read(1):
            raise ValueError(f"{name} is longer than its array")
    return array


def _check_name(name: str) -> None:
    if not name.isprintable():
        raise ValueError(f"array names must be printable text, found {name!r}")


@contextmanager
def _damage_explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (*_DAMAGE_ERRORS, OSError) as error:
        # A damaged zip directory makes zipfile seek to a negative position: EINVAL.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise ValueError(
            f"{path} is damaged ({error}); put back a copy of it, or delete it to start the run from "
            "its beginning"
        ) from error
