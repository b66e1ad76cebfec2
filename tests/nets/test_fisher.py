"""Squares of every sample's own slopes, found all at once, are those found one by one."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import log_softmax, softmax

from everlearn.nets import build_net, fast, fisher
from everlearn.nets.norm import Norm, count_own
from everlearn.stream import Gaussians

NETS = [
    ("mlp", 3, 4, 9),
    ("convnet", 2, 16, 5),
    ("convnet-pooled", 3, 16, 5),
    ("resnet18", 1, 32, 3),
    ("resnet18-small", 1, 16, 3),
]


def make(name="convnet-pooled", channels=2, size=8, count=5, outputs=6, device="cpu"):
    """A net whose kept moments have moved, some images and some units."""
    net = fast.place(build_net(name, channels, outputs, size, seed=0), "cpu")
    rng = torch.Generator().manual_seed(0)
    images = torch.rand(count, channels, size, size, generator=rng)
    units = torch.randint(outputs, (count,), generator=rng)
    with torch.no_grad():
        for weight in net.parameters():
            weight += 0.1 * torch.randn(weight.shape, generator=rng)
        net(torch.rand(8, channels, size, size, generator=rng))
    return net.to(device), images.to(device), units.to(device)


def one_by_one(net, images, units, among=None):
    weights = list(net.parameters())
    sums = [torch.zeros_like(weight) for weight in weights]
    net.eval()
    for image, unit in zip(images, units, strict=True):
        logits = net(image[None])
        logits = logits if among is None else logits.masked_fill(~among, -torch.inf)
        slopes = torch.autograd.grad(log_softmax(logits, 1)[0, unit], weights)
        for total, slope in zip(sums, slopes, strict=True):
            total += slope.square() / len(images)
    return sums


def assert_near(ones, twos, tolerance=1e-4):
    for one, two in zip(ones, twos, strict=True):
        assert one.shape == two.shape
        assert (one - two).abs().max() <= tolerance * two.abs().max()


@pytest.mark.parametrize(("name", "channels", "size", "count"), NETS)
def test_all_at_once_is_one_by_one(name, channels, size, count):
    net, images, units = make(name, channels, size, count)
    assert_near(fisher.empirical(net, images, units), one_by_one(net, images, units))


def test_biases_of_convolutions_count():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(2, 3, 3, 2, 1, 1), nn.ReLU(), nn.Flatten(), nn.Linear(12, 4))
    images, units = torch.rand(5, 2, 4, 4), torch.tensor([0, 1, 2, 3, 0])
    assert_near(fisher.empirical(net, images, units), one_by_one(net, images, units))


def test_how_many_go_at_once_does_not_matter(monkeypatch):
    net, images, units = make(count=7)
    whole = fisher.empirical(net, images, units)
    monkeypatch.setattr(fisher, "_SAMPLES", 3)
    monkeypatch.setattr(fisher, "_NUMBERS", {"cpu": 1})
    assert_near(fisher.empirical(net, images, units), whole, 1e-5)


def test_outputs_that_are_shut_take_no_part():
    net, images, _ = make()
    among = torch.tensor([True, True, False, True, False, False])
    units = torch.tensor([0, 1, 3, 3, 0])
    found = fisher.empirical(net, images, units, among)
    assert_near(found, one_by_one(net, images, units, among))
    assert not found[-1][~among].any()


def test_b4_of_a_softmax_of_a_linear_layer_it_is_the_textbooks():
    """F of weight (k, j) is the mean over x of p_k (1 - p_k) x_j^2; of bias k, of p_k (1 - p_k)."""
    rng = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(6, 4))
    points, draws = torch.randn(60, 6, 1, 1, generator=rng), 500
    chance = (torch.arange(draws) + torch.rand(60, draws, generator=rng)).double() / draws
    found = fisher.diagonal(net, points.repeat_interleave(draws, 0), chance.flatten())
    with torch.no_grad():
        p = softmax(net(points), 1)
    spread = p * (1 - p)
    wanted = spread.T @ points.flatten(1).square() / 60, spread.mean(0)
    for one, two in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, two, rtol=0.05, atol=0)


def test_labels_are_drawn_from_the_net():
    net, images, _ = make(count=8)
    chance = torch.linspace(0.01, 0.99, 8, dtype=torch.float64)
    with fast.evaluating(net):
        units = fisher.sample(net(images), chance)
    found, wanted = fisher.diagonal(net, images, chance), fisher.empirical(net, images, units)
    assert all(torch.equal(one, two) for one, two in zip(found, wanted, strict=True))


def test_outputs_are_drawn_by_their_probability_and_never_a_shut_one():
    p = torch.tensor([0.0, 0.1, 0.0, 0.6, 0.3, 0.0])
    chance = (torch.arange(1000, dtype=torch.float64)) / 1000
    units = fisher.sample(p.log().expand(1000, -1), chance)
    counts = torch.bincount(units, minlength=6)
    torch.testing.assert_close(counts.double() / 1000, p.double(), atol=0.0015, rtol=0)
    assert not counts[p == 0].any()
    assert fisher.sample(p.log()[None], torch.tensor([np.nextafter(1, 0)])) == 4


def test_of_logits_that_are_no_numbers_an_output_is_drawn_all_the_same():
    assert fisher.sample(torch.full((1, 3), torch.nan), torch.tensor([0.5]).double()) < 3


def test_all_is_left_as_it_was():
    net, images, units = make()
    before = [value.clone() for value in net.state_dict().values()]
    for training in (True, False):
        net.train(training)
        fisher.empirical(net, images, units)
        assert all(layer.training is training for layer in net.modules())
    assert all(torch.equal(a, b) for a, b in zip(before, net.state_dict().values(), strict=True))
    assert all(weight.grad is None for weight in net.parameters())
    assert not any(layer._forward_hooks for layer in net.modules())


def test_images_are_drawn_from_the_task_each_once_by_address():
    stream = Gaussians(tasks=2, classes_per_task=2, dimensions=4, train=20)
    batch, chance = fisher.draw(stream[0], 15, "cpu")
    rows = {row.numpy().tobytes() for row in stream[0].train.batch(slice(None)).images}
    drawn = [image.numpy().tobytes() for image in batch.images]
    assert len(set(drawn)) == len(drawn) == len(chance) == 15
    assert set(drawn) <= rows
    again, other = fisher.draw(stream[0], 15, "cpu"), fisher.draw(stream[1], 15, "cpu")
    assert torch.equal(again[0].images, batch.images)
    assert torch.equal(again[1], chance)
    assert not set(chance.tolist()) & set(other[1].tolist())


def test_a_task_with_fewer_images_gives_all():
    task = Gaussians(tasks=1, classes_per_task=2, dimensions=4, train=20)[0]
    assert len(fisher.draw(task, 1000, "cpu")[0].labels) == 40


class Twice(nn.Module):
    """A layer that is used again."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, images):
        return self.layer(self.layer(images.flatten(1)))


