"""What probes read out of codes: best values, and how they change after an environment was left.

Achille et al. 2018 average the best value over time, and the change from the end of the stage in which an
environment was learned to the end of the sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everlearn.metrics.proportion import share
from everlearn.metrics.rows import Floats, Ints, Row, mean_of_measured, of_kind


class Probed(NamedTuple):
    """Probes of the codes of one environment, in the order of training.

    Attributes:
        step: (K,) optimiser steps since the start of the stream.
        learned: (K,) task that was being learned; -1 before the first step.
        right: (K,) test images whose class was read right.
        total: (K,) test images.
        squares: (K, 2) sums of squared errors of x and y; NaN where they do not vary.
        nats: (K,) lost when the images were drawn again; NaN where that was not asked.
    """

    step: Ints
    learned: Ints
    right: Ints
    total: Ints
    squares: Floats
    nats: Floats

    @property
    def accuracy(self) -> Floats:
        """Share of classes read right, (K,)."""
        return share(self.right, self.total)

    @property
    def square_error(self) -> Floats:
        """Mean of the squared errors of x and y, each from 0 to 1, (K,)."""
        mean: Floats = self.squares.mean(axis=1) / self.total
        return mean

    @property
    def error(self) -> Floats:
        """Nats lost of an image, (K,)."""
        return self.nats / self.total


Found = Mapping[int, Probed]
Read = Callable[[Probed], Floats]


def probed(rows: Iterable[Row]) -> dict[int, Probed]:
    """Gather the rows of codes by environment; of two rows for one moment the later one holds."""
    found: dict[int, dict[tuple[int, int], Row]] = {}
    for row in of_kind(rows, "codes"):
        found.setdefault(row["tested"], {})[row["step"], row["learned"]] = row
    return {place: _series(found[place]) for place in sorted(found)}


def _series(moments: dict[tuple[int, int], Row]) -> Probed:
    rows = [moments[moment] for moment in sorted(moments)]
    step, learned, right, total = (
        np.array([row[name] for row in rows], np.int64) for name in Probed._fields[:4]
    )
    squares = [[np.nan] * 2 if row["squares"] is None else row["squares"] for row in rows]
    nats = [np.nan if row["nats"] is None else row["nats"] for row in rows]
    return Probed(step, learned, right, total, np.array(squares), np.array(nats))


class Ends(NamedTuple):
    """A value of each environment when it was left and in the end; NaN where not measured.

    Attributes:
        environment: (E,) rising.
        own: (E,) at the end of the stage in which it was learned.
        final: (E,) at the end of the run.
    """

    environment: Ints
    own: Floats
    final: Floats


def ends(found: Found, read: Read) -> Ends:
    """Read a value of each environment twice: `ends(found, lambda one: one.error)`."""
    own = [_last(read(one)[one.learned == place]) for place, one in found.items()]
    final = [_last(read(one)) for one in found.values()]
    return Ends(np.array([*found], np.int64), np.array(own), np.array(final))


def max_accuracy(found: Found) -> float:
    """Average over environments their best accuracies over time."""
    best = [_best(one.accuracy) for one in found.values()]
    return mean_of_measured(best, "a probe of codes")


def accuracy_change(found: Found, include_last: bool = False) -> float:
    """Average what accuracies became since their environments were left; below 0 is forgetting.

    Args:
        include_last: count the environment learned last, whose change is 0.
    """
    return _change(found, lambda one: one.accuracy, include_last)


def lowest_accuracy_change(found: Found) -> float:
    """Average how accuracies had changed at their lowest after their environments were left."""
    own = ends(found, lambda one: one.accuracy).own
    lowest = [-_best(-one.accuracy[one.learned > place]) for place, one in found.items()]
    change = (np.array(lowest) - own)[_counted(found)]
    return mean_of_measured(change, "a probe both at the end of an earlier stage and later")


def min_square_error(found: Found) -> float:
    """Average over environments in which position varies their least errors over time."""
    least = [-_best(-one.square_error) for one in found.values()]
    return mean_of_measured(least, "a probe of position")


def square_error_change(found: Found, include_last: bool = False) -> float:
    """Average what errors of position became since; above 0 is forgetting.

    Args:
        include_last: count the environment learned last, whose change is 0.
    """
    return _change(found, lambda one: one.square_error, include_last)


def _change(found: Found, read: Read, include_last: bool) -> float:
    both = ends(found, read)
    change = (both.final - both.own)[_counted(found, include_last)]
    return mean_of_measured(change, "a probe both at the end of an earlier stage and in the end")


def _counted(found: Found, include_last: bool = False) -> NDArray[np.bool_]:
    """Which environments were left before the end, (E,); or also the one learned last."""
    last = max((int(one.learned[-1]) for one in found.values()), default=-1)
    return np.array([*found], np.int64) <= (last if include_last else last - 1)


def _last(values: Floats) -> float:
    return float(values[-1]) if len(values) else np.nan


def _best(values: Floats) -> float:
    """The largest value that was measured."""
    known = values[~np.isnan(values)]
    return float(known.max()) if len(known) else np.nan
