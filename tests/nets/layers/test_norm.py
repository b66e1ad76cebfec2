"""Norm equals torch's batch normalisation, addition and ReLU, one after the other."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from everlearn.nets.layers.norm import Norm, use_instance_stats
from everlearn.nets.layers.tiling import tile

SHAPES = [(4, 8, 5, 7), (2, 64, 3, 3), (6, 3, 1, 1)]


def random(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def pair(channels, relu=True):
    """Our layer and torch's, with the same weights, none of them 1 or 0."""
    ours, theirs = Norm(channels, relu).double(), nn.BatchNorm2d(channels).double()
    with torch.no_grad():
        ours.weight.copy_(random(channels, 1))
        ours.bias.copy_(random(channels, 2))
        theirs.weight.copy_(ours.weight)
        theirs.bias.copy_(ours.bias)
    return ours, theirs


def gradients(out, *leaves):
    return torch.autograd.grad((out * random(out.shape, 9)).sum(), leaves)


def assert_close(found, expected):
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("relu", [False, True])
def test_training_gives_the_values_gradients_and_running_statistics_of_torch(shape, add, relu):
    ours, theirs = pair(shape[1], relu)
    for step in range(3):
        x = (3 + 2 * random(shape, step)).requires_grad_()
        residual = random(shape, 10 + step).requires_grad_() if add else None
        expected = theirs(x) + residual if add else theirs(x)
        expected = expected.relu() if relu else expected
        found = ours(x, residual)
        inputs = (x, residual) if add else (x,)
        assert_close([found], [expected])
        assert_close(
            gradients(found, *inputs, ours.weight, ours.bias),
            gradients(expected, *inputs, theirs.weight, theirs.bias),
        )
    assert_close([ours.mean, ours.var], [theirs.running_mean, theirs.running_var])


def test_evaluation_uses_the_running_statistics_and_changes_none():
    ours, theirs = pair(8)
    for step in range(3):
        x = 3 + 2 * random(SHAPES[0], step)
        ours(x), theirs(x)
    ours.eval(), theirs.eval()
    mean, var = ours.mean.clone(), ours.var.clone()
    x, residual = random(SHAPES[0], 5).requires_grad_(), random(SHAPES[0], 6)
    found, expected = ours(x, residual), (theirs(x) + residual).relu()
    assert_close([found], [expected])
    assert_close(gradients(found, x, ours.weight), gradients(expected, x, theirs.weight))
    assert torch.equal(ours.mean, mean)
    assert torch.equal(ours.var, var)


@pytest.mark.parametrize("peer_count", [1, 3, 255])
@pytest.mark.parametrize("add", [False, True])
def test_instance_statistics_normalise_an_image_as_one_of_a_batch(peer_count, add):
    ours, theirs = pair(8)
    peers = 3 + 2 * random((peer_count, 8, 5, 7), 1)
    image = 20 * random((1, 8, 5, 7), 2)
    with torch.no_grad():
        ours.mean.copy_(peers.mean((0, 2, 3)))
        ours.var.copy_(peers.var((0, 2, 3), correction=0))
    use_instance_stats(ours, 1 / (peer_count + 1))
    residual = random(image.shape, 3) if add else None
    expected = theirs(torch.cat([image, peers]))[:1]
    expected = (expected + residual if add else expected).relu()
    assert_close([ours.eval()(image, residual)], [expected])


def test_instance_statistics_do_not_depend_on_the_rest_of_the_batch():
    layer, images = Norm(8).double().eval(), 3 * random((4, 8, 5, 7), 1)
    use_instance_stats(layer, 0.1)
    alone = torch.cat([layer(image[None]) for image in images])
    assert_close([layer(images)], [alone])
    assert (layer(images) - layer(torch.cat([images, images]))[:4]).abs().max() == 0


def test_instance_statistics_change_nothing_in_training():
    plain, _ = pair(8)
    instance, _ = pair(8)
    use_instance_stats(instance, 0.1)
    for step in range(3):
        x = 3 + 2 * random(SHAPES[0], step)
        assert torch.equal(plain(x), instance(x))
    assert torch.equal(plain.var, instance.var)
    assert not torch.equal(plain.eval()(x), instance.eval()(x))


def test_instance_statistics_are_set_in_every_layer():
    net = nn.Sequential(Norm(8), nn.Sequential(nn.ReLU(), Norm(8)))
    use_instance_stats(net, 0.1)
    assert [layer.instance_weight for layer in net.modules() if isinstance(layer, Norm)] == [
        0.1,
        0.1,
    ]


def test_a_new_layer_in_evaluation_is_a_relu():
    x = random(SHAPES[0], 0)
    torch.testing.assert_close(Norm(8).double().eval()(x), x.relu(), rtol=1e-4, atol=0)


def test_one_value_per_channel_is_refused_in_training():
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        Norm(64)(torch.zeros(1, 64, 1, 1))


@pytest.mark.parametrize("channels", [64, 128, 192, 512])
@pytest.mark.parametrize("rows", [2, 31, 32, 33, 1000, 1025, 4096, 13_328, 65_536, 3_211_264])
def test_a_tiling_covers_all_rows_in_full_steps(rows, channels):
    tiling = tile(rows, channels)
    assert tiling.programs * tiling.span >= rows
    assert tiling.span % tiling.step == 0
    # Kernels index blocks by ranges, which have a power of two as their length.
    for size in (tiling.programs, tiling.step, tiling.cols, tiling.warps):
        assert size & (size - 1) == 0
    assert tiling.warps <= 32
    assert tiling.grid == (tiling.programs, channels // tiling.cols)
    assert channels % tiling.cols == 0
