"""The encoder and decoder of VASE: sizes, environments told and guessed, convolutions by patches."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import conv2d, cross_entropy

from everlearn.nets.coder import NETS, Coder, Patches, fit_plan
from everlearn.nets.seeded import seeded


def uniform(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def build(name="vase-flat", channels=1, size=16, z=5, environments=3):
    with seeded(0):
        return Coder(name, channels, size, z, environments)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [16, 32, 64])
@pytest.mark.parametrize("name", NETS)
def test_images_become_codes_and_codes_images_of_the_same_size(name, size, channels):
    net, images = build(name, channels, size), uniform(2, channels, size, size)
    code = net.encode(images)
    assert code.mean.shape == code.log_variance.shape == (2, 5)
    assert net.decode(code.mean, torch.tensor(1)).shape == images.shape


@pytest.mark.parametrize("name", NETS)
def test_what_is_drawn_are_logits(name):
    found = build(name).decode(1e4 * (uniform(4, 5) - 0.5), torch.tensor(0))
    assert found.min() < -1
    assert found.max() > 1


def test_the_full_net_has_the_convolutions_of_the_specification():
    net = build("vase", size=64)
    widths = [w.shape for w in net.eyes.parameters() if w.ndim > 1]
    assert widths == [
        (64, 1, 4, 4), (64, 64, 4, 4), (128, 64, 4, 4), (128, 128, 4, 4), (256, 2048)
    ]  # fmt: skip
    layers = [*net.told.parameters(), *net.hand.parameters(), *net.brush.parameters()]
    back = [w.shape for w in layers if w.ndim > 1]
    assert back == [
        (256, 8), (2048, 256), (128, 128, 4, 4), (128, 64, 4, 4), (64, 64, 4, 4), (64, 1, 4, 4)
    ]  # fmt: skip


@pytest.mark.parametrize("size", [16, 64])
@pytest.mark.parametrize("name", NETS)
@torch.no_grad()
def test_what_the_encoder_sees_is_as_large_as_what_it_is_shown(name, size):
    """Noise of mean 0 goes through all layers; with torch's own weights it gets lost on the way."""
    net = build(name, size=size)
    noise = torch.randn((32, 1, size, size), generator=torch.Generator().manual_seed(1))
    assert 0.4 < net.encode(noise).seen.square().mean().sqrt() < 2.5


def test_a_smaller_image_takes_fewer_convolutions():
    assert [fit_plan("vase", size).convolutions for size in (16, 32, 64)] == [
        (64, 64), (64, 64, 128), (64, 64, 128, 128)
    ]  # fmt: skip


@pytest.mark.parametrize("size", [4, 28, 48, 128])
def test_other_sizes_are_refused_with_those_allowed(size):
    with pytest.raises(ValueError, match=f"8, 16, 32, 64, found {size}"):
        build("vase", size=size)
    assert build("vase-flat", size=size).encode(uniform(2, 1, size, size)).mean.shape == (2, 5)


def test_an_unknown_net_is_refused_with_those_known():
    with pytest.raises(ValueError, match=r"unknown net 'mlp' of vase; known: vase, vase-small"):
        build("mlp")


@pytest.mark.parametrize("channels", [1, 3])
def test_a_convolution_by_patches_is_the_convolution(channels):
    with seeded(0):
        layer = Patches(channels, 6, 4, 2, 1).double()
    images = uniform(3, channels, 8, 12).double().requires_grad_()
    found, expected = layer(images), conv2d(images, layer.weight, layer.bias, 2, 1)
    torch.testing.assert_close(found, expected)
    weights = uniform(*expected.shape, seed=1)
    inputs = [images, layer.weight, layer.bias]
    ones, twos = (torch.autograd.grad((o * weights).sum(), inputs) for o in (found, expected))
    torch.testing.assert_close(ones, twos)


def test_the_decoder_is_told_one_environment_for_all_or_one_each():
    net, z = build(), uniform(3, 5)
    each = net.decode(z, torch.tensor([2, 0, 1]))
    for row, place in enumerate([2, 0, 1]):
        torch.testing.assert_close(each[row], net.decode(z, torch.tensor(place))[row])
    assert not torch.allclose(net.decode(z, torch.tensor(0)), net.decode(z, torch.tensor(1)))


def test_codes_are_numbers_whatever_the_images_are():
    net = build()
    with torch.no_grad():
        net.log_variance.bias += 300.0
    code = net.encode(uniform(2, 1, 16, 16))
    assert code.log_variance.exp().isfinite().all()
    assert code.log_variance.max() > 5  # it bounds what is absurd only


def test_the_encoder_is_told_no_environment():
    """Codes of all environments are in one space: the net that encodes has no input for it."""
    net = build(environments=3)
    with torch.no_grad():
        net.told.weight[:, 5:] = 9.0
        net.place.weight[:] = 9.0
    torch.testing.assert_close(
        net.encode(uniform(2, 1, 16, 16)).mean, build().encode(uniform(2, 1, 16, 16)).mean
    )


def test_a_new_environment_is_drawn_as_the_one_it_is_lent_from():
    net, z = build(environments=4), uniform(3, 5)
    before = [net.decode(z, torch.tensor(place)) for place in range(4)]
    net.lend(torch.tensor(2), torch.tensor([False, False, False, True]))
    after = [net.decode(z, torch.tensor(place)) for place in range(4)]
    assert all(map(torch.equal, after[:3], before[:3]))
    torch.testing.assert_close(after[3], before[2])
    assert not torch.allclose(after[3], before[3])


def test_lending_to_none_changes_nothing():
    net = build()
    before = net.told.weight.clone()
    net.lend(torch.tensor(1), torch.zeros(3, dtype=torch.bool))
    assert torch.equal(net.told.weight, before)


def test_the_guess_of_the_environment_never_moves_the_encoder():
    net = build()
    code = net.encode(uniform(4, 1, 16, 16))
    cross_entropy(net.guess(code.seen), torch.tensor([0, 1, 2, 0])).backward()
    moved = {name for name, w in net.named_parameters() if w.grad is not None}
    assert moved == {"place.weight", "place.bias"}


def test_part_of_a_code_is_the_code_of_part():
    net, images = build(), uniform(6, 1, 16, 16)
    for found, expected in zip(
        net.encode(images).part(slice(2, 4)), net.encode(images[2:4]), strict=True
    ):
        torch.testing.assert_close(found, expected)
