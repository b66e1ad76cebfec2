"""Files of JSON lines: appended row by row, readable while they grow, compressed once complete."""

from __future__ import annotations

import gzip
import json
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from everlearn.core.files import write_file
from everlearn.core.json_values import to_json_value

JsonObject = dict[str, Any]
PACKED = ".gz"
# No name, no time, no operating system: equal rows give equal bytes on every machine.
_GZIP_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\x02\xff"
_PUT_BACK = "put back a copy of the file"


class RowWriter:
    """An open file of JSON lines; a row is in it completely or not at all."""

    def __init__(self, path: Path, size: int) -> None:
        """Open the file for appending and cut everything after the first `size` bytes."""
        self._file = path.open("ab", buffering=0)
        try:
            _truncate(self._file.fileno(), size, path)
        except BaseException:
            self._file.close()
            raise

    def append(self, row: Mapping[str, object]) -> None:
        """Write a row; readers see it at once."""
        line = encode_row(row)
        size = self._size()
        try:
            self._write(line)
        except BaseException:
            os.ftruncate(self._file.fileno(), size)
            raise

    def sync(self) -> int:
        """Wait until all rows are on the disk; return their size in bytes."""
        os.fsync(self._file.fileno())
        return self._size()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _write(self, line: bytes) -> None:
        written = 0
        while written < len(line):
            written += self._file.write(line[written:])


def encode_row(row: Mapping[str, object]) -> bytes:
    """Encode a row as one line of JSON."""
    return json.dumps(to_json_value(row, "row"), allow_nan=False).encode() + b"\n"


def read_json_lines(path: Path) -> list[JsonObject]:
    """Read the rows of PATH or of PATH.gz; a file that does not exist holds none.

    An incomplete last line is left out: its writer was killed, or is still writing.
    """
    lines = _read_bytes(path).split(b"\n")[:-1]
    return [_decode(line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]


def packed_path(path: Path) -> Path:
    """Return the path of the compressed copy of a file."""
    return path.with_name(path.name + PACKED)


def pack_json_lines(path: Path) -> None:
    """Replace a file by PATH.gz, which `read_json_lines` reads as well; a packed or missing file stays."""
    if not path.exists():
        return
    content = path.read_bytes()
    packed = packed_path(path)
    if packed.exists() and _decompress(packed) != content:
        raise _two_files(path)
    write_file(packed, _compress(content))
    path.unlink()


def _read_bytes(path: Path) -> bytes:
    packed = packed_path(path)
    if not packed.exists():
        return path.read_bytes() if path.exists() else b""
    if path.exists():
        raise _two_files(path)
    return _decompress(packed)


def _two_files(path: Path) -> ValueError:
    return ValueError(f"{path} and {packed_path(path).name} both exist; delete the outdated one")


def _compress(content: bytes) -> bytes:
    """Compress to gzip by hand: Python's `gzip` writes headers that depend on its version."""
    deflate = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    body = deflate.compress(content) + deflate.flush()
    trailer = struct.pack("<II", zlib.crc32(content), len(content) & 0xFFFFFFFF)
    return _GZIP_HEADER + body + trailer


def _decompress(packed: Path) -> bytes:
    content = packed.read_bytes()
    try:
        if not content:  # gzip takes an empty file for empty content
            raise EOFError("it is empty")
        return gzip.decompress(content)
    except (gzip.BadGzipFile, EOFError, zlib.error, struct.error) as error:
        raise ValueError(f"{packed} is damaged: {error}; {_PUT_BACK}") from None


def _decode(line: bytes, place: str) -> JsonObject:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{place} is damaged: {error}; {_PUT_BACK}") from None
    if not isinstance(row, dict):
        raise ValueError(f"{place} is damaged: a row must be a dict; {_PUT_BACK}")
    return row


def _truncate(descriptor: int, size: int, path: Path) -> None:
    found = os.fstat(descriptor).st_size
    if found < size:
        raise ValueError(
            f"{path} is damaged: it has {found} bytes, and the checkpoint needs {size}; put back "
            "a copy of the file, or delete checkpoint.npz to start the run from its beginning"
        )
    os.ftruncate(descriptor, size)
