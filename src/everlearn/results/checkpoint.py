"""Where a run can go on from: a zip of arrays that numpy reads, and a header in JSON."""

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

from everlearn.disk import replacing
from everlearn.results.state import Arrays, check_array

_NUMBER = 1
_HEADER = "checkpoint.json"
_SUFFIX = ".npy"
# What zipfile, numpy and json raise for a file that is not as it was written.
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error,
    ValueError, TypeError, KeyError, EOFError, RuntimeError,
)  # fmt: skip


class Checkpoint(NamedTuple):
    """What a learner goes on from."""

    task: int
    step: int
    arrays: Arrays
    values: dict[str, Any]


class Header(NamedTuple):
    """What a checkpoint says besides its arrays.

    Attributes:
        digest: of the run's stream and settings.
        rows: bytes of the rows written before it.
        costs: bytes of the costs written before it.
        names: of the arrays.
    """

    digest: str
    task: int
    step: int
    rows: int
    costs: int
    values: dict[str, Any]
    names: list[str]


def write_checkpoint(path: Path, header: Header, arrays: Arrays) -> None:
    """Write a checkpoint, array by array, in the place of the last."""
    for name, array in arrays.items():
        _check_name(name)
        check_array(array, name)
    text = json.dumps({"everlearn_checkpoint": _NUMBER, **header._asdict()})
    with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo(_HEADER), text)
        for name, array in arrays.items():
            info = zipfile.ZipInfo(name + _SUFFIX)
            with archive.open(info, "w", force_zip64=True) as member:
                write_array(member, array, allow_pickle=False)


def read_header(path: Path, digest: str) -> Header:
    """Read what a checkpoint says of itself, if it is one of this run."""
    with _damage(path), zipfile.ZipFile(path) as archive:
        fields = json.loads(archive.read(_HEADER))
        number = fields.pop("everlearn_checkpoint")
    if number != _NUMBER:
        raise ValueError(
            f"{path} is a checkpoint of number {number!r}; this version of everlearn reads {_NUMBER}: "
            "update everlearn"
        )
    with _damage(path):
        header = Header(**fields)
    if header.digest != digest:
        raise ValueError(
            f"{path} belongs to another run, of another stream or settings; put back this run's own, "
            "or delete it to start the run from its beginning"
        )
    return header


def read_checkpoint(path: Path, digest: str) -> Checkpoint:
    """Read a checkpoint of this run."""
    header = read_header(path, digest)
    with _damage(path), zipfile.ZipFile(path) as archive:
        arrays = {name: _array(archive, name + _SUFFIX) for name in header.names}
    return Checkpoint(header.task, header.step, arrays, header.values)


def _array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(name) as member:
        array: NDArray[Any] = read_array(member, allow_pickle=False)
        # The checksum is compared only when the end is reached.
        if member.read(1):
            raise ValueError(f"{name} is longer than its array")
    return array


def _check_name(name: str) -> None:
    if not name.isprintable():
        raise ValueError(f"names of arrays must be printable text, found {name!r}")


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    try:
        yield
    except (*_DAMAGE, OSError) as error:
        # A damaged directory makes zipfile seek to places before the file: EINVAL.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise ValueError(
            f"{path} is damaged ({error}); put back a copy of it, or delete it to start the run from "
            "its beginning"
        ) from error
