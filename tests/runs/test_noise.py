"""Honest repeats are rarely called different, and real changes nearly always: simulations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from everlearn.runs.agreement import compare_rows
from everlearn.runs.noise import prediction_interval

RUNS = 300
Floats = NDArray[np.float64]


def rows(correct: NDArray[np.int64], images: int) -> list[Any]:
    """Rows of a run that was tested on all its tasks after the last one."""
    key = {"kind": "test", "learned": len(correct) - 1, "step": 9, "total": images}
    return [{**key, "tested": task, "correct": n} for task, n in enumerate(correct.tolist())]


def share_different(
    accuracies: Callable[[np.random.Generator], Floats], seeds: int, images: int, drop: float = 0
) -> float:
    """Return the share of repeats that are said to differ from `seeds` recorded runs.

    Args:
        accuracies: draws the expected accuracies (tasks,) of one run.
        drop: how much lower those of the repeat are.
    """
    generator = np.random.default_rng(0)
    found = 0
    for _ in range(RUNS):
        expected = [accuracies(generator) for _ in range(seeds + 1)]
        expected[-1] = expected[-1] - drop
        recorded = [rows(generator.binomial(images, share), images) for share in expected]
        found += compare_rows(recorded[0], recorded[-1], recorded[1:-1]).verdict == "differs"
    return found / RUNS


def same(accuracy: float, tasks: int) -> Callable[[np.random.Generator], Floats]:
    """Runs that differ in the test images alone."""
    return lambda _: np.full(tasks, accuracy)


def noisy(accuracy: float, tasks: int, together: float, alone: float) -> Callable[..., Floats]:
    """Runs that differ by training, too: in all tasks together, and in each alone."""

    def draw(generator: np.random.Generator) -> Floats:
        noise = generator.normal(0, together) + generator.normal(0, alone, tasks)
        return np.clip(accuracy + noise, 0, 1)

    return draw


@pytest.mark.parametrize(
    ("accuracy", "tasks"), [(0.5, 1), (0.5, 20), (0.85, 1), (0.85, 20), (0.99, 20), (0.99, 60)]
)
def test_honest_repeats_of_one_seed_rarely_differ(accuracy: float, tasks: int) -> None:
    assert share_different(same(accuracy, tasks), 1, 100) <= 0.07


@pytest.mark.parametrize("tasks", [1, 20])
@pytest.mark.parametrize(("together", "alone"), [(0, 0), (0.03, 0), (0, 0.05), (0.02, 0.03)])
@pytest.mark.parametrize("seeds", [3, 5])
def test_honest_repeats_of_more_seeds_rarely_differ(
    seeds: int, together: float, alone: float, tasks: int
) -> None:
    draw = noisy(0.85, tasks, together, alone)
    assert share_different(draw, seeds, 100) <= 0.07


def test_honest_repeats_rarely_differ_where_some_tasks_are_noisier_than_others() -> None:
    deviations = np.array([0.01] * 18 + [0.15] * 2)

    def draw(generator: np.random.Generator) -> Floats:
        return np.clip(0.7 + deviations * generator.normal(0, 1, 20), 0, 1)

    assert share_different(draw, 3, 100) <= 0.07


@pytest.mark.parametrize("seeds", [1, 3, 5])
def test_a_real_drop_differs(seeds: int) -> None:
    assert share_different(same(0.85, 20), seeds, 100, drop=0.15) >= 0.97


def test_a_real_drop_differs_from_seeds_with_noise_of_training() -> None:
    assert share_different(noisy(0.85, 20, 0.01, 0.02), 3, 100, drop=0.15) >= 0.9


@pytest.mark.parametrize("seeds", [1, 3])
def test_intervals_of_perfect_accuracies_are_not_empty(seeds: int) -> None:
    repeated = np.array([0.99, 0.8])
    images = np.array([100, 100])
    limits = prediction_interval(repeated, np.ones((seeds, 2)), images, 0.025)
    assert (limits.low <= repeated).tolist() == [True, False]
