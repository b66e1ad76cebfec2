"""Normalisation with its addition and ReLU is torch's own layers, one after the other."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from everlearn.nets.norm import Norm, count_own, plan

SHAPES = [(4, 8, 5, 7), (2, 64, 3, 3), (6, 3, 1, 1)]


def random(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def pair(channels, cut=True):
    """Our layer and torch's, with the same weights, none of them 1 or 0."""
    ours, theirs = Norm(channels, cut).double(), nn.BatchNorm2d(channels).double()
    with torch.no_grad():
        ours.weight.copy_(random(channels, 1))
        ours.bias.copy_(random(channels, 2))
        theirs.weight.copy_(ours.weight)
        theirs.bias.copy_(ours.bias)
    return ours, theirs


def slopes(out, *leaves):
    return torch.autograd.grad((out * random(out.shape, 9)).sum(), leaves)


def assert_close(ones, twos):
    for one, two in zip(ones, twos, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("cut", [False, True])
def test_training_gives_the_values_slopes_and_moments_of_torch(shape, add, cut):
    ours, theirs = pair(shape[1], cut)
    for step in range(3):
        x = (3 + 2 * random(shape, step)).requires_grad_()
        other = random(shape, 10 + step).requires_grad_() if add else None
        expected = theirs(x) + other if add else theirs(x)
        expected = expected.relu() if cut else expected
        found = ours(x, other)
        inputs = (x, other) if add else (x,)
        assert_close([found], [expected])
        assert_close(
            slopes(found, *inputs, ours.weight, ours.bias),
            slopes(expected, *inputs, theirs.weight, theirs.bias),
        )
    assert_close([ours.mean, ours.var], [theirs.running_mean, theirs.running_var])


def test_evaluation_uses_the_kept_moments_and_moves_none():
    ours, theirs = pair(8)
    for step in range(3):
        x = 3 + 2 * random(SHAPES[0], step)
        ours(x), theirs(x)
    ours.eval(), theirs.eval()
    mean, var = ours.mean.clone(), ours.var.clone()
    x, other = random(SHAPES[0], 5).requires_grad_(), random(SHAPES[0], 6)
    found, expected = ours(x, other), (theirs(x) + other).relu()
    assert_close([found], [expected])
    assert_close(slopes(found, x, ours.weight), slopes(expected, x, theirs.weight))
    assert torch.equal(ours.mean, mean)
    assert torch.equal(ours.var, var)


@pytest.mark.parametrize("others", [1, 3, 255])
@pytest.mark.parametrize("add", [False, True])
def test_an_image_that_counts_itself_is_normalised_as_one_of_its_batch(others, add):
    ours, theirs = pair(8)
    peers, image = 3 + 2 * random((others, 8, 5, 7), 1), 20 * random((1, 8, 5, 7), 2)
    with torch.no_grad():
        ours.mean.copy_(peers.mean((0, 2, 3)))
        ours.var.copy_(peers.var((0, 2, 3), correction=0))
    count_own(ours, 1 / (others + 1))
    other = random(image.shape, 3) if add else None
    expected = theirs(torch.cat([image, peers]))[:1]
    expected = (expected + other if add else expected).relu()
    assert_close([ours.eval()(image, other)], [expected])


def test_images_that_count_themselves_do_not_count_their_neighbours():
    layer, images = Norm(8).double().eval(), 3 * random((4, 8, 5, 7), 1)
    count_own(layer, 0.1)
    alone = torch.cat([layer(image[None]) for image in images])
    assert_close([layer(images)], [alone])
    assert (layer(images) - layer(torch.cat([images, images]))[:4]).abs().max() == 0


def test_counting_oneself_changes_nothing_in_training():
    (usual, _), (counting, _) = pair(8), pair(8)
    count_own(counting, 0.1)
    for step in range(3):
        x = 3 + 2 * random(SHAPES[0], step)
        assert torch.equal(usual(x), counting(x))
    assert torch.equal(usual.var, counting.var)
    assert not torch.equal(usual.eval()(x), counting.eval()(x))


def test_counting_oneself_reaches_every_layer():
    net = nn.Sequential(Norm(8), nn.Sequential(nn.ReLU(), Norm(8)))
    count_own(net, 0.1)
    assert [layer.own for layer in net.modules() if isinstance(layer, Norm)] == [0.1, 0.1]


def test_a_fresh_layer_in_evaluation_only_cuts():
    x = random(SHAPES[0], 0)
    torch.testing.assert_close(Norm(8).double().eval()(x), x.relu(), rtol=1e-4, atol=0)


def test_one_value_a_channel_is_refused_when_training():
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        Norm(64)(torch.zeros(1, 64, 1, 1))


@pytest.mark.parametrize("channels", [64, 128, 512])
@pytest.mark.parametrize("rows", [2, 31, 32, 33, 1000, 4096, 13_328, 65_536, 3_211_264])
def test_a_plan_shares_all_rows_in_whole_steps(rows, channels):
    found = plan(rows, channels)
    assert found.parts * found.span >= rows
    assert found.span % found.step == 0
    assert found.parts & (found.parts - 1) == 0
    assert found.grid == (found.parts, channels // 64)
