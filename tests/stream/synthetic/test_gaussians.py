"""The stream of points is a pure function of its seed, and its points are what they are said to be."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from everlearn.stream import Gaussians, Split, read_stream


def points(split: Split) -> torch.Tensor:
    return split.batch(slice(None)).images.flatten(1)


def test_the_default_is_the_toy_stream_of_20_classes() -> None:
    stream = Gaussians()
    assert (len(stream), len(stream.class_ids), stream.canvas.shape) == (5, 20, (32, 1, 1))
    for index, task in enumerate(stream):
        assert task.classes == tuple(range(4 * index, 4 * index + 4))
        assert np.bincount(task.train.labels)[4 * index :].tolist() == [200] * 4
        assert np.bincount(task.test.labels)[4 * index :].tolist() == [50] * 4
        assert task.train.batch([3, 1]).images.shape == (2, 32, 1, 1)


def test_points_follow_from_the_seed_in_any_order_of_tasks() -> None:
    forward = [points(task.train) for task in Gaussians(seed=3)]
    for index in (4, 0, 2, -1):
        assert torch.equal(points(Gaussians(seed=3)[index].train), forward[index])
    assert not torch.equal(points(Gaussians(seed=4)[0].train), forward[0])


def test_a_class_has_the_same_points_in_longer_streams_and_other_tasks() -> None:
    short, long = Gaussians(tasks=2), Gaussians(tasks=7, classes_per_task=8)
    mine, other = short[1].train, long[0].train
    for label in (4, 5, 6, 7):
        rows = [np.flatnonzero(split.labels == label) for split in (mine, other)]
        assert torch.equal(points(mine)[rows[0]], points(other)[rows[1]])


def test_splits_are_disjoint() -> None:
    task = Gaussians(train=30, val=10, test=20)[0]
    rows = [
        row.numpy().tobytes()
        for split in (task.train, task.val, task.test, task.canonical)
        for row in points(split)
    ]
    assert len(set(rows)) == len(rows) == 4 * (30 + 10 + 20 + 1)


def test_class_means_are_standard_normal_and_the_canonical_points() -> None:
    stream = Gaussians(tasks=1, classes_per_task=2_000, train=1, val=0, test=1)
    means = points(stream[0].canonical).double()
    # 64,000 numbers: standard errors of 0.004 and 0.006.
    assert abs(float(means.mean())) < 0.02
    assert abs(float(means.var()) - 1) < 0.03
    # 2,000 pairs each: a standard error of 0.022.
    assert float((torch.corrcoef(means.T) - torch.eye(32)).abs().max()) < 0.11


@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_noise_about_the_mean_is_standard_normal(split: str) -> None:
    stream = Gaussians(tasks=1, train=1_000, val=1_000, test=1_000)
    task = stream[0]
    noise = points(task.split(split)).double().reshape(4, 1_000, 32)
    noise -= points(task.canonical)[:, None]
    assert float(noise.mean(1).abs().max()) < 0.15  # a standard error of 0.032
    assert abs(float(noise.var()) - 1) < 0.02  # of 0.004
    assert abs(float(noise.pow(4).mean()) - 3) < 0.15  # of 0.027
    assert float((torch.corrcoef(noise.reshape(-1, 32).T) - torch.eye(32)).abs().max()) < 0.08


def test_there_may_be_an_odd_number_of_dimensions_and_no_val_points() -> None:
    assert len(Gaussians(val=0)[0].val) == 0
    odd = points(Gaussians(dimensions=3, train=5)[0].train)
    assert odd.shape == (20, 3)
    assert odd.unique().numel() == 60


@pytest.mark.parametrize("stream", [Gaussians(), Gaussians(7, 3, 2, 5, 10, 0, 4, online=True)])
def test_json_gives_an_equal_stream(stream: Gaussians) -> None:
    assert Gaussians.from_json(stream.to_json()) == stream
    assert read_stream(stream.to_json()) == stream


def test_unknown_settings_and_newer_formats_are_refused() -> None:
    settings = json.loads(Gaussians().to_json())
    with pytest.raises(ValueError, match=r"unknown settings \['colour'\] of a stream of points"):
        Gaussians.from_json(json.dumps(settings | {"colour": 1}))
    with pytest.raises(ValueError, match=r"everlearn_gaussians 2; .* update everlearn"):
        Gaussians.from_json(json.dumps(settings | {"everlearn_gaussians": 2}))


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("seed", -1, ValueError),
        ("tasks", 0, ValueError),
        ("tasks", None, TypeError),
        ("classes_per_task", 0, ValueError),
        ("dimensions", 2.5, TypeError),
        ("train", 0, ValueError),
        ("test", 0, ValueError),
        ("val", -1, ValueError),
        ("online", 1, TypeError),
    ],
)
def test_bad_settings_are_refused(name: str, value: object, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=name):
        Gaussians().with_changes(**{name: value})


@pytest.mark.parametrize("index", [5, -6])
def test_a_task_that_is_not_there_is_refused(index: int) -> None:
    with pytest.raises(IndexError, match=r"not in the stream \(0 .. 4\)"):
        Gaussians()[index]


def test_an_online_stream_allows_one_pass() -> None:
    task = Gaussians(online=True)[0]
    assert sum(len(batch.labels) for batch in task.batches(32)) == 800
    with pytest.raises(ValueError, match="one pass is allowed"):
        task.batches(32, epochs=2)
