"""The contrastive baseline: a memory embedded by the current net, early stopping, and its state."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from everlearn import Canvas, Stream
from everlearn.core.settings import change_settings
from everlearn.evaluation import one_shot, open_set
from everlearn.learner import HasMemory, Learner
from everlearn.memory import FloatExemplars
from everlearn.methods.contrastive import Contrastive, Settings
from everlearn.nets.projection_net import embed
from everlearn.stream import Gaussians
from everlearn.training.early_stopping import EarlyStopping

from .conftest import learn

pytestmark = pytest.mark.integration

POINTS = Gaussians(seed=1, tasks=3, train=40, val=8, test=25)
TOY = {"net": "mlp", "batch_size": 32, "epochs": 3}
PICTURES = Stream(
    tasks=2,
    classes_per_task=3,
    values_per_factor=3,
    canvas=Canvas(size=16),
    split=(0.7, 0.1, 0.2),
)
SMALL = {"net": "convnet-pooled", "batch_size": 32, "epochs": 1}


def make(stream: Any = POINTS, **changes: Any) -> Contrastive:
    small = TOY if isinstance(stream, Gaussians) else SMALL
    settings = change_settings(Settings(), small | changes, "contrastive")
    return Contrastive(stream, settings, "cpu")


def learned(tasks: int, stream: Any = POINTS, **changes: Any) -> Contrastive:
    return learn(make(stream, **changes), (stream[index] for index in range(tasks)))


def count_steps(learner: Contrastive, stream: Any) -> int:
    return sum(1 for _ in learner.learn(stream[0]))


def images_and_labels(stream: Any = POINTS, tasks: int = 3) -> tuple[Tensor, Tensor]:
    batches = [stream[index].test.batch(slice(None)) for index in range(tasks)]
    return torch.cat([b.images for b in batches]), torch.cat([b.labels for b in batches])


def cosines(learner: Contrastive, images: Tensor) -> Tensor:
    """Return the cosines of images and all exemplars by the current net."""
    return embed(learner.net, images) @ embed(learner.net, learner.memory.images()).T


def test_it_is_a_learner_with_a_memory() -> None:
    assert isinstance(make(), Learner)
    assert isinstance(make(), HasMemory)


def test_it_learns_every_task_and_forgets_less_than_all() -> None:
    learner = make(epochs=5)
    images, labels = images_and_labels()
    for index, task in enumerate(POINTS):
        learn(learner, [task])
        here = labels // 4 == index
        assert (learner.predict(images[here]) == labels[here]).float().mean() > 0.8
    # The last task alone would be a third.
    assert (learner.predict(images) == labels).float().mean() > 0.5


@pytest.mark.integration
def test_it_learns_images() -> None:
    stream = PICTURES.with_changes(values_per_factor=4)
    learner = learned(1, stream, epochs=8, learning_rate=3e-3)
    images, labels = images_and_labels(stream, 1)
    assert (learner.predict(images) == labels).float().mean() > 0.6


@pytest.mark.parametrize(("stream", "negatives"), [(POINTS, 0), (POINTS, 3), (PICTURES, 0)])
def test_a_loaded_state_continues_to_the_same_bits(stream: Any, negatives: int) -> None:
    whole = learned(2, stream, negative_exemplars=negatives)
    first = learned(1, stream, negative_exemplars=negatives)
    second = make(stream, negative_exemplars=negatives)
    second.load_state(first.state())
    learn(second, [stream[1]])
    for name, weight in whole.state()["net"].items():
        assert torch.equal(weight, second.state()["net"][name])
    images, _ = images_and_labels(stream, 2)
    one, two = (learner.match(images, learner.memory) for learner in (whole, second))
    assert torch.equal(one.labels, two.labels)
    assert torch.equal(one.distances, two.distances)


def test_exemplars_are_embedded_by_the_current_net_after_every_step() -> None:
    learner, images = learned(1), images_and_labels()[0]
    for _ in learner.learn(POINTS[1]):
        found = learner.match(images, learner.memory, 1).distances[:, 0]
        torch.testing.assert_close(found, 1 - cosines(learner, images).amax(1), atol=1e-5, rtol=0)
    found = learner.match(images, learner.memory, 1).distances[:, 0]
    torch.testing.assert_close(found, 1 - cosines(learner, images).amax(1), atol=1e-5, rtol=0)


def test_loading_a_state_embeds_the_exemplars_again() -> None:
    one, two, images = learned(2), learned(2, learning_rate=0.02), images_and_labels()[0]
    expected = one.match(images, one.memory).distances
    two.predict(images)
    two.load_state(one.state())
    assert torch.equal(two.match(images, two.memory).distances, expected)


def test_an_unchanged_memory_is_embedded_once() -> None:
    learner, images, seen = learned(2), images_and_labels()[0], []
    learner.net.register_forward_hook(lambda net, inputs, out: seen.append(len(out)))
    learner.predict(images)
    learner.predict(images, [1, 2])
    assert sorted(seen) == [8, len(images), len(images)]


@pytest.mark.parametrize("stream", [POINTS, PICTURES])
def test_a_removed_class_is_never_predicted_until_it_is_added_again(stream: Any) -> None:
    learner = learned(2, stream)
    images, _ = images_and_labels(stream, 2)
    before, picture = learner.predict(images), learner.memory.images([1])
    assert (before == 1).any()
    learner.memory.remove([1])
    after = learner.predict(images)
    assert not (after == 1).any()
    assert torch.equal(after[before != 1], before[before != 1])
    learner.memory.add([1], picture)
    assert torch.equal(learner.predict(images), before)


def test_swapped_exemplars_swap_the_predictions() -> None:
    learner = learned(2, PICTURES)
    images, _ = images_and_labels(PICTURES, 2)
    before = learner.predict(images)
    learner.memory.replace([0, 4], learner.memory.images([4, 0]))
    swapped = {0: 4, 4: 0}
    expected = [swapped.get(label, label) for label in before.tolist()]
    assert learner.predict(images).tolist() == expected


def test_the_labels_of_a_memory_are_predicted() -> None:
    learner, images = learned(1), images_and_labels()[0]
    before, other = learner.predict(images), learner.memory.empty()
    other.add([label + 50 for label in learner.memory.labels], learner.memory.images())
    assert torch.equal(learner.match(images, other, 1).labels[:, 0], before + 50)


def test_matches_are_the_largest_cosines_and_novelty_is_their_ratio() -> None:
    learner, images = learned(2), images_and_labels()[0]
    far = 1 - cosines(learner, images)
    found = learner.match(images, learner.memory, 3)
    torch.testing.assert_close(found.distances, far.sort(1).values[:, :3], atol=1e-5, rtol=0)
    assert torch.equal(found.labels, far.argsort(1)[:, :3])
    torch.testing.assert_close(
        learner.novelty(images), found.distances[:, 0] / found.distances[:, 1]
    )


def test_predictions_are_among_the_given_classes_or_none() -> None:
    learner, images = make(), images_and_labels()[0]
    assert (learner.predict(images) == -1).all()
    learn(learner, [POINTS[0]])
    assert set(learner.predict(images).tolist()) <= set(range(4))
    assert set(learner.predict(images, [1, 3, 99]).tolist()) == {1, 3}
    assert (learner.predict(images, [99]) == -1).all()


NO_TRAINING = {"learning_rate": 0.0, "final_learning_rate": 0.0, "epochs": 6}


@pytest.mark.parametrize(("patience", "epochs"), [(1, 2), (3, 4), (0, 6)])
def test_a_task_ends_when_the_validation_loss_stops_falling(patience: int, epochs: int) -> None:
    # With a learning rate of 0 no epoch but the first is better than those before.
    learner = make(patience=patience, **NO_TRAINING)
    assert count_steps(learner, POINTS) == epochs * (160 // 32)


def test_without_validation_images_a_task_takes_all_epochs() -> None:
    stream = PICTURES.with_changes(split=(0.7, 0.0, 0.3))
    learner = make(stream, net="mlp", patience=1, **NO_TRAINING)
    assert count_steps(learner, stream) == 6 * (len(stream[0].train) // 32)


def test_early_stopping_restores_the_weights_of_the_lowest_loss() -> None:
    net = torch.nn.Linear(1, 1)
    early_stopping = EarlyStopping(net, 2)
    stops = []
    for value, loss in enumerate([5.0, 3.0, 4.0, float("nan")]):
        torch.nn.init.constant_(net.weight, value)
        stops.append(early_stopping.should_stop(loss))
    assert stops == [False, False, False, True]
    early_stopping.restore()
    assert float(net.weight.detach()) == 1.0


def test_a_task_ends_with_the_weights_of_its_best_epoch() -> None:
    # A learning rate that grows to 10 makes the later epochs worse.
    learner = make(learning_rate=0.01, final_learning_rate=10.0, epochs=6, patience=6)
    task = POINTS[0]
    losses = []
    for step, _ in enumerate(learner.learn(task)):
        if (step + 1) % 5 == 0:
            losses.append(float(learner._validate(task, *learner._collect_exemplars(task).at(0))))
    last = float(learner._validate(task, *learner._collect_exemplars(task).at(0)))
    assert losses[-1] > last == min(losses)


def test_every_validation_batch_contains_all_classes() -> None:
    stream = Gaussians(tasks=1, val=8, train=40)
    # Rows 0 .. 31 are sorted by class; every batch has to contain all four classes.
    losses = []
    for size in (32, 8):
        learner = make(stream, batch_size=size)
        collected = learner._collect_exemplars(stream[0])
        losses.append(float(learner._validate(stream[0], *collected.at(0))))
    # A sum over a quarter of the images is smaller by log 4, up to sampling noise.
    assert losses[0] - losses[1] == pytest.approx(1.386, abs=0.2)


@pytest.mark.integration
def test_negatives_are_of_earlier_classes_and_the_first_task_has_none() -> None:
    stream = PICTURES.with_changes(scenario="recurring", tasks=6)
    learner = learned(5, stream, negative_exemplars=4, net="mlp")
    old = sorted(set(learner.memory.labels) - set(stream[5].classes))
    collected = learner._collect_exemplars(stream[5])
    assert torch.equal(collected.pool, learner.memory.images(old))
    assert collected.rows.shape[1] == 4
    assert 0 <= collected.rows.min() <= collected.rows.max() < len(old)
    plain = learned(1)
    contrasted = learned(1, negative_exemplars=4)
    for name, weight in plain.state()["net"].items():
        assert torch.equal(weight, contrasted.state()["net"][name])


def test_negatives_change_the_weights() -> None:
    plain = learned(2)
    contrasted = learned(2, negative_exemplars=4)
    assert not torch.equal(plain.net.projector[0].weight, contrasted.net.projector[0].weight)


def test_a_recurring_class_is_stored_once() -> None:
    stream = PICTURES.with_changes(scenario="recurring", tasks=3)
    learner = learned(3, stream)
    assert learner.memory.labels == sorted({c for task in stream for c in task.classes})


def test_the_stored_exemplar_is_the_positive() -> None:
    learner = learned(1, PICTURES)
    other = 255 - learner.memory.images([1])
    learner.memory.replace([1], other)
    exemplars, classes = learner._collect_exemplars(PICTURES[0]).at(0)
    assert classes.tolist() == [0, 1, 2]
    assert torch.equal(exemplars[1], other[0] / 255)


def test_the_state_is_weights_and_one_exemplar_per_class() -> None:
    learner = learned(2, PICTURES)
    assert set(learner.state()) == {"net", "memory", "optimizer"}
    assert not learned(1, PICTURES, reset_optimizer=True).state()["optimizer"]
    assert learner.state()["memory"]["pictures"].shape == (6, 1, 16, 16)


def test_an_endless_stream_is_learned_and_an_online_one_in_one_pass() -> None:
    endless = PICTURES.with_changes(tasks=None)
    assert learned(2, endless).memory.labels == list(range(6))
    with pytest.raises(ValueError, match="give epochs=1"):
        make(POINTS.with_changes(online=True), epochs=2)


def test_new_classes_are_told_apart_in_one_shot_and_open_set_evaluation() -> None:
    learner = learned(2, PICTURES)
    rows = one_shot(PICTURES, learner, 4)
    assert [row["mode"] for row in rows] == ["standard", "generalised"]
    assert rows[0]["correct"] > rows[0]["total"] / 4
    row = open_set(PICTURES, learner)
    assert len(row["known"]) == len(row["unknown"]) > 0
    assert all(0 <= score <= 1 for score in row["known"] + row["unknown"])


def test_float_exemplars_are_stored_exactly() -> None:
    memory, points = FloatExemplars((2, 1, 1), "cpu"), torch.tensor([[-3.5, 1e6], [0.1, 2.0]])
    memory.add([7, 3], points[:, :, None, None])
    other = memory.copy()
    other.remove([7])
    assert (memory.labels, other.labels, memory.empty().labels) == ([3, 7], [3], [])
    assert torch.equal(memory.images()[:, :, 0, 0], points[[1, 0]])
    assert torch.equal(memory.images([7])[0, :, 0, 0], points[0])
    other.load_state(memory.state())
    assert torch.equal(other.images(), memory.images())
