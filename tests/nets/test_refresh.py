"""Unlearning moves each tensor along its slope by a fraction of its own length, less where it matters."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from everlearn.nets.refresh import Refresh, climb

SHAPES = [(4, 3), (2, 3, 3, 3), (5,)]


def some(seed):
    rng = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=rng) for shape in SHAPES]


def array(part):
    return part.numpy().astype(np.float64)


def expect(weight, slope, fisher, delta):
    """The formula for one tensor, from a trial step of the authors' length."""
    trial = 0.01 * array(slope)
    along = np.linalg.norm(array(weight)) / np.linalg.norm(trial) * trial
    return array(weight) + delta * along / (1 + 0.001 * array(fisher))


def test_the_step_is_that_of_a_plain_loop():
    weights, slopes, fisher = some(0), some(1), [1e3 * part.abs() for part in some(2)]
    goal = [expect(*parts, 0.1) for parts in zip(weights, slopes, fisher, strict=True)]
    climb(weights, slopes, [1 + 0.001 * part for part in fisher], 0.1)
    for weight, one in zip(weights, goal, strict=True):
        np.testing.assert_allclose(weight.numpy(), one, rtol=1e-5, atol=1e-6)


def test_no_delta_changes_no_bit():
    weights, before = some(0), some(0)
    Refresh(weights, 0.0).unlearn(some(1), images=8)
    assert all(torch.equal(one, two) for one, two in zip(weights, before, strict=True))


def test_a_tensor_without_slope_or_without_length_stays():
    weights = [torch.ones(3), torch.zeros(3)]
    climb(weights, [torch.zeros(3), torch.ones(3)], [torch.ones(3)] * 2, 0.5)
    assert [weight.tolist() for weight in weights] == [[1.0] * 3, [0.0] * 3]


def test_what_matters_is_the_mean_square_of_the_task_before():
    refresh, images = Refresh(some(0), 1e-5), 8
    for task in range(2):
        expected = [np.zeros(shape) for shape in SHAPES]
        for step in range(3):
            slopes = some(10 * task + step + 1)
            refresh.unlearn(slopes, images)
            for place, slope in zip(expected, slopes, strict=True):
                place += images * array(slope) ** 2 / 3
        refresh.end_task(steps=3)
    for found, one in zip(refresh.state(), expected, strict=True):
        np.testing.assert_allclose(found.numpy(), one, rtol=1e-3, atol=1e-3)


def test_a_loaded_state_forgets_the_squares_of_a_task_that_was_left():
    refresh = Refresh(some(0), 1e-5)
    kept = [part.clone() for part in refresh.state()]
    refresh.unlearn(some(1), images=8)
    refresh.load_state(kept)
    refresh.end_task(steps=1)
    assert not any(part.any() for part in refresh.state())


@pytest.mark.parametrize("loads", [True, False])
def test_what_matters_slows_the_next_task_down_and_can_be_loaded(loads):
    weights, slopes = some(0), [100 * part for part in some(1)]
    refresh = Refresh(weights, 0.1)
    refresh.unlearn(slopes, images=8)
    refresh.end_task(steps=1)
    if loads:
        kept, refresh = refresh.state(), Refresh(weights, 0.1)
        refresh.load_state(kept)
    fisher = [part.clone() for part in refresh.state()]
    goal = [expect(*parts, 0.1) for parts in zip(weights, slopes, fisher, strict=True)]
    refresh.unlearn(slopes, images=8)
    for weight, one in zip(weights, goal, strict=True):
        np.testing.assert_allclose(weight.numpy(), one, rtol=1e-5, atol=1e-5)
