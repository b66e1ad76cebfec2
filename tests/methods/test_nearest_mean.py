"""The nearest class mean: a net that is frozen after its first task, and one mean a class."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from everlearn import Canvas, Stream
from everlearn.core.settings import change_settings
from everlearn.learner import Learner
from everlearn.methods.nearest_mean import NearestMean, Settings
from everlearn.stream import Gaussians

from .conftest import (
    TOY,
    assert_first_task_is_fine_tuning,
    assert_resumes,
    learn,
    same,
    toy_accuracy,
)

SMALL = TOY | {"batch_size": 16, "epochs": 2}
POINTS = Gaussians(tasks=3, classes_per_task=2, dimensions=8, train=40)
PICTURES = Stream(tasks=2, classes_per_task=2, values_per_factor=3, canvas=Canvas(size=16))
NET = {"net": "convnet-pooled", "batch_size": 32, "epochs": 1}


def make(stream: Any = POINTS, **changes: Any) -> NearestMean:
    return NearestMean(stream, change_settings(Settings(), changes, "nearest-mean"), "cpu")


def nets(learner: Learner) -> list[torch.Tensor]:
    return [value.clone() for value in learner.state()["net"].values()]


def test_first_task_equals_fine_tuning() -> None:
    assert_first_task_is_fine_tuning(make(PICTURES, **NET), PICTURES, NET)


@pytest.mark.parametrize("trained", [0, 1, 2])
def test_net_is_frozen_after_the_trained_tasks(trained: int) -> None:
    learner = make(PICTURES, **NET, trained_tasks=trained)
    changed = []
    for task in PICTURES:
        before = nets(learner)
        learn(learner, [task])
        changed.append(not same(nets(learner), before))
    assert changed == [trained > 0, trained > 1]


def test_means_are_over_all_training_images_of_a_class() -> None:
    learner = learn(make(PICTURES, **NET), PICTURES)
    net = learner.trainer.net.eval()
    for task in PICTURES:
        batch = task.train.batch(slice(None))
        with torch.no_grad():
            seen = net.features(batch.images).double()
        for label in task.classes:
            own = seen[batch.labels == label]
            assert learner.counts[label] == len(own)
            torch.testing.assert_close(
                learner.sums[label] / len(own), own.mean(0), rtol=1e-5, atol=1e-6
            )


def test_predicts_the_nearest_mean() -> None:
    learner = learn(make(**SMALL), [POINTS[0], POINTS[1]])
    images = torch.cat([task.test.batch(slice(None)).images for task in POINTS])
    means = (learner.sums / learner.counts[:, None])[:4]
    with torch.no_grad():
        far = torch.cdist(learner.trainer.net.features(images).double(), means)
    assert torch.equal(learner.predict(images), far.argmin(1))
    assert torch.equal(learner.predict(images, [3, 1]), far[:, [1, 3]].argmin(1) * 2 + 1)


def test_classes_without_a_mean_are_never_predicted() -> None:
    learner, images = make(**SMALL), POINTS[0].test.batch(slice(None)).images
    assert (learner.predict(images) == -1).all()
    learn(learner, [POINTS[0]])
    assert set(learner.predict(images).tolist()) == {0, 1}
    assert set(learner.predict(images, [1, 5]).tolist()) == {1}
    assert (learner.predict(images, [5]) == -1).all()


def test_order_of_tasks_does_not_matter_to_a_frozen_net() -> None:
    one, other = (
        learn(make(**SMALL, trained_tasks=0), [POINTS[index] for index in order])
        for order in ([0, 1, 2], [2, 0, 1])
    )
    torch.testing.assert_close(one.sums, other.sums)
    assert torch.equal(one.counts, other.counts)


def test_a_returning_class_adds_to_its_mean() -> None:
    stream = PICTURES.with_changes(scenario="domain")
    learner = learn(make(stream, **NET), stream)
    rows = [len(stream[index].train) for index in (0, 1)]
    assert learner.counts.sum() == sum(rows)
    assert (learner.counts > 0).sum() == len(stream[0].classes)


def test_averaging_yields_a_loss_of_zero_per_batch() -> None:
    learner = make(**SMALL)
    first, second = ([float(loss) for loss in learner.learn(POINTS[index])] for index in (0, 1))
    assert len(first) == 10
    assert min(first) > 0
    assert second == [0.0] * 5


def test_resumes_bit_for_bit() -> None:
    for count, settings in ((1, SMALL), (1, SMALL | {"trained_tasks": 2}), (2, SMALL)):
        whole, second = assert_resumes(partial(make, **settings), POINTS, stop=count)
        assert torch.equal(whole.sums, second.sums)
        assert torch.equal(whole.counts, second.counts)


def test_optimizer_of_a_frozen_net_is_not_stored() -> None:
    learner = make(**SMALL)
    assert learner.state()["optimizer"]
    assert not learn(learner, [POINTS[0]]).state()["optimizer"]


def test_an_online_stream_needs_an_untrained_net() -> None:
    online = POINTS.with_changes(online=True)
    with pytest.raises(ValueError, match="online stream shows them once; give trained_tasks=0"):
        make(online, **SMALL | {"epochs": 1})
    assert (
        learn(make(online, **SMALL | {"epochs": 1, "trained_tasks": 0}), [online[0]]).counts.sum()
        == 80
    )


def test_remembers_the_toy_stream() -> None:
    settings = SMALL | {"batch_size": 32, "trained_tasks": 0}
    assert toy_accuracy(partial(make, **settings)) > 0.9
