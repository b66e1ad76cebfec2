"""Rows as a run writes them: one plain dictionary a measurement, told apart by its kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Row = dict[str, Any]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class NotMeasuredError(ValueError):
    """The rows do not hold what a number is made of."""


def of_kind(rows: Iterable[Row], kind: str) -> list[Row]:
    """Keep the rows of one kind, in their order."""
    return [row for row in rows if row["kind"] == kind]


def mean_of_measured(values: ArrayLike, needed: str) -> float:
    """Average the numbers that are not NaN; say what was needed where there are none."""
    array = np.asarray(values, np.float64)
    measured = array[~np.isnan(array)]
    if measured.size == 0:
        raise NotMeasuredError(f"no row holds {needed}; measure it in the run to have this number")
    return float(measured.mean())
