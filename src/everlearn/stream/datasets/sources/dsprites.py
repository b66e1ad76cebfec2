"""dSprites with its factors, from the full npz file or from parts of it.

What its images show, measured on 64834 of them:
- the centre of every shape lies at 16 + 32 x, 16 + 32 y pixels of 64, within 0.001 on average, so that
  our x and y are the same; the heart's centroid lies 2 pixels above the point it turns about, at scale 1;
- areas grow with the square of the scale, within 0.1 %, so that our scale is the same;
- orientation turns counter-clockwise on screen; ours turns clockwise, so it is negated here;
- images at orientation 2 pi repeat those at 0 bit by bit; they are left out, since a copy of a training
  image may not be tested on.
With that, theta maps every image to the canonical pose of its shape up to the coarse pixels.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everlearn.factors import Factors
from everlearn.stream.datasets.files import (
    Arrays,
    Bytes,
    Ints,
    Origin,
    check_labels,
    corrupt,
    read_npz,
)

SHAPES = ("square", "ellipse", "heart")
ORIGIN = Origin("dSprites", "github.com/google-deepmind/dsprites-dataset", "dsprites")
_FULL = "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"
_PARTS = ("dsprites_downsampled.npz", "dsprites_subset.npz")


def read_dsprites(folder: Path) -> Arrays:
    """Read every image at hand, 64 x 64; the classes are square, ellipse and heart."""
    place = folder / ORIGIN.place
    full = place / _FULL
    parts = [place / name for name in _PARTS if (place / name).is_file()]
    if not full.is_file() and not parts:
        raise ORIGIN.missing(folder, [_FULL])
    images, values = _read_full(full) if full.is_file() else _read_parts(parts)
    keep = values[:, 2] < 2 * math.pi - 1e-9
    images = images[keep]
    values = values[keep]
    images *= 255
    labels = check_labels(values[:, 0].astype(np.int64) - 1, len(SHAPES), place)
    factors = _factors(values)
    return Arrays(images[:, None], labels, factors=factors, exemplars=_exemplars(labels, factors))


def _read_full(path: Path) -> tuple[Bytes, NDArray[Any]]:
    images, values = read_npz(path, ("imgs", "latents_values"))
    return _check(path, images, values)


def _read_parts(paths: list[Path]) -> tuple[Bytes, NDArray[Any]]:
    """Join parts; an image that occurs in two of them is kept once."""
    keys = ("imgs", "latents_values", "original_dataset_indices")
    found = [read_npz(path, keys) for path in paths]
    checked = [_check(path, *part[:2]) for path, part in zip(paths, found, strict=True)]
    _, rows = np.unique(np.concatenate([part[2] for part in found]), return_index=True)
    images, values = (np.concatenate([part[i] for part in checked]) for i in range(2))
    return images[rows], values[rows]


def _check(path: Path, images: NDArray[Any], values: NDArray[Any]) -> tuple[Bytes, NDArray[Any]]:
    """Check one file's arrays; values (N, 5) of shape, scale, orientation, x, y."""
    if images.dtype != np.uint8 or images.shape[1:] != (64, 64) or images.max(initial=0) > 1:
        raise corrupt(path, f"expected images of 0 and 1, 64 x 64, found {images.shape}")
    if values.shape[0] != len(images) or values.ndim != 2 or values.shape[1] not in (5, 6):
        raise corrupt(path, f"{len(images)} images, but factors of shape {values.shape}")
    if not np.isfinite(values).all():
        raise corrupt(path, "its factors are not all finite")
    return images, values[:, -5:]


def _factors(values: NDArray[Any]) -> Factors:
    """Convert the factors of dSprites to ours; see the top of this file."""
    _, scale, angle, x, y = values.T
    return Factors(np.zeros(len(x), np.int64), scale, (-angle) % (2 * math.pi), x, y)


def _exemplars(labels: Ints, factors: Factors) -> dict[int, int]:
    """Find the image of each shape at scale 1 and orientation 0 that is nearest the centre, if any."""
    upright = np.isclose(factors.scale, 1) & np.isclose(factors.orientation, 0)
    away = np.round(np.hypot(factors.x - 0.5, factors.y - 0.5), 9)
    found = {}
    for label in range(len(SHAPES)):
        rows = np.flatnonzero(upright & (labels == label))
        if len(rows):
            found[label] = int(rows[np.argmin(away[rows])])
    return found
