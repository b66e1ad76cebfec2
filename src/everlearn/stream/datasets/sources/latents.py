"""Latents of images from one npz file, DATA/latents/NAME.npz, as `everlearn latents` writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everlearn.stream.datasets.files import Arrays, Origin, check_labels, corrupt, read_npz
from everlearn.stream.datasets.latents import LatentTable

PREFIX = "latents/"
_MAX_CLASSES = 10**6
_KEYS = ("latents", "labels", "sessions", "test")


def read_latents(folder: Path, name: str) -> Arrays:
    """Read a file of latents (N, C, H, W) float16, labels, sessions and test flags.

    Sessions are left out where all latents share one.
    """
    file = name.removeprefix(PREFIX) + ".npz"
    path = folder / PREFIX / file
    if not path.is_file():
        origin = Origin(f"the data set {name}", "the command `everlearn latents`", PREFIX)
        raise origin.missing(folder, [file])
    latents, labels, sessions, test = read_npz(path, _KEYS)
    _check_latents(latents, path)
    for key, dtype_kinds, column in (
        ("labels", "iu", labels),
        ("sessions", "iu", sessions),
        ("test", "b", test),
    ):
        if column.shape != (len(latents),) or column.dtype.kind not in dtype_kinds:
            found = f"{key} of {column.dtype} {column.shape}"
            raise corrupt(path, f"{found} do not match {len(latents)} latents")
    if test.all():
        raise corrupt(path, "all of its latents are for testing")
    return Arrays(
        LatentTable(latents),
        check_labels(labels, _MAX_CLASSES, path),
        test=test,
        sessions=sessions.astype(np.int64) if len(np.unique(sessions)) > 1 else None,
    )


def _check_latents(latents: NDArray[Any], path: Path) -> None:
    wrong = latents.dtype != np.float16 or latents.ndim != 4 or 0 in latents.shape
    if wrong or latents.shape[2] != latents.shape[3]:
        found = f"{latents.dtype} {latents.shape}"
        raise corrupt(path, f"latents must be float16 (N, C, H, W) with H = W, found {found}")
    if not np.isfinite([latents.min(), latents.max()]).all():
        raise corrupt(path, "its latents are not all finite")
