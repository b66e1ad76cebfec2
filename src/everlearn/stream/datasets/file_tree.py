"""Files in a folder or a zip archive, and the PNG images among them."""

from __future__ import annotations

import os
import zipfile
import zlib
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path

import numpy as np

from everlearn.stream.datasets.files import Bytes, Ints, Origin, corrupt


@dataclass(frozen=True)
class FileTree:
    """Files under a root, which is a folder or a zip; paths use slashes and are relative to `prefix`."""

    root: Path
    prefix: str = ""

    def names(self) -> list[str]:
        """List the paths of all files, sorted."""
        if self.root.is_dir():
            return sorted(_walk(self.root))
        return sorted(name for name in _members(self.root) if not name.endswith("/"))

    def read(self, name: str) -> bytes:
        """Read one file, or raise FileNotFoundError."""
        if self.root.is_dir():
            return (self.root / self.prefix / name).read_bytes()
        try:
            return _archive(self.root, os.getpid()).read(self.prefix + name)
        except KeyError:
            raise FileNotFoundError(self.label(name)) from None
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
            raise corrupt(self.label(name), error) from None

    def label(self, name: str) -> str:
        """Return the full name of a file, for messages."""
        return f"{self.root}/{self.prefix}{name}"


def find_file_tree(folder: Path, stem: str) -> FileTree | None:
    """Return the folder `stem`, or the first zip with a name that starts with it."""
    if (folder / stem).is_dir():
        return FileTree(folder / stem)
    zips = sorted(folder.glob(f"{stem}*.zip"))
    return FileTree(zips[0]) if zips else None


@dataclass(frozen=True, eq=False)
class LazyImages:
    """PNG images that are read on request.

    Attributes:
        names: the path of every row.
        side: the height and width that every file must have.
        origin: where to download a missing file, for error messages.
        folder: the data folder, for error messages.
    """

    tree: FileTree
    names: list[str]
    side: int
    origin: Origin
    folder: Path

    @property
    def shape(self) -> tuple[int, ...]:
        """N, C, H and W."""
        return len(self.names), 3, self.side, self.side

    def __getitem__(self, rows: Ints) -> Bytes:
        """Read some rows."""
        out = np.empty((len(rows), *self.shape[1:]), np.uint8)
        for place, row in enumerate(rows.tolist()):
            out[place] = self._read(self.names[row]).transpose(2, 0, 1)
        return out

    def _read(self, name: str) -> Bytes:
        try:
            data = self.tree.read(name)
        except FileNotFoundError:
            missing = f"{name} in {self.tree.root.name}"
            raise self.origin.missing(self.folder, [missing]) from None
        return decode_png(data, self.tree.label(name), "RGB", self.side)


def decode_png(data: bytes, name: str, mode: str, side: int) -> Bytes:
    """Decode a square PNG: (side, side) for mode "L", (side, side, 3) for "RGB"."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            "reading PNG images needs Pillow; install it with: pip install pillow"
        ) from error
    try:
        image = Image.open(BytesIO(data), formats=("PNG",)).convert(mode)
    except (OSError, SyntaxError, ValueError, zlib.error, Image.DecompressionBombError) as error:
        raise corrupt(name, error) from None
    if image.size != (side, side):
        raise corrupt(
            name, f"expected {side} x {side} pixels, found {image.width} x {image.height}"
        )
    return np.asarray(image)


def _walk(root: Path) -> list[str]:
    found = []
    for folder, _, files in os.walk(root):
        inside = Path(folder).relative_to(root).as_posix()
        found += [name if inside == "." else f"{inside}/{name}" for name in files]
    return found


def _members(path: Path) -> list[str]:
    names = _archive(path, os.getpid()).namelist()
    return [name for name in names if not name.startswith("__MACOSX/")]


@lru_cache(maxsize=8)
def _archive(path: Path, process: int) -> zipfile.ZipFile:
    """Open a zip once per process: a forked worker must not share its parent's file position."""
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, EOFError) as error:
        raise corrupt(path, error) from None
