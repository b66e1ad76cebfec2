"""Accuracies of a repeated run that differ from the recorded ones by more than noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everlearn.metrics import MIN_SEEDS, Interval
from everlearn.runs.evaluations import Accuracy, RowKey, describe_key, read_accuracies
from everlearn.runs.noise import ALPHA, Floats, prediction_interval

Rows = Mapping[RowKey, Mapping[str, Any]]
Evaluation = tuple[RowKey, str]  # a row and the name of an accuracy in it
Accuracies = dict[Evaluation, Accuracy]
_ROUNDING = 1e-9


def find_outlier(recorded: Rows, repeated: Rows, other_seeds: Sequence[Rows] = ()) -> str:
    """Describe the first accuracy that differs by more than noise, or the average of all tests, if any.

    Args:
        repeated: rows with the keys and the numbers of images of `recorded`.
        other_seeds: rows of runs that differ in the seed alone; two or more are used, for what all tested.
    """
    new = _all_accuracies(repeated)
    runs = [_all_accuracies(rows) for rows in (recorded, *other_seeds)]
    runs = runs if len(runs) >= MIN_SEEDS else runs[:1]
    tests = [test for test in new if dict(test[0])["kind"] == "test" and _is_shared(test, runs)]
    if len(runs) == 1 or len(tests) < 2:
        return next(_outliers(new, runs, ALPHA), "")
    # Each of the two comparisons may raise half of the false alarms.
    return _outlying_average(new, runs, tests) or next(_outliers(new, runs, ALPHA / 2), "")


def _all_accuracies(rows: Rows) -> Accuracies:
    return {
        (key, name): accuracy
        for key, row in rows.items()
        for name, accuracy in read_accuracies(row).items()
    }


def _is_shared(evaluation: Evaluation, runs: Sequence[Accuracies]) -> bool:
    """Return whether all runs made an evaluation on as many images: the end of a run has its own."""
    images = runs[0][evaluation].images
    return all(evaluation in run and run[evaluation].images == images for run in runs)


def _outlying_average(
    new: Accuracies, runs: Sequence[Accuracies], tests: Sequence[Evaluation]
) -> str:
    """Describe the average accuracy of the tests if it differs by more than noise.

    It shows a small drop in all tests, which is no outlier in any of them.
    """
    repeated = _shares(new, tests).mean(keepdims=True)
    recorded = np.array([_shares(run, tests) for run in runs]).mean(axis=1, keepdims=True)
    # A task is tested on the same images each time.
    per_task = {dict(key)["tested"]: new[key, name].images for key, name in tests}
    images = np.array([sum(per_task.values())])
    limits = prediction_interval(repeated, recorded, images, ALPHA / 2)
    if not _outside(repeated, limits).any():
        return ""
    return f"accuracy averaged over {len(tests)} tests {_describe(repeated, recorded, limits, 0)}"


def _outliers(new: Accuracies, runs: Sequence[Accuracies], alpha: float) -> Iterator[str]:
    """Describe the accuracies that differ by more than noise, kind by kind: each has a noise of its own."""
    kinds: dict[tuple[str, str, bool], list[Evaluation]] = {}
    for key, name in new:
        shared = _is_shared((key, name), runs)
        kinds.setdefault((dict(key)["kind"], name, shared), []).append((key, name))
    for (_, _, shared), evaluations in kinds.items():
        repeated = _shares(new, evaluations)
        recorded = np.array([_shares(run, evaluations) for run in (runs if shared else runs[:1])])
        images = np.array([new[evaluation].images for evaluation in evaluations])
        limits = prediction_interval(repeated, recorded, images, alpha / len(new))
        for index in np.flatnonzero(_outside(repeated, limits)).tolist():
            key, name = evaluations[index]
            values = _describe(repeated, recorded, limits, index)
            yield f"{describe_key(key)}: {name} (of {images[index]} images) {values}"


def _shares(run: Accuracies, evaluations: Sequence[Evaluation]) -> Floats:
    return np.array([run[evaluation].share for evaluation in evaluations])


def _outside(values: Floats, limits: Interval) -> NDArray[np.bool_]:
    return (values < limits.low - _ROUNDING) | (values > limits.high + _ROUNDING)


def _describe(repeated: Floats, recorded: Floats, limits: Interval, index: int) -> str:
    seeds = f" over {len(recorded)} seeds" if len(recorded) > 1 else ""
    low = max(0.0, limits.low[index])
    high = min(1.0, limits.high[index])
    mean = recorded[:, index].mean()
    return f"is {mean:.4f}{seeds}, repeated {repeated[index]:.4f}, outside {low:.4f} to {high:.4f}"
