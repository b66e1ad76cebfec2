"""iCaRL: sigmoids that distil, exemplars by herding, answers by the nearest mean of exemplars."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from everlearn import Canvas, Stream
from everlearn.core.settings import change_settings
from everlearn.memory import draw_replay_rows
from everlearn.methods.icarl import ICaRL, Settings
from everlearn.stream import Gaussians

from .conftest import learn, same_net, toy_accuracy

pytestmark = pytest.mark.integration

SMALL = {
    "final_learning_rate": None,
    "reset_optimizer": False,
    "net": "mlp",
    "optimizer": "sgd",
    "learning_rate": 0.05,
    "batch_size": 16,
    "epochs": 2,
    "buffer_size": 21,
}
POINTS = Gaussians(tasks=3, classes_per_task=2, dimensions=8, train=40)
PICTURES = Stream(
    tasks=3, classes_per_task=3, values_per_factor=3, canvas=Canvas(size=16), scenario="domain"
)


def make(stream: Any = POINTS, **changes: Any) -> ICaRL:
    return ICaRL(stream, change_settings(Settings(), SMALL | changes, "icarl"), "cpu")


def slow_loss(logits: Tensor, labels: Tensor, before: Tensor, old: int, met: int) -> Tensor:
    """Equation of algorithm 3, image by image and class by class."""
    total = torch.zeros(())
    for row, label in enumerate(labels.tolist()):
        for y in range(met):
            g = logits[row, y].sigmoid()
            q = before[row, y].sigmoid() if y < old else torch.tensor(float(y == label))
            total = total - q * g.log() - (1 - q) * (1 - g).log()
    return total / len(labels)


@pytest.mark.parametrize("include_unseen", [False, True])
def test_matches_a_plain_loop(include_unseen: bool) -> None:
    learner = make(include_unseen=include_unseen, replay_batch_size=7, epochs=1)
    net = deepcopy(learner.trainer.net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for task in (POINTS[0], POINTS[1]):
        teacher, used, old = deepcopy(net), learner.exemplars.used, 2 * task.index
        met = 6 if include_unseen else old + 2
        rows = used[draw_replay_rows(POINTS.seed, task.index, len(used), 5, 7)] if old else None
        kept = learner.buffer.state()["images"].clone(), learner.buffer.state()["targets"].clone()
        for step, (loss, batch) in enumerate(
            zip(learner.learn(task), task.batches(16), strict=True)
        ):
            images, labels = batch.images, batch.labels
            if rows is not None:
                images = torch.cat([images, kept[0][rows[step]]])
                labels = torch.cat([labels, kept[1][rows[step]]])
            with torch.no_grad():
                before = teacher(images)
            slow = slow_loss(net(images), labels, before, old, met)
            optimizer.zero_grad()
            slow.backward()
            optimizer.step()
            torch.testing.assert_close(loss, slow.detach().float(), rtol=1e-4, atol=1e-5)
    for a, b in zip(learner.trainer.net.parameters(), net.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_distillation_is_zero_while_the_net_equals_its_teacher() -> None:
    learner = learn(make(momentum=0.0), [POINTS[0]])
    before = learner.trainer.net.head.weight.detach().clone()
    next(learner.learn(POINTS[1]))
    after = learner.trainer.net.head.weight.detach()
    torch.testing.assert_close(after[:2], before[:2], rtol=0, atol=1e-7)
    assert not torch.allclose(after[2:4], before[2:4])
    assert torch.equal(after[4:], before[4:])


def nearest(learner: ICaRL, images: Tensor) -> Tensor:
    """Algorithm 1, class by class."""
    net, targets = learner.trainer.net, learner.exemplars.state()["targets"]
    with torch.no_grad():
        seen = normalize(net.features(images), dim=1)
        means = []
        for label in range(6):
            rows = (targets == label).nonzero()[:, 0]
            own = normalize(net.features(learner.buffer.images(rows)), dim=1).mean(0)
            means.append(own / own.norm() if len(rows) else torch.full((64,), torch.inf))
    return (seen[:, None] - torch.stack(means)).norm(dim=2).argmin(1)


def test_predicts_the_nearest_mean_of_the_current_features() -> None:
    learner = learn(make(), [POINTS[0], POINTS[1]])
    images = torch.cat([task.test.batch(slice(None)).images for task in POINTS])
    stale = learner.predict(images)
    assert torch.equal(stale, nearest(learner, images))
    for _ in learner.learn(POINTS[2]):
        assert torch.equal(learner.predict(images), nearest(learner, images))
    assert not torch.equal(learner.predict(images), stale)
    assert torch.equal(learner.predict(images), nearest(learner, images))


def test_classes_share_the_buffer_equally() -> None:
    learner = make()
    for task, share in zip(POINTS, (10, 5, 3), strict=True):
        learn(learner, [task])
        targets = learner.buffer.targets(torch.from_numpy(learner.exemplars.used))
        assert torch.bincount(targets).tolist() == [share] * (2 * task.index + 2)


def test_returning_classes_learn_their_labels_and_get_new_exemplars() -> None:
    settings = {"net": "convnet-pooled", "batch_size": 32, "epochs": 1, "buffer_size": 30}
    learner = make(PICTURES, **settings)
    for task in PICTURES:
        learn(learner, [task])
        assert not learner.old_classes.any()
        rows = torch.from_numpy(learner.exemplars.used)
        assert torch.bincount(learner.buffer.targets(rows)).tolist() == [10, 10, 10]
    known = {
        image.numpy().tobytes(): (task.index, int(label))
        for task in PICTURES
        for image, label in zip(*task.train.batch(slice(None))[:2], strict=True)
    }
    found = [known[image.numpy().tobytes()] for image in learner.buffer.images(rows)]
    assert [label for _, label in found] == learner.buffer.targets(rows).tolist()
    assert len({task for task, _ in found}) > 1


def test_resumes_bit_for_bit() -> None:
    images = POINTS[0].test.batch(slice(None)).images
    whole, second = learn(make(), POINTS), make()
    assert (second.predict(images) == -1).all()
    second.load_state(learn(make(), [POINTS[0], POINTS[1]]).state())
    learn(second, [POINTS[2]])
    assert same_net(whole, second)
    assert torch.equal(whole.predict(images), second.predict(images))
    for name, kept in whole.exemplars.state().items():
        assert torch.equal(kept, second.exemplars.state()[name])


def test_classes_without_exemplars_are_never_predicted() -> None:
    learner, images = make(), POINTS[0].test.batch(slice(None)).images
    assert (learner.predict(images) == -1).all()
    learn(learner, [POINTS[0]])
    assert set(learner.predict(images, [1, 5]).tolist()) == {1}
    assert (learner.predict(images, [5]) == -1).all()
    assert len(set(learn(make(buffer_size=3), POINTS).predict(images).tolist())) <= 3


def test_online_streams_are_refused() -> None:
    with pytest.raises(ValueError, match="an online stream shows them once"):
        make(POINTS.with_changes(online=True), epochs=1)


@pytest.mark.parametrize("name", ["buffer_size", "replay_batch_size"])
def test_settings_out_of_range_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        make(**{name: 0})


def test_remembers_the_toy_stream() -> None:
    assert toy_accuracy(partial(make, batch_size=32, buffer_size=50)) > 0.9
