"""Squared gradients of all samples at once equal those found sample by sample."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import log_softmax, softmax

from everlearn.nets import build_net, precision
from everlearn.nets.layers.norm import Norm, use_instance_stats
from everlearn.nets.precision import eval_mode, to_device
from everlearn.stream import Gaussians
from everlearn.training import fisher

NETS = [
    ("mlp", 3, 4, 9),
    ("convnet", 2, 16, 5),
    ("convnet-pooled", 3, 16, 5),
    ("resnet18", 1, 32, 3),
    ("resnet18-small", 1, 16, 3),
]


def make(name="convnet-pooled", channels=2, size=8, count=5, outputs=6, device="cpu"):
    """A net with updated running statistics, images and targets."""
    net = to_device(build_net(name, channels, outputs, size, seed=0), "cpu")
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(count, channels, size, size, generator=generator)
    targets = torch.randint(outputs, (count,), generator=generator)
    with torch.no_grad():
        for weight in net.parameters():
            weight += 0.1 * torch.randn(weight.shape, generator=generator)
        net(torch.rand(8, channels, size, size, generator=generator))
    return net.to(device), images.to(device), targets.to(device)


def one_by_one(net, images, targets, among=None):
    weights = list(net.parameters())
    sums = [torch.zeros_like(weight) for weight in weights]
    net.eval()
    for image, target in zip(images, targets, strict=True):
        logits = net(image[None])
        logits = logits if among is None else logits.masked_fill(~among, -torch.inf)
        gradients = torch.autograd.grad(log_softmax(logits, 1)[0, target], weights)
        for total, gradient in zip(sums, gradients, strict=True):
            total += gradient.square() / len(images)
    return sums


def assert_near(found, expected, tolerance=1e-4):
    for one, two in zip(found, expected, strict=True):
        assert one.shape == two.shape
        assert (one - two).abs().max() <= tolerance * two.abs().max()


@pytest.mark.parametrize(("name", "channels", "size", "count"), NETS)
def test_all_samples_at_once_equal_one_by_one(name, channels, size, count):
    net, images, targets = make(name, channels, size, count)
    assert_near(fisher.empirical(net, images, targets), one_by_one(net, images, targets))


def test_biases_of_convolutions_are_included():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(2, 3, 3, 2, 1, 1), nn.ReLU(), nn.Flatten(), nn.Linear(12, 4))
    images, targets = torch.rand(5, 2, 4, 4), torch.tensor([0, 1, 2, 3, 0])
    assert_near(fisher.empirical(net, images, targets), one_by_one(net, images, targets))


def test_the_chunk_size_does_not_matter(monkeypatch):
    net, images, targets = make(count=7)
    together = fisher.empirical(net, images, targets)
    monkeypatch.setattr(fisher, "_CHUNK", 3)
    monkeypatch.setattr(fisher, "_MAX_ELEMENTS", {"cpu": 1})
    assert_near(fisher.empirical(net, images, targets), together, 1e-5)


def test_masked_outputs_are_not_in_the_softmax():
    net, images, _ = make()
    among = torch.tensor([True, True, False, True, False, False])
    targets = torch.tensor([0, 1, 3, 3, 0])
    found = fisher.empirical(net, images, targets, among)
    assert_near(found, one_by_one(net, images, targets, among))
    assert not found[-1][~among].any()


def test_the_diagonal_of_a_linear_softmax_is_that_of_the_formula():
    """F of weight (k, j) is the mean over x of p_k (1 - p_k) x_j^2; of bias k, of p_k (1 - p_k)."""
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(6, 4))
    points, draws = torch.randn(60, 6, 1, 1, generator=generator), 500
    uniforms = (torch.arange(draws) + torch.rand(60, draws, generator=generator)).double() / draws
    found = fisher.diagonal(net, points.repeat_interleave(draws, 0), uniforms.flatten())
    with torch.no_grad():
        p = softmax(net(points), 1)
    variance = p * (1 - p)
    expected = variance.T @ points.flatten(1).square() / 60, variance.mean(0)
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two, rtol=0.05, atol=0)


def test_labels_are_sampled_from_the_net():
    net, images, _ = make(count=8)
    uniforms = torch.linspace(0.01, 0.99, 8, dtype=torch.float64)
    with eval_mode(net):
        targets = fisher.sample_labels(net(images), uniforms)
    found, expected = fisher.diagonal(net, images, uniforms), fisher.empirical(net, images, targets)
    assert all(torch.equal(one, two) for one, two in zip(found, expected, strict=True))


def test_labels_are_sampled_by_probability_and_never_masked_ones():
    p = torch.tensor([0.0, 0.1, 0.0, 0.6, 0.3, 0.0])
    uniforms = (torch.arange(1000, dtype=torch.float64)) / 1000
    targets = fisher.sample_labels(p.log().expand(1000, -1), uniforms)
    counts = torch.bincount(targets, minlength=6)
    torch.testing.assert_close(counts.double() / 1000, p.double(), atol=0.0015, rtol=0)
    assert not counts[p == 0].any()
    assert fisher.sample_labels(p.log()[None], torch.tensor([np.nextafter(1, 0)])) == 4


def test_nan_logits_still_give_a_valid_label():
    assert fisher.sample_labels(torch.full((1, 3), torch.nan), torch.tensor([0.5]).double()) < 3


def test_the_net_does_not_change():
    net, images, targets = make()
    before = [value.clone() for value in net.state_dict().values()]
    for training in (True, False):
        net.train(training)
        fisher.empirical(net, images, targets)
        assert all(layer.training is training for layer in net.modules())
    assert all(torch.equal(a, b) for a, b in zip(before, net.state_dict().values(), strict=True))
    assert all(weight.grad is None for weight in net.parameters())
    assert not any(layer._forward_hooks for layer in net.modules())


def test_samples_are_drawn_without_replacement_and_reproducibly():
    stream = Gaussians(tasks=2, classes_per_task=2, dimensions=4, train=20)
    batch, uniforms = fisher.draw_samples(stream[0], 15, "cpu")
    rows = {row.numpy().tobytes() for row in stream[0].train.batch(slice(None)).images}
    drawn = [image.numpy().tobytes() for image in batch.images]
    assert len(set(drawn)) == len(drawn) == len(uniforms) == 15
    assert set(drawn) <= rows
    again, other = (
        fisher.draw_samples(stream[0], 15, "cpu"),
        fisher.draw_samples(stream[1], 15, "cpu"),
    )
    assert torch.equal(again[0].images, batch.images)
    assert torch.equal(again[1], uniforms)
    assert not set(uniforms.tolist()) & set(other[1].tolist())


def test_a_task_with_fewer_images_gives_all_of_them():
    task = Gaussians(tasks=1, classes_per_task=2, dimensions=4, train=20)[0]
    assert len(fisher.draw_samples(task, 1000, "cpu")[0].labels) == 40


class Twice(nn.Module):
    """A layer that is used twice."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, images):
        return self.layer(self.layer(images.flatten(1)))


