"""Errors of the predicted affine maps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from everlearn.metrics.measured import Floats, Ints
from everlearn.rows import Row, ThetaRow, of_kind

# Columns of the flattened 2 x 3 map.
LINEAR = [0, 1, 3, 4]
TRANSLATION = [2, 5]


class ThetaErrors(NamedTuple):
    """Root mean squared errors over the tasks learned so far, one entry for each measured moment.

    Attributes:
        learned: (L,) rising.
        overall: (L,) over all six entries.
        linear: (L,) over the four of rotation and scale.
        translation: (L,) over the two of translation.
    """

    learned: Ints
    overall: Floats
    linear: Floats
    translation: Floats


def theta_errors(rows: Iterable[Row], new: bool = False) -> ThetaErrors:
    """Pool the theta rows of the tasks learned so far; of two rows for one pair the later counts.

    Args:
        new: pool those of tasks not learned yet instead.
    """
    pairs = {(row["learned"], row["tested"]): row for row in of_kind(rows, ThetaRow)}
    kept = [row for (done, tested), row in pairs.items() if (tested > done) == new and row["total"]]
    moments = np.array([row["learned"] for row in kept], np.int64)
    learned, place = np.unique(moments, return_inverse=True)
    sums = np.zeros((len(learned), 6))
    np.add.at(sums, place, np.array([row["squared_errors"] for row in kept]).reshape(-1, 6))
    total = np.zeros(len(learned))
    np.add.at(total, place, np.array([row["total"] for row in kept]))
    means = sums / total[:, None]
    return ThetaErrors(
        learned,
        np.sqrt(means.mean(axis=1)),
        np.sqrt(means[:, LINEAR].mean(axis=1)),
        np.sqrt(means[:, TRANSLATION].mean(axis=1)),
    )
