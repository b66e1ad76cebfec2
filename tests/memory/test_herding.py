"""Herding selects items with a mean near that of their class; classes shrink from the end."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from everlearn.memory import Buffer
from everlearn.memory.herded_exemplars import HerdedExemplars
from everlearn.memory.herding import group, group_means, herd
from everlearn.stream import Gaussians, Split

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def random_features(count: int, size: int = 6, seed: int = 0) -> Tensor:
    """Return non-negative features of length 1, as after a ReLU."""
    rng = torch.Generator().manual_seed(seed)
    return normalize(torch.rand((count, size), generator=rng), dim=1)


def reference_herd(features: Tensor, weights: Tensor, count: int) -> list[int]:
    """Algorithm 4 of the paper, line by line."""
    mean = (features * weights[:, None]).sum(0) / weights.sum()
    chosen: list[int] = []
    for k in range(1, min(count, len(features)) + 1):
        total = features[chosen].sum(0)
        distances = [
            torch.inf if row in chosen else float((mean - (features[row] + total) / k).norm())
            for row in range(len(features))
        ]
        chosen.append(int(np.argmin(distances)))
    return chosen


@pytest.mark.parametrize("device", DEVICES)
def test_herd_agrees_with_the_algorithm_of_the_paper(device: str) -> None:
    labels = np.random.default_rng(1).permutation(np.repeat([7, 2, 5], [30, 12, 4]))
    features, weights = random_features(len(labels)), torch.linspace(0.5, 2, len(labels))
    groups = group(labels)
    items = torch.from_numpy(groups.items).to(device)
    means = group_means(features.to(device), items, weights.to(device))
    found = herd(features.to(device), items, means, 10).cpu()
    assert groups.classes.tolist() == [2, 5, 7]
    for row, label in enumerate(groups.classes):
        members = np.flatnonzero(labels == label)
        best = members[reference_herd(features[members], weights[members], 10)].tolist()
        assert found[row].tolist() == best + [-1] * (10 - len(best))


def test_groups_contain_every_item_once_in_order() -> None:
    groups = group(np.array([3, 1, 3, 3]))
    assert groups.classes.tolist() == [1, 3]
    assert groups.items.tolist() == [[1, -1, -1], [0, 2, 3]]


def test_herded_items_have_a_closer_mean_than_random_items() -> None:
    features, rng = random_features(200), np.random.default_rng(0)
    items = torch.arange(200)[None]
    mean = group_means(features, items, torch.ones(200))
    chosen = herd(features, items, mean, 10)[0]
    distance = (features[chosen].mean(0) - mean).norm()
    others = [(features[rng.permutation(200)[:10]].mean(0) - mean).norm() for _ in range(100)]
    assert distance < 0.5 * sum(others) / 100


STREAM = Gaussians(tasks=4, classes_per_task=2, dimensions=6, train=20)


def extract(images: Tensor) -> Tensor:
    return normalize(images.flatten(1), dim=1)


def herded(capacity: int, tasks: int, stream: Gaussians = STREAM) -> HerdedExemplars:
    exemplars = HerdedExemplars(Buffer(capacity, (6, 1, 1), 32, "cpu"), 8, 0, "cpu")
    for task in range(tasks):
        exemplars.update(stream[task].train, stream[task].train.labels, extract)
    return exemplars


def ranked(exemplars: HerdedExemplars, label: int) -> Tensor:
    """Return the exemplars of a class in herding order."""
    state = exemplars.state()
    slots = (state["targets"] == label).nonzero()[:, 0]
    order = slots[state["ranks"][slots].argsort()]
    assert (exemplars.buffer.targets(order) == label).all()
    return exemplars.buffer.images(order).flatten(1)


def test_shrinking_classes_drop_their_last_exemplars() -> None:
    first = [ranked(herded(17, 1), label) for label in (0, 1)]
    assert [len(one) for one in first] == [8, 8]
    for tasks, share in ((2, 4), (3, 2), (4, 2)):
        exemplars = herded(17, tasks)
        assert len(exemplars.used) == 2 * tasks * share <= 17
        for label in (0, 1):
            assert torch.equal(ranked(exemplars, label), first[label][:share])


def test_exemplars_are_herded_images_of_their_class() -> None:
    exemplars, train = herded(10, 1), STREAM[0].train
    for label in (0, 1):
        images = train.batch(np.flatnonzero(train.labels == label)).images.flatten(1)
        chosen = reference_herd(normalize(images, dim=1), torch.ones(20), 5)
        assert torch.equal(ranked(exemplars, label), images[chosen])


def test_a_recurring_class_selects_among_old_exemplars_and_new_images() -> None:
    exemplars, train = herded(12, 1), STREAM[0].train
    old, new = ranked(exemplars, 0), train.batch(np.arange(5)).images + 3
    recurring = Split(np.zeros(5, np.int64), GivenImages(new))
    exemplars.update(recurring, recurring.labels, extract)
    everything = torch.cat([new.flatten(1), old])
    # Six exemplars represent twenty images.
    weights = torch.tensor([1.0] * 5 + [20 / 6] * 6)
    chosen = reference_herd(normalize(everything, dim=1), weights, 6)
    assert torch.equal(ranked(exemplars, 0), everything[chosen])
    assert len(ranked(exemplars, 1)) == 6
    assert exemplars.state()["seen"].tolist()[:3] == [25, 20, 0]


class GivenImages:
    """An image source that returns given images."""

    def __init__(self, images: Tensor) -> None:
        self.images = images

    def loader(self, device: str):
        return lambda rows: self.images[rows]


def test_with_more_classes_than_slots_some_classes_have_one_exemplar() -> None:
    for tasks in (2, 3, 4):
        exemplars = herded(3, tasks)
        counts = [len(ranked(exemplars, label)) for label in range(8)]
        assert sorted(counts) == [0] * 5 + [1] * 3
    lasting = [label for label in range(8) if counts[label]]
    assert all(len(ranked(herded(3, 3), label)) for label in lasting if label < 6)


def test_means_are_normalized_means_of_the_exemplars() -> None:
    exemplars = herded(10, 2)
    means, known = exemplars.means(extract)
    assert known.tolist() == [True] * 4 + [False] * 4
    for label in range(4):
        mean = extract(ranked(exemplars, label)).mean(0)
        torch.testing.assert_close(means[label], mean / mean.norm())
    assert not means[4:].any()


def test_a_loaded_state_continues_as_before() -> None:
    uninterrupted, first, second = herded(10, 2), herded(10, 1), herded(10, 0)
    second.load_state(first.state())
    second.buffer.load_state(first.buffer.state())
    second.update(STREAM[1].train, STREAM[1].train.labels, extract)
    for name, kept in uninterrupted.state().items():
        assert torch.equal(kept, second.state()[name])
    assert torch.equal(uninterrupted.buffer.state()["images"], second.buffer.state()["images"])
