"""Errors of the affine maps."""

from __future__ import annotations

import numpy as np
import pytest

from everlearn.metrics import theta_errors


def _theta(learned: int, tested: int, squared_errors, total: int) -> dict:
    return {
        "kind": "theta",
        "step": 0,
        "learned": learned,
        "tested": tested,
        "squared_errors": list(squared_errors),
        "total": total,
    }


def test_errors_agree_with_those_of_all_images_put_together():
    errors = np.random.default_rng(0).normal(size=(30, 6))
    rows = [
        _theta(1, 0, (errors[:20] ** 2).sum(axis=0), 20),
        _theta(1, 1, (errors[20:] ** 2).sum(axis=0), 10),
    ]
    found = theta_errors(rows)
    maps = errors.reshape(30, 2, 3)
    assert found.overall.tolist() == pytest.approx([np.sqrt((maps**2).mean())])
    assert found.linear.tolist() == pytest.approx([np.sqrt((maps[:, :, :2] ** 2).mean())])
    assert found.translation.tolist() == pytest.approx([np.sqrt((maps[:, :, 2] ** 2).mean())])


def test_moments_stay_apart_and_only_tasks_learned_count():
    ones = np.ones(6)
    fours = np.full(6, 4.0)
    rows = [_theta(3, 0, fours, 1), _theta(0, 0, ones, 1), _theta(0, 1, 100 * ones, 1)]
    found = theta_errors(rows)
    assert found.learned.tolist() == [0, 3]
    assert found.overall.tolist() == [1, 2]
    new = theta_errors(rows, new=True)
    assert (new.learned.tolist(), new.overall.tolist()) == ([0], [10])


def test_later_rows_replace_earlier_ones_and_empty_tasks_do_not_count():
    rows = [_theta(0, 0, np.full(6, 9.0), 1), _theta(0, 0, np.full(6, 4.0), 1)]
    assert theta_errors([*rows, _theta(1, 1, np.zeros(6), 0)]).overall.tolist() == [2]


def test_no_rows_give_no_errors():
    assert len(theta_errors([]).learned) == 0
