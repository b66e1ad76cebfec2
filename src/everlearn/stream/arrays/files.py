"""Data sets from the user's own files: where the folder is, how files are read, what is said if not.

No pickle is ever loaded.
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
    """Images (N, C, H, W) that rows are taken of: a numpy array, or files read when asked for."""

    @property
    def shape(self) -> tuple[int, ...]:
        """N, C, H and W."""

    def __getitem__(self, rows: Ints, /) -> NDArray[Any]:
        """Give some rows."""


@dataclass(frozen=True, eq=False)
class Arrays:
    """A data set.

    Attributes:
        images: (N, C, H, W) uint8, or float16 where they are latents.
        labels: (N,) class ids.
        test: (N,) whether an image is of the official test set; None where there is none.
        factors: what images show, where it is known.
        sessions: (N,) the recording session, where there are some.
        experiences: (N,) the task an official list puts a training image into; -1 for test images.
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
    """What a data set is called, where its files come from and where in the data folder they go."""

    title: str
    source: str
    place: str

    def missing(self, folder: Path, files: Sequence[str]) -> FileNotFoundError:
        """An error that says which files are missing, where they come from and where to put them."""
        shown = ", ".join(files[:8]) + (f" and {len(files) - 8} more" if len(files) > 8 else "")
        return FileNotFoundError(
            f"{self.title} is not complete: missing {shown}; from {self.source}; "
            f"put into {folder / self.place}"
        )


def data_folder(data: str | Path | None = None) -> Path:
    """The folder of data sets: the one given, or the one that EVERLEARN_DATA names."""
    chosen = data or os.environ.get(VARIABLE)
    if not chosen:
        raise FileNotFoundError(
            f"no data folder is known; pass --data FOLDER or set {VARIABLE} to the folder that holds "
            "the data sets"
        )
    folder = Path(chosen).expanduser().resolve()
    if not folder.is_dir():
        raise FileNotFoundError(
            f"the data folder {folder} does not exist; make it, or pass another with --data FOLDER or "
            f"{VARIABLE}"
        )
    return folder


def corrupt(path: Path | str, reason: object) -> ValueError:
    """An error that names a file that cannot be read."""
    return ValueError(f"{path} is corrupt or truncated: {reason}; fetch it again")


def read_bytes(path: Path) -> bytes:
    """Read a file, unpacked if its name ends in .gz."""
    if path.suffix != ".gz":
        return path.read_bytes()
    try:
        with gzip.open(path) as file:
            return file.read()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise corrupt(path, error) from None


def read_npz(path: Path, keys: Sequence[str]) -> list[NDArray[Any]]:
    """Read some arrays of an npz file; arrays of Python objects are refused."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return [file[key] for key in keys]
    except KeyError as error:
        raise ValueError(f"{path} is not the expected file: {error.args[0]}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, TypeError) as error:
        raise corrupt(path, error) from None


def check_labels(labels: NDArray[Any], classes: int, path: Path | str) -> Ints:
    """Return labels as int64, or say which file has some that cannot be."""
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise corrupt(path, f"labels must be whole numbers in one row, found {labels.dtype}")
    if len(labels) and not 0 <= labels.min() <= labels.max() < classes:
        raise corrupt(
            path,
            f"labels must lie in 0 .. {classes - 1}, found {labels.min()} .. {labels.max()}",
        )
    return labels.astype(np.int64)
