"""Averages of what was measured, and the error for what was not."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class NotMeasuredError(ValueError):
    """The rows lack what a number is computed from, or it would not mean what its name says."""


def mean_of_measured(values: ArrayLike, needed: str) -> float:
    """Average the values that are not NaN; raise and say what is needed where all are.

    Args:
        needed: what a row must hold for the number, for the error message.
    """
    array = np.asarray(values, np.float64)
    measured = array[~np.isnan(array)]
    if measured.size == 0:
        raise NotMeasuredError(f"no row holds {needed}; measure it in the run to have this number")
    return float(measured.mean())
