"""Nets by name: their sizes by hand, their shapes, and weights determined by a seed."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from everlearn.nets import NETS, build_net
from everlearn.nets.convnet import ConvNet
from everlearn.nets.layers.head import Head
from everlearn.nets.layers.norm import Norm
from everlearn.nets.resnet import ResNet18

pytestmark = pytest.mark.integration


def count_parameters(net):
    return sum(weight.numel() for weight in net.parameters())


def images(count, channels, size, seed=0):
    return torch.rand(count, channels, size, size, generator=torch.Generator().manual_seed(seed))


def conv(in_channels, out_channels, side):
    """Weights of a convolution without bias and of the normalisation after it."""
    return in_channels * out_channels * side * side + 2 * out_channels


def test_resnet18_has_the_weights_counted_by_hand():
    stem = conv(1, 64, 7)
    stages = 4 * conv(64, 64, 3)
    for in_channels, out_channels in [(64, 128), (128, 256), (256, 512)]:
        stages += (
            conv(in_channels, out_channels, 3)
            + 3 * conv(out_channels, out_channels, 3)
            + conv(in_channels, out_channels, 1)
        )
    head = 512 * 6 + 6
    assert stem + stages + head == 11_173_318
    assert count_parameters(ResNet18(1, 6)) == 11_173_318


def test_a_small_stem_and_more_channels_change_the_first_layer_only():
    assert count_parameters(ResNet18(3, 6)) == 11_173_318 + 2 * 64 * 49
    assert count_parameters(ResNet18(1, 6, "small")) == 11_173_318 - 64 * (49 - 9)


def test_the_flat_convnet_has_the_weights_counted_by_hand():
    convs = conv(1, 32, 3) + conv(32, 64, 3) + conv(64, 128, 3) + conv(128, 128, 3)
    # 32 pixels are halved three times: 4 x 4 positions of 128 channels.
    linear = (4 * 4 * 128 * 256 + 256) + (256 * 6 + 6)
    assert convs + linear == 766_694
    assert count_parameters(ConvNet(1, 6, 32)) == 766_694


def test_the_pooled_convnet_has_the_same_convolutions_and_one_linear_layer():
    convs = conv(3, 32, 3) + conv(32, 64, 3) + conv(64, 128, 3) + conv(128, 128, 3)
    assert count_parameters(ConvNet(3, 10, 32, pooled=True)) == convs + 128 * 10 + 10


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize(("channels", "size"), [(1, 32), (3, 33), (1, 64), (3, 100)])
def test_every_net_takes_any_channels_and_sizes(name, channels, size):
    net = build_net(name, channels, 7, size, seed=0)
    batch = images(2, channels, size)
    assert net(batch).shape == (2, 7)
    assert net.features(batch).shape == (2, net.width)


@pytest.mark.parametrize("name", ["resnet18", "convnet", "convnet-pooled"])
def test_every_net_takes_large_images(name):
    net = build_net(name, 3, 6, 224, seed=0).eval()
    assert net(images(1, 3, 224)).shape == (1, 6)


@pytest.mark.parametrize(("stem", "side"), [("standard", 2), ("small", 8)])
def test_stems_differ_in_resolution(stem, side):
    net = ResNet18(1, 6, stem).eval()
    assert net.blocks(net.stem(images(1, 1, 64))).shape == (1, 512, side, side)


@pytest.mark.parametrize(("pooled", "side"), [(False, 4), (True, 8)])
def test_the_pooled_convnet_has_a_higher_resolution(pooled, side):
    net = ConvNet(1, 6, 32, pooled).eval()
    assert net.layers(images(1, 1, 32)).shape == (1, 128, side, side)


def test_a_pooled_convnet_takes_images_of_another_size_than_it_was_built_for():
    assert ConvNet(1, 6, 32, pooled=True).eval()(images(1, 1, 48)).shape == (1, 6)


@pytest.mark.parametrize("name", NETS)
def test_every_weight_of_a_net_gets_a_gradient(name):
    net = build_net(name, 1, 6, 32, seed=0)
    net(images(4, 1, 32)).square().sum().backward()
    for label, weight in net.named_parameters():
        assert weight.grad is not None, label
        assert weight.grad.isfinite().all(), label
        assert weight.grad.any(), label


def test_a_block_adds_its_output_to_its_input():
    block = ResNet18(1, 6).blocks[1].eval()
    with torch.no_grad():
        block.norm2.weight.zero_()
    x = torch.randn(2, 64, 5, 5, generator=torch.Generator().manual_seed(0))
    assert torch.equal(block(x), x.relu())


def test_resnet18_starts_with_the_deviation_of_he_et_al():
    net = build_net("resnet18", 1, 6, 32, seed=0)
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d) and layer.weight.numel() > 10_000:
            fan_out = layer.out_channels * layer.kernel_size[0] ** 2
            assert layer.weight.std().item() == pytest.approx((2 / fan_out) ** 0.5, rel=0.05)


@pytest.mark.parametrize("name", NETS)
def test_the_seed_determines_the_weights(name):
    one, two, other = (build_net(name, 1, 6, 32, seed).state_dict() for seed in (5, 5, 6))
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert not torch.equal(one["head.weight"], other["head.weight"])


def test_the_largest_seed_of_a_stream_is_accepted():
    assert count_parameters(build_net("convnet", 1, 6, 32, 2**64 - 1)) == 766_694


def test_building_does_not_advance_torchs_generator():
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    build_net("convnet", 1, 6, 32, seed=5)
    assert torch.equal(torch.rand(3), expected)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="unknown net 'resnet19'; known: ") as error:
        build_net("resnet19", 1, 6, 32, seed=0)
    assert all(name in str(error.value) for name in NETS)
    with pytest.raises(ValueError, match="unknown stem 'tiny'; known: standard, small"):
        ResNet18(1, 6, "tiny")


def test_a_head_returns_float32_for_any_input_dtype():
    head = Head(8, 3)
    x = torch.randn(2, 8, generator=torch.Generator().manual_seed(0)).bfloat16()
    assert head(x).dtype == torch.float32
    assert torch.equal(head(x), nn.functional.linear(x.float(), head.weight, head.bias))


def test_only_shortcuts_have_normalisations_without_relu():
    without_relu = [
        n for n, m in ResNet18(1, 6).named_modules() if isinstance(m, Norm) and not m.relu
    ]
    assert without_relu == [f"blocks.{index}.shortcut.1" for index in (2, 4, 6)]
