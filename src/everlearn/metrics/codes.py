"""What probes read from a learner's codes: best values, and changes after an environment ended.

Achille et al. 2018 average, over environments, the best value over time, and the change from the end of the
environment's own stage to the end of the sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everlearn.metrics.measured import Floats, Ints, mean_of_measured
from everlearn.metrics.proportion import share
from everlearn.rows import CodesRow, Row, of_kind


class CodeProbes(NamedTuple):
    """Probes of the codes of one environment, in the order of training.

    Attributes:
        step: (K,) optimizer steps since the start of the stream.
        learned: (K,) task that was being learned; -1 before the first step.
        correct: (K,) test images whose class was read correctly.
        total: (K,) test images.
        squared_errors: (K, 2) sums of the squared errors of x and y; NaN where they do not vary.
        reconstruction_error: (K,) sums in nats; NaN where it was not measured.
    """

    step: Ints
    learned: Ints
    correct: Ints
    total: Ints
    squared_errors: Floats
    reconstruction_error: Floats

    @property
    def accuracy(self) -> Floats:
        """Fraction of classes read correctly, (K,)."""
        return share(self.correct, self.total)

    @property
    def position_error(self) -> Floats:
        """Mean squared error of x and y, each scaled to 0 .. 1, (K,)."""
        mean: Floats = self.squared_errors.mean(axis=1) / self.total
        return mean

    @property
    def error(self) -> Floats:
        """Reconstruction error per image in nats, (K,)."""
        return self.reconstruction_error / self.total


Probes = Mapping[int, CodeProbes]
Value = Callable[[CodeProbes], Floats]


def code_probes(rows: Iterable[Row]) -> dict[int, CodeProbes]:
    """Gather the code probes by environment; of two rows for one moment the later counts."""
    found: dict[int, dict[tuple[int, int], CodesRow]] = {}
    for row in of_kind(rows, CodesRow):
        found.setdefault(row["tested"], {})[row["step"], row["learned"]] = row
    return {environment: _series(found[environment]) for environment in sorted(found)}


def _series(moments: dict[tuple[int, int], CodesRow]) -> CodeProbes:
    rows = [moments[moment] for moment in sorted(moments)]
    errors = [row["reconstruction_error"] for row in rows]
    return CodeProbes(
        np.array([row["step"] for row in rows], np.int64),
        np.array([row["learned"] for row in rows], np.int64),
        np.array([row["correct"] for row in rows], np.int64),
        np.array([row["total"] for row in rows], np.int64),
        np.array([row["squared_errors"] or [np.nan, np.nan] for row in rows]),
        np.array([np.nan if error is None else error for error in errors]),
    )


class Ends(NamedTuple):
    """A value of each environment at the end of its stage and at the end of the run; NaN if not measured.

    Attributes:
        environment: (E,) rising.
        stage: (E,) at the end of the stage in which it was learned.
        final: (E,) at the end of the run.
    """

    environment: Ints
    stage: Floats
    final: Floats


def ends(probes: Probes, value: Value) -> Ends:
    """Take a value of each environment at both ends: `ends(probes, lambda probe: probe.error)`."""
    stage = [_last(value(probe)[probe.learned == place]) for place, probe in probes.items()]
    final = [_last(value(probe)) for probe in probes.values()]
    return Ends(np.array([*probes], np.int64), np.array(stage), np.array(final))


def max_accuracy(probes: Probes) -> float:
    """Average over environments their best accuracies over time."""
    best = [_max(probe.accuracy) for probe in probes.values()]
    return mean_of_measured(best, "a probe of codes")


def accuracy_change(probes: Probes, include_last: bool = False) -> float:
    """Average the changes of accuracy since the environments' own stages; below 0 is forgetting.

    Args:
        include_last: count the environment learned last, for which the change is 0.
    """
    return _change(probes, lambda probe: probe.accuracy, include_last)


def lowest_accuracy_change(probes: Probes) -> float:
    """Average the changes from the environments' own stages to their lowest accuracies afterwards."""
    stage = ends(probes, lambda probe: probe.accuracy).stage
    lowest = [-_max(-probe.accuracy[probe.learned > place]) for place, probe in probes.items()]
    change = (np.array(lowest) - stage)[_completed(probes)]
    return mean_of_measured(change, "a probe both at the end of an earlier stage and later")


def min_position_error(probes: Probes) -> float:
    """Average over environments in which position varies their lowest errors over time."""
    lowest = [-_max(-probe.position_error) for probe in probes.values()]
    return mean_of_measured(lowest, "a probe of position")


def position_error_change(probes: Probes, include_last: bool = False) -> float:
    """Average the changes of the position error since the environments' own stages; above 0 is forgetting.

    Args:
        include_last: count the environment learned last, for which the change is 0.
    """
    return _change(probes, lambda probe: probe.position_error, include_last)


def _change(probes: Probes, value: Value, include_last: bool) -> float:
    both = ends(probes, value)
    change = (both.final - both.stage)[_completed(probes, include_last)]
    return mean_of_measured(change, "a probe both at the end of an earlier stage and in the end")


def _completed(probes: Probes, include_last: bool = False) -> NDArray[np.bool_]:
    """Mark the environments that ended before the last one, (E,); or the last one as well."""
    last = max((int(probe.learned[-1]) for probe in probes.values()), default=-1)
    return np.array([*probes], np.int64) <= (last if include_last else last - 1)


def _last(values: Floats) -> float:
    return float(values[-1]) if len(values) else np.nan


def _max(values: Floats) -> float:
    """Return the largest value that is not NaN."""
    measured = values[~np.isnan(values)]
    return float(measured.max()) if len(measured) else np.nan
