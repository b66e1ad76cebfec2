"""Errors of the predicted affine maps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from everlearn.metrics.rows import Floats, Ints, Row, of_kind

# Places in the row-major 2 x 3 map.
LINEAR = [0, 1, 3, 4]
TRANSLATION = [2, 5]


class ThetaErrors(NamedTuple):
    """Root mean squared errors over the tasks learned so far, one entry a measured moment.

    Attributes:
        learned: (L,) rising.
        every: (L,) over all six entries.
        linear: (L,) over the four of rotation and scale.
        translation: (L,) over the two of translation.
    """

    learned: Ints
    every: Floats
    linear: Floats
    translation: Floats


def theta_errors(rows: Iterable[Row], new: bool = False) -> ThetaErrors:
    """Pool the theta rows of the tasks learned so far; of two rows for one pair the later holds.

    Args:
        new: pool those of tasks not learned yet instead.
    """
    pairs = {(row["learned"], row["tested"]): row for row in of_kind(rows, "theta")}
    kept = [row for (done, tested), row in pairs.items() if (tested > done) == new and row["total"]]
    learned, place = np.unique(
        np.array([row["learned"] for row in kept], np.int64), return_inverse=True
    )
    squares, total = np.zeros((len(learned), 6)), np.zeros(len(learned))
    np.add.at(squares, place, np.array([row["squares"] for row in kept]).reshape(-1, 6))
    np.add.at(total, place, np.array([row["total"] for row in kept]))
    means = squares / total[:, None]
    parts = (means, means[:, LINEAR], means[:, TRANSLATION])
    return ThetaErrors(learned, *(np.sqrt(part.mean(axis=1)) for part in parts))
