"""A table of factors of variation, and the affine maps they define."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everlearn.core.random import Floats, sincos_turns

FACTOR_NAMES = ("color", "scale", "orientation", "x", "y")
# Renderers use 32-bit fixed point with 1/1024 pixel: larger values overflow on the largest canvas.
BOUNDS = {
    "color": (0, 4095),
    "scale": (0.001, 1000.0),
    "orientation": (-1e6, 1e6),
    "x": (-1000.0, 1000.0),
    "y": (-1000.0, 1000.0),
}


class Factors(NamedTuple):
    """One array per factor, all of the same length: numpy arrays, or tensors in a batch.

    Attributes:
        color: index into the canvas's colours.
        scale: 1 is canonical.
        orientation: radians; positive angles turn clockwise on screen, since y points down.
        x: position to the right, 0 to 1 across the middle half of the canvas.
        y: position downwards, 0 to 1 across the middle half of the canvas.
    """

    color: Any
    scale: Any
    orientation: Any
    x: Any
    y: Any

    def take(self, rows: ArrayLike) -> Factors:
        """Select rows of every factor."""
        index = np.asarray(rows)
        return Factors(*(column[index] for column in self))


def canonical_factors(count: int = 1) -> Factors:
    """Return the factors of a canonical image, repeated `count` times."""
    ones = np.ones(count)
    return Factors(np.zeros(count, np.int64), ones, 0.0 * ones, 0.5 * ones, 0.5 * ones)


def theta(factors: Factors) -> Floats:
    """Return affine maps (B, 2, 3) from canonical to image coordinates, both in [-1, 1], y down.

    A grid sampler needs these maps to turn images into canonical form (Dziadzio et al. 2023).
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
    """Return the factors as arrays of one length; raise on values that cannot be rendered."""
    if not isinstance(factors, tuple) or len(factors) != len(FACTOR_NAMES):
        raise TypeError(
            f"factors must be a Factors tuple ({', '.join(FACTOR_NAMES)}), found {factors!r}"
        )
    arrays = Factors(*(np.atleast_1d(np.asarray(column)) for column in factors))
    lengths = {name: len(column) for name, column in zip(FACTOR_NAMES, arrays, strict=True)}
    if len(set(lengths.values())) != 1 or any(column.ndim != 1 for column in arrays):
        raise ValueError(f"factors must be 1-D arrays of one length, found lengths {lengths}")
    if len(arrays.color) == 0:
        return arrays
    for name, column in zip(FACTOR_NAMES, arrays, strict=True):
        if column.dtype.kind not in "biuf" or not np.isfinite(column).all():
            raise ValueError(
                f"factor {name!r} must be finite numbers, found {_first_invalid(column)!r}"
            )
        if not BOUNDS[name][0] <= column.min() <= column.max() <= BOUNDS[name][1]:
            raise ValueError(
                f"factor {name!r} must lie in {BOUNDS[name][0]} .. {BOUNDS[name][1]}, found "
                f"{column.min()} .. {column.max()}"
            )
    low = arrays.color.min()
    high = arrays.color.max()
    if low < 0 or high >= colors or (arrays.color != np.floor(arrays.color)).any():
        raise ValueError(
            f"factor 'color' must be a whole number in 0 .. {colors - 1} (the canvas has {colors} "
            f"colours), found {low} .. {high}; add colours to the canvas or lower the index"
        )
    return arrays


def _first_invalid(column: NDArray[Any]) -> object:
    if column.dtype.kind not in "biuf":
        return column.dtype.name
    return float(column[~np.isfinite(column)][0])
