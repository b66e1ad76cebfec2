"""Factors of variation as a table, and the affine map they stand for."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everlearn.philox import Floats, sincos_turns

NAMES = ("color", "scale", "orientation", "x", "y")
# Renderers count in 1/1024 pixel with 32 bits: on the largest canvas, this is what fits.
BOUNDS = {
    "color": (0, 4095),
    "scale": (0.001, 1000.0),
    "orientation": (-1e6, 1e6),
    "x": (-1000.0, 1000.0),
    "y": (-1000.0, 1000.0),
}


class Factors(NamedTuple):
    """One array a factor, all of one length: numpy arrays, or tensors on some device in a batch.

    Attributes:
        color: index into the canvas's colours.
        scale: 1 is canonical.
        orientation: radians; positive turns clockwise on screen, since y points down.
        x: 0 to 1 across the middle half of the canvas, to the right.
        y: likewise, downwards.
    """

    color: Any
    scale: Any
    orientation: Any
    x: Any
    y: Any

    def take(self, rows: ArrayLike) -> Factors:
        """Pick rows of every factor."""
        index = np.asarray(rows)
        return Factors(*(column[index] for column in self))


def canonical(count: int = 1) -> Factors:
    """The factors of a canonical image, `count` times."""
    ones = np.ones(count)
    return Factors(np.zeros(count, np.int64), ones, 0.0 * ones, 0.5 * ones, 0.5 * ones)


def theta(factors: Factors) -> Floats:
    """The affine map (B, 2, 3) from canonical to image coordinates, both in [-1, 1], y down.

    It is what a grid sampler needs to turn an image into its canonical form (Dziadzio et al. 2023).
    """
    scale = np.asarray(factors.scale, float)
    sine, cosine = sincos_turns(np.asarray(factors.orientation, float) / (2 * math.pi))
    out = np.empty((len(scale), 2, 3))
    out[:, 0, 0] = out[:, 1, 1] = scale * cosine
    out[:, 1, 0] = scale * sine
    out[:, 0, 1] = -out[:, 1, 0]
    out[:, 0, 2] = np.asarray(factors.x) - 0.5
    out[:, 1, 2] = np.asarray(factors.y) - 0.5
    return out


def check_factors(factors: Factors, colors: int) -> Factors:
    """Return the factors as arrays of one length, or say which value is not allowed."""
    if not isinstance(factors, tuple) or len(factors) != len(NAMES):
        raise TypeError(
            f"factors must be {', '.join(NAMES)}, as Factors holds them, found {factors!r}"
        )
    arrays = Factors(*(np.atleast_1d(np.asarray(column)) for column in factors))
    lengths = {name: len(column) for name, column in zip(NAMES, arrays, strict=True)}
    if len(set(lengths.values())) != 1 or any(column.ndim != 1 for column in arrays):
        raise ValueError(f"factors must be rows of one length, found lengths {lengths}")
    if len(arrays.color) == 0:
        return arrays
    for name, column in zip(NAMES, arrays, strict=True):
        if column.dtype.kind not in "biuf" or not np.isfinite(column).all():
            raise ValueError(
                f"factor {name!r} must be finite numbers, found {_first_bad(column)!r}"
            )
        if not BOUNDS[name][0] <= column.min() <= column.max() <= BOUNDS[name][1]:
            raise ValueError(
                f"factor {name!r} must lie in {BOUNDS[name][0]} .. {BOUNDS[name][1]}, found "
                f"{column.min()} .. {column.max()}"
            )
    low, high = arrays.color.min(), arrays.color.max()
    if low < 0 or high >= colors or (arrays.color != np.floor(arrays.color)).any():
        raise ValueError(
            f"factor 'color' must be a whole number in 0 .. {colors - 1} (the canvas has {colors} "
            f"colours), found {low} .. {high}; add colours to the canvas or lower the index"
        )
    return arrays


def _first_bad(column: NDArray[Any]) -> object:
    if column.dtype.kind not in "biuf":
        return column.dtype.name
    return float(column[~np.isfinite(column)][0])
