"""Files of data sets: find the data folder, read files, and explain what is missing or corrupt.

Pickles are never loaded.
"""

from __future__ import annotations

import gzip
import os
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from everlearn.factors import Factors

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
VARIABLE = "EVERLEARN_DATA"


class Images(Protocol):
    """Images (N, C, H, W) that can be indexed by rows: a numpy array, or files that are read on request."""

    @property
    def shape(self) -> tuple[int, ...]:
        """N, C, H and W."""

    def __getitem__(self, rows: Ints, /) -> NDArray[Any]:
        """Return some rows."""


@dataclass(frozen=True, eq=False)
class Arrays:
    """A data set.

    Attributes:
        images: (N, C, H, W) uint8, or float16 where they are latents.
        labels: (N,) class ids.
        test: (N,) whether an image is in the official test set; None where there is no such set.
        factors: the factors of variation, where they are known.
        sessions: (N,) recording sessions, where the data have them.
        experiences: (N,) the task of each training image in the official file lists; -1 for test images.
        exemplars: the row of each class's canonical image, by class id, where there is one.
    """

    images: Images
    labels: Ints
    test: NDArray[np.bool_] | None = None
    factors: Factors | None = None
    sessions: Ints | None = None
    experiences: Ints | None = None
    exemplars: dict[int, int] | None = None

    def __len__(self) -> int:
        """Count the images."""
        return len(self.labels)


class Origin(NamedTuple):
    """The title of a data set, where to download it and its subfolder of the data folder."""

    title: str
    source: str
    place: str

    def missing(self, folder: Path, files: Sequence[str]) -> FileNotFoundError:
        """Return an error that says which files are missing, where to get them and where to put them."""
        shown = ", ".join(files[:8]) + (f" and {len(files) - 8} more" if len(files) > 8 else "")
        return FileNotFoundError(
            f"{self.title} is not complete: missing {shown}; get it from {self.source} "
            f"and put it into {folder / self.place}"
        )


def data_folder(data: str | Path | None = None) -> Path:
    """Return the folder of the data sets: `data` if given, else the variable EVERLEARN_DATA."""
    chosen = data or os.environ.get(VARIABLE)
    if not chosen:
        raise FileNotFoundError(
            f"no data folder is given; pass --data FOLDER or set {VARIABLE} to the folder that holds "
            "the data sets"
        )
    folder = Path(chosen).expanduser().resolve()
    if not folder.is_dir():
        raise FileNotFoundError(
            f"the data folder {folder} does not exist; create it, or give another with --data FOLDER or "
            f"{VARIABLE}"
        )
    return folder


def corrupt(path: Path | str, reason: object) -> ValueError:
    """Return an error that names a file that cannot be read."""
    return ValueError(f"{path} is corrupt or truncated: {reason}; download it again")


def read_bytes(path: Path) -> bytes:
    """Read a file; decompress it if its name ends in .gz."""
    if path.suffix != ".gz":
        return path.read_bytes()
    try:
        with gzip.open(path) as file:
            return file.read()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise corrupt(path, error) from None


def read_npz(path: Path, keys: Sequence[str]) -> list[NDArray[Any]]:
    """Read arrays of an npz file; arrays of Python objects are refused."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return [file[key] for key in keys]
    except KeyError as error:
        raise ValueError(f"{path} is not the expected file: {error.args[0]}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, TypeError) as error:
        raise corrupt(path, error) from None


def check_labels(labels: NDArray[Any], classes: int, path: Path | str) -> Ints:
    """Return labels as int64; raise where they are not class ids below `classes`."""
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise corrupt(path, f"labels must be whole numbers in one row, found {labels.dtype}")
    if len(labels) and not 0 <= labels.min() <= labels.max() < classes:
        raise corrupt(
            path,
            f"labels must lie in 0 .. {classes - 1}, found {labels.min()} .. {labels.max()}",
        )
    return labels.astype(np.int64)
