"""The VAE of VASE: sizes, conditioning on environments and classifying them, convolutions by patches."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import conv2d, cross_entropy

from everlearn.nets.seeded import seeded
from everlearn.nets.vae import ARCHITECTURES, VAE, PatchConv2d, architecture_for


def uniform(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def build(name="vase-flat", channels=1, size=16, latent_dim=5, environments=3):
    with seeded(0):
        return VAE(name, channels, size, latent_dim, environments)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [16, 32, 64])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_images_become_codes_and_codes_images_of_the_same_size(name, size, channels):
    net, images = build(name, channels, size), uniform(2, channels, size, size)
    code = net.encode(images)
    assert code.mean.shape == code.log_variance.shape == (2, 5)
    assert net.decode(code.mean, torch.tensor(1)).shape == images.shape


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_decoder_returns_logits(name):
    found = build(name).decode(1e4 * (uniform(4, 5) - 0.5), torch.tensor(0))
    assert found.min() < -1
    assert found.max() > 1


def test_the_full_net_has_the_convolutions_of_the_specification():
    net = build("vase", size=64)
    widths = [w.shape for w in net.encoder.parameters() if w.ndim > 1]
    assert widths == [
        (64, 1, 4, 4), (64, 64, 4, 4), (128, 64, 4, 4), (128, 128, 4, 4), (256, 2048)
    ]  # fmt: skip
    layers = [*net.condition.parameters(), *net.expand.parameters(), *net.decoder.parameters()]
    decoder_widths = [w.shape for w in layers if w.ndim > 1]
    assert decoder_widths == [
        (256, 8), (2048, 256), (128, 128, 4, 4), (128, 64, 4, 4), (64, 64, 4, 4), (64, 1, 4, 4)
    ]  # fmt: skip


@pytest.mark.parametrize("size", [16, 64])
@pytest.mark.parametrize("name", ARCHITECTURES)
@torch.no_grad()
def test_the_encoder_keeps_the_scale_of_its_input(name, size):
    """Noise of mean 0 goes through all layers; with torch's default weights it vanishes."""
    net = build(name, size=size)
    noise = torch.randn((32, 1, size, size), generator=torch.Generator().manual_seed(1))
    assert 0.4 < net.encode(noise).features.square().mean().sqrt() < 2.5


def test_a_smaller_image_takes_fewer_convolutions():
    assert [architecture_for("vase", size).convolutions for size in (16, 32, 64)] == [
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
        layer = PatchConv2d(channels, 6, 4, 2, 1).double()
    images = uniform(3, channels, 8, 12).double().requires_grad_()
    found, expected = layer(images), conv2d(images, layer.weight, layer.bias, 2, 1)
    torch.testing.assert_close(found, expected)
    weights = uniform(*expected.shape, seed=1)
    inputs = [images, layer.weight, layer.bias]
    gradients = [torch.autograd.grad((o * weights).sum(), inputs) for o in (found, expected)]
    torch.testing.assert_close(*gradients)


def test_the_decoder_takes_one_environment_for_all_codes_or_one_each():
    net, z = build(), uniform(3, 5)
    each = net.decode(z, torch.tensor([2, 0, 1]))
    for row, environment in enumerate([2, 0, 1]):
        torch.testing.assert_close(each[row], net.decode(z, torch.tensor(environment))[row])
    assert not torch.allclose(net.decode(z, torch.tensor(0)), net.decode(z, torch.tensor(1)))


def test_codes_are_finite_for_any_image():
    net = build()
    with torch.no_grad():
        net.log_variance.bias += 300.0
    code = net.encode(uniform(2, 1, 16, 16))
    assert code.log_variance.exp().isfinite().all()
    assert code.log_variance.max() > 5  # the bound is far above common values


def test_the_encoder_does_not_depend_on_the_environment():
    """Codes of all environments are in one space: the net that encodes has no input for it."""
    net = build(environments=3)
    with torch.no_grad():
        net.condition.weight[:, 5:] = 9.0
        net.environment_head.weight[:] = 9.0
    torch.testing.assert_close(
        net.encode(uniform(2, 1, 16, 16)).mean, build().encode(uniform(2, 1, 16, 16)).mean
    )


def test_a_new_environment_decodes_as_the_one_it_is_copied_from():
    net, z = build(environments=4), uniform(3, 5)
    before = [net.decode(z, torch.tensor(environment)) for environment in range(4)]
    net.copy_environment(torch.tensor(2), torch.tensor([False, False, False, True]))
    after = [net.decode(z, torch.tensor(environment)) for environment in range(4)]
    assert all(map(torch.equal, after[:3], before[:3]))
    torch.testing.assert_close(after[3], before[2])
    assert not torch.allclose(after[3], before[3])


def test_copying_to_no_environment_changes_nothing():
    net = build()
    before = net.condition.weight.clone()
    net.copy_environment(torch.tensor(1), torch.zeros(3, dtype=torch.bool))
    assert torch.equal(net.condition.weight, before)


def test_the_environment_classifier_sends_no_gradient_to_the_encoder():
    net = build()
    code = net.encode(uniform(4, 1, 16, 16))
    cross_entropy(net.environment_logits(code.features), torch.tensor([0, 1, 2, 0])).backward()
    trained = {name for name, w in net.named_parameters() if w.grad is not None}
    assert trained == {"environment_head.weight", "environment_head.bias"}


def test_selected_rows_of_a_code_are_the_code_of_those_images():
    net, images = build(), uniform(6, 1, 16, 16)
    for found, expected in zip(
        net.encode(images).select(slice(2, 4)), net.encode(images[2:4]), strict=True
    ):
        torch.testing.assert_close(found, expected)