class Tokens(nn.Module):
    """A linear layer over more than rows."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 4)

    def forward(self, images):
        return self.layer(images.flatten(2)).mean(1)


def own(net):
    count_own(net, 0.5)
    return net


@pytest.mark.parametrize(
    ("net", "words"),
    [
        (nn.Sequential(nn.Flatten(), nn.LayerNorm(4), nn.Linear(4, 4)), "found LayerNorm"),
        (nn.Sequential(nn.Conv2d(4, 4, 1, groups=2), nn.Flatten()), "found Conv2d"),
        (nn.Sequential(own(Norm(4)), nn.Flatten()), "found Norm"),
        (Twice(), "used again"),
        (Tokens(), "must give"),
    ],
)
def test_what_it_cannot_tell_is_refused(net, words):
    images, units = torch.rand(2, 4, 1, 1), torch.tensor([0, 1])
    with pytest.raises((TypeError, ValueError), match=words):
        fisher.empirical(net, images, units)
    assert not any(layer._forward_hooks for layer in net.modules())


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "channels", "size", "count"), NETS)
def test_a_gpu_gives_the_same(name, channels, size, count, monkeypatch):
    # These nets are so steep that the rounding of TF32 would show.
    exact = partial(torch.backends.cudnn.flags, enabled=True, deterministic=True, allow_tf32=False)
    for home in (fast, fast.passes):
        monkeypatch.setattr(home, "steady", exact)
    here = fisher.empirical(*make(name, channels, size, count))
    there = fisher.empirical(*make(name, channels, size, count, device="cuda"))
    assert_near([one.cpu() for one in there], here, 1e-3)