class Tokens(nn.Module):
    """A linear layer on three-dimensional inputs."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 4)

    def forward(self, images):
        return self.layer(images.flatten(2)).mean(1)


def with_instance_stats(net):
    use_instance_stats(net, 0.5)
    return net


@pytest.mark.parametrize(
    ("net", "message"),
    [
        (nn.Sequential(nn.Flatten(), nn.LayerNorm(4), nn.Linear(4, 4)), "found LayerNorm"),
        (nn.Sequential(nn.Conv2d(4, 4, 1, groups=2), nn.Flatten()), "found Conv2d"),
        (nn.Sequential(with_instance_stats(Norm(4)), nn.Flatten()), "found Norm"),
        (Twice(), "used again"),
        (Tokens(), "must give"),
    ],
)
def test_unsupported_layers_are_refused(net, message):
    images, targets = torch.rand(2, 4, 1, 1), torch.tensor([0, 1])
    with pytest.raises((TypeError, ValueError), match=message):
        fisher.empirical(net, images, targets)
    assert not any(layer._forward_hooks for layer in net.modules())


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "channels", "size", "count"), NETS)
def test_a_gpu_gives_the_same(name, channels, size, count, monkeypatch):
    # The gradients of these nets are so large that the rounding of TF32 would show.
    exact = partial(torch.backends.cudnn.flags, enabled=True, deterministic=True, allow_tf32=False)
    for home in (fisher, precision):
        monkeypatch.setattr(home, "deterministic", exact)
    here = fisher.empirical(*make(name, channels, size, count))
    there = fisher.empirical(*make(name, channels, size, count, device="cuda"))
    assert_near([one.cpu() for one in there], here, 1e-3)
