"""The stem equals torch's layers, one after the other."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from everlearn.nets.layers.stem import Stem


def random(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def pair(channels):
    """Our layers and torch's, with the same weights."""
    ours = Stem(channels).double()
    theirs = nn.Sequential(
        nn.Conv2d(channels, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ).double()
    weights = [random((64, channels, 7, 7), 1), random(64, 2), random(64, 3)]
    with torch.no_grad():
        for one, two, value in zip(ours.parameters(), theirs.parameters(), weights, strict=True):
            one.copy_(value)
            two.copy_(value)
    return ours, theirs


def assert_close(found, expected):
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [(3, 1, 32, 32), (2, 3, 33, 33), (2, 1, 20, 28)])
def test_training_gives_the_values_gradients_and_running_statistics_of_torch(shape):
    ours, theirs = pair(shape[1])
    for step in range(2):
        images = random(shape, 10 + step)
        found, expected = ours(images), theirs(images)
        gradient = random(found.shape, 9)
        assert_close([found], [expected])
        assert_close(
            torch.autograd.grad(found, list(ours.parameters()), gradient),
            torch.autograd.grad(expected, list(theirs.parameters()), gradient),
        )
    assert_close([ours.norm.mean, ours.norm.var], [theirs[1].running_mean, theirs[1].running_var])


def test_evaluation_uses_the_running_statistics():
    ours, theirs = pair(1)
    images = random((3, 1, 32, 32), 10)
    ours(images), theirs(images)
    assert_close([ours.eval()(images)], [theirs.eval()(images)])


@pytest.mark.parametrize(("size", "side"), [(32, 8), (64, 16), (100, 25), (224, 56)])
def test_the_side_becomes_a_quarter(size, side):
    assert Stem(1).eval()(torch.zeros(1, 1, size, size)).shape == (1, 64, side, side)
