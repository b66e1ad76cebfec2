"""Unlearning moves tensors along their gradients, damped where the Fisher information is large."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from everlearn.training.refresh import Refresh, ascend

SHAPES = [(4, 3), (2, 3, 3, 3), (5,)]


def draw(seed):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for shape in SHAPES]


def array(part):
    return part.numpy().astype(np.float64)


def expect(weight, gradient, fisher, delta):
    """The formula for one tensor, from a trial step of the authors' length."""
    trial = 0.01 * array(gradient)
    along = np.linalg.norm(array(weight)) / np.linalg.norm(trial) * trial
    return array(weight) + delta * along / (1 + 0.001 * array(fisher))


def test_the_step_equals_that_of_a_plain_loop():
    weights, gradients, fisher = draw(0), draw(1), [1e3 * part.abs() for part in draw(2)]
    expected_weights = [
        expect(*parts, 0.1) for parts in zip(weights, gradients, fisher, strict=True)
    ]
    ascend(weights, gradients, [1 + 0.001 * part for part in fisher], 0.1)
    for weight, one in zip(weights, expected_weights, strict=True):
        np.testing.assert_allclose(weight.numpy(), one, rtol=1e-5, atol=1e-6)


def test_a_delta_of_zero_changes_no_bit():
    weights, before = draw(0), draw(0)
    Refresh(weights, 0.0).unlearn(draw(1), images=8)
    assert all(torch.equal(one, two) for one, two in zip(weights, before, strict=True))


def test_a_tensor_of_zeros_or_without_gradient_stays():
    weights = [torch.ones(3), torch.zeros(3)]
    ascend(weights, [torch.zeros(3), torch.ones(3)], [torch.ones(3)] * 2, 0.5)
    assert [weight.tolist() for weight in weights] == [[1.0] * 3, [0.0] * 3]


def test_the_fisher_diagonal_is_the_mean_square_of_the_last_task():
    refresh, images = Refresh(draw(0), 1e-5), 8
    for task in range(2):
        expected = [np.zeros(shape) for shape in SHAPES]
        for step in range(3):
            gradients = draw(10 * task + step + 1)
            refresh.unlearn(gradients, images)
            for total, gradient in zip(expected, gradients, strict=True):
                total += images * array(gradient) ** 2 / 3
        refresh.end_task(steps=3)
    for found, one in zip(refresh.state(), expected, strict=True):
        np.testing.assert_allclose(found.numpy(), one, rtol=1e-3, atol=1e-3)


def test_loading_a_state_discards_the_squares_of_an_unfinished_task():
    refresh = Refresh(draw(0), 1e-5)
    saved = [part.clone() for part in refresh.state()]
    refresh.unlearn(draw(1), images=8)
    refresh.load_state(saved)
    refresh.end_task(steps=1)
    assert not any(part.any() for part in refresh.state())


@pytest.mark.parametrize("loads", [True, False])
def test_the_fisher_diagonal_damps_the_next_task_and_can_be_loaded(loads):
    weights, gradients = draw(0), [100 * part for part in draw(1)]
    refresh = Refresh(weights, 0.1)
    refresh.unlearn(gradients, images=8)
    refresh.end_task(steps=1)
    if loads:
        saved, refresh = refresh.state(), Refresh(weights, 0.1)
        refresh.load_state(saved)
    fisher = [part.clone() for part in refresh.state()]
    expected_weights = [
        expect(*parts, 0.1) for parts in zip(weights, gradients, fisher, strict=True)
    ]
    refresh.unlearn(gradients, images=8)
    for weight, one in zip(weights, expected_weights, strict=True):
        np.testing.assert_allclose(weight.numpy(), one, rtol=1e-5, atol=1e-5)
