"""Split nets: latents between the halves, weights determined by the seed, given latents enter above."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from everlearn.nets.convnet import ConvNet
from everlearn.nets.layers.norm import Norm
from everlearn.nets.layers.renorm import Renorm, end_renorm_warmup
from everlearn.nets.precision import eval_mode, forward_pass, frozen_running_stats, to_device
from everlearn.nets.resnet import ResNet18
from everlearn.nets.split_net import SPLIT_NETS, build_split_net
from everlearn.training.captured_step import CapturedStep
from everlearn.training.optimizer_step import optimizer_step, training_state
from everlearn.training.optimizers import sgd

pytestmark = pytest.mark.integration

# By hand: the channels of the last layer below, and the sides that strides leave.
SIZES = {
    "mlp": (16, (1, 16, 16), 64),
    "mlp-wide": (16, (1, 16, 16), 256),
    "convnet-pooled": (32, (128, 8, 8), 128),
    "resnet18": (64, (256, 4, 4), 512),
    "resnet18-slim": (64, (128, 4, 4), 256),
    "mobilenetv2": (128, (576, 4, 4), 1280),
}
DEEP = [name for name in SPLIT_NETS if not name.startswith("mlp")]


def random(shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def build(name, seed=0, channels=1):
    return build_split_net(name, channels, SIZES[name][0], seed)


def same(one, two):
    ours, theirs = one.state_dict(), two.state_dict()
    return list(ours) == list(theirs) and all(torch.equal(ours[key], theirs[key]) for key in ours)


def test_every_split_net_is_listed_here():
    assert list(SIZES) == list(SPLIT_NETS)


@pytest.mark.parametrize("name", SPLIT_NETS)
def test_latents_and_features_have_the_stated_sizes(name):
    size, shape, width = SIZES[name]
    net, images = build(name).eval(), random((2, 1, size, size))
    assert (net.latent_shape, net.width) == (shape, width)
    with torch.no_grad():
        latents = net.lower(images)
        assert latents.shape == (2, *shape)
        assert net.upper(latents).shape == (2, width)
        assert torch.equal(net.features(images), net.upper(latents))


@pytest.mark.parametrize("name", SPLIT_NETS)
@pytest.mark.parametrize("training", [True, False])
def test_latents_and_features_are_not_below_0(name, training):
    net = build(name).train(training)
    latents = net.lower(random((4, 1, SIZES[name][0], SIZES[name][0])))
    assert latents.min() >= 0
    assert latents.max() > 0
    assert net.upper(latents).min() >= 0


@pytest.mark.parametrize("name", SPLIT_NETS)
def test_the_seed_determines_the_weights_without_advancing_the_generator(name):
    before = torch.random.get_rng_state()
    net, again, another = build(name), build(name), build(name, seed=1)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert same(net, again)
    assert not same(net.upper, another.upper)


@pytest.mark.parametrize("name", SPLIT_NETS)
def test_given_latents_enter_the_same_upper_half(name):
    _, shape, width = SIZES[name]
    net = build_split_net(name, shape[0], shape[1], 0)
    assert isinstance(net.lower, nn.Identity)
    assert (net.latent_shape, net.width) == (shape, width)
    assert same(net.upper, build(name).upper)


@pytest.mark.parametrize("name", DEEP)
def test_only_the_upper_half_has_batch_renormalisation(name):
    net = build(name)
    types = {
        half: {type(one) for one in layers.modules() if isinstance(one, (Norm, Renorm))}
        for half, layers in (("lower", net.lower), ("upper", net.upper))
    }
    assert types == {"lower": {Norm}, "upper": {Renorm}}


@pytest.mark.parametrize(
    ("name", "build_complete"),
    [
        ("convnet-pooled", lambda: ConvNet(1, 1, 32, pooled=True).layers),
        ("resnet18", lambda: nn.Sequential(ResNet18(1, 1).stem, ResNet18(1, 1).blocks)),
    ],
)
def test_both_halves_together_are_the_complete_net(name, build_complete):
    split = build(name)
    net = build_complete()
    assert [one.shape for one in split.parameters()] == [one.shape for one in net.parameters()]


def test_resnet18_slim_has_the_weights_counted_by_hand():
    def stage(a, b):
        """Four convolutions of 3 x 3, four normalisations, and a shortcut where widths differ."""
        shortcut = 0 if a == b else a * b + 2 * b
        return 9 * (a * b + 3 * b * b) + 8 * b + shortcut

    net = build("resnet18-slim")
    below = 9 * 32 + 2 * 32 + stage(32, 32) + stage(32, 64) + stage(64, 128)
    assert sum(one.numel() for one in net.lower.parameters()) == below
    assert sum(one.numel() for one in net.upper.parameters()) == stage(128, 256)


@pytest.mark.parametrize("name", SPLIT_NETS)
def test_both_halves_train_by_forward_pass(name):
    net, images = build(name), random((4, 1, SIZES[name][0], SIZES[name][0]))
    end_renorm_warmup(net)
    with frozen_running_stats(net), torch.no_grad():
        expected = net.features(images)
    latents = forward_pass(net.lower, images)
    found = forward_pass(net.upper, latents)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    found.sum().backward()
    assert all(weight.grad is not None for weight in net.parameters())


@pytest.mark.parametrize("size", [1, 7, 33])
@pytest.mark.parametrize("name", DEEP)
def test_images_of_any_size_have_latents(name, size):
    net = build_split_net(name, 1, size, 0).eval()
    assert net.features(random((2, 1, size, size))).shape == (2, net.width)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'resnet19'; known: mlp, mlp-wide, .*mobilenetv2"):
        build_split_net("resnet19", 1, 32, 0)


@pytest.mark.gpu
@pytest.mark.parametrize("name", SPLIT_NETS)
def test_a_captured_step_of_the_upper_half_gives_the_same_bits_each_time(name):
    def learn():
        net = to_device(build(name), "cuda")
        optimizer = sgd(net.upper.parameters(), 0.01, 0.9)

        def train(latents):
            return optimizer_step(
                optimizer, forward_pass(net.upper, latents).float().square().sum()
            )

        step = CapturedStep(train, training_state(net.upper, optimizer))
        for seed in range(4):
            with eval_mode(net.lower):
                latents = forward_pass(net.lower, random((8, 1, *2 * SIZES[name][:1]), seed).cuda())
            step(latents)
        return net

    one, two = learn(), learn()
    assert same(one, two)
    assert all(value.isfinite().all() for value in one.state_dict().values())
    assert not same(one.upper, to_device(build(name), "cuda").upper)
