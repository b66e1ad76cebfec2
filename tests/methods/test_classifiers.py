"""Fine-tuning forgets, joint training does not; both answer among the classes they met."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from everlearn import Canvas, ShapeStyle, Stream
from everlearn.learner import Learner
from everlearn.methods import METHODS, build, find_method
from everlearn.methods.joint import mixed_batches
from everlearn.stream import Gaussians

from .conftest import assert_resumes, learn, same_net

SMALL = {"net": "convnet-pooled", "batch_size": 32, "epochs": 1}
LONG = SMALL | {"epochs": 10, "learning_rate": 3e-3, "final_learning_rate": 1e-4}
STREAM = Stream(
    seed=1,
    tasks=3,
    classes_per_task=2,
    values_per_factor=4,
    canvas=Canvas(size=16),
    split=(0.9, 0.05, 0.05),
    style=ShapeStyle(min_distance=0.3, block=8),
)


def accuracy(learner: Learner, index: int) -> float:
    batch = STREAM[index].test.batch(slice(None))
    return float((learner.predict(batch.images) == batch.labels).float().mean())


@pytest.mark.slow
def test_fine_tuning_learns_the_last_task_and_forgets_the_first() -> None:
    learner = build("fine-tuning", STREAM, "cpu", **LONG)
    learn(learner, [STREAM[0]])
    assert accuracy(learner, 0) > 0.8
    learn(learner, [STREAM[0], STREAM[1]])
    assert accuracy(learner, 1) > 0.8
    assert accuracy(learner, 0) < 0.2


@pytest.mark.slow
def test_joint_training_keeps_the_first_task() -> None:
    learner = learn(build("joint", STREAM, "cpu", **LONG, retrain_every=2), [STREAM[0], STREAM[1]])
    assert min(accuracy(learner, 0), accuracy(learner, 1)) > 0.8


@pytest.mark.integration
def test_joint_training_from_scratch_forgets_its_last_weights() -> None:
    long = learn(build("joint", STREAM, "cpu", **SMALL), [STREAM[0], STREAM[1]])
    late = learn(build("joint", STREAM, "cpu", **SMALL, retrain_every=2), [STREAM[0], STREAM[1]])
    assert same_net(long, late)


def test_joint_training_resets_its_optimizer() -> None:
    points, schedule = (
        Gaussians(tasks=2),
        {"net": "mlp", "optimizer": "sgd", "reset_optimizer": False},
    )
    long = learn(build("joint", points, "cpu", **schedule), points)
    late = learn(build("joint", points, "cpu", **schedule, retrain_every=2), points)
    assert same_net(long, late)


@pytest.mark.integration
def test_joint_retrains_every_n_tasks_and_after_the_last() -> None:
    learner = build("joint", STREAM, "cpu", **SMALL, retrain_every=2)
    steps = [sum(1 for _ in learner.learn(task)) for task in STREAM]
    assert steps[0] == 0
    assert 0 < steps[1] < steps[2]


def test_mixed_batches_hold_every_row_once_per_epoch() -> None:
    tasks = [STREAM[0], STREAM[1]]
    size = 10
    batches = list(mixed_batches(tasks, size, 2, "cpu"))
    rows = sum(len(task.train) for task in tasks)
    assert len(batches) == 2 * (rows // size)
    assert all(len(labels) == size for _, labels in batches)
    everything = torch.cat([task.train.batch(slice(None)).images for task in tasks]).flatten(1)
    drawn = torch.cat([images for images, _ in batches[: rows // size]]).flatten(1)
    known = {row.numpy().tobytes() for row in everything}
    seen = [row.numpy().tobytes() for row in drawn]
    assert set(seen) <= known
    assert len(set(seen)) == len(seen) == rows - rows % size
    mixed = np.array([len(set((labels // 2).tolist())) for _, labels in batches])
    assert mixed.mean() > 1.9


def test_mixed_batches_carry_the_labels_of_their_images() -> None:
    tasks = [STREAM[0], STREAM[1]]
    truth = {
        image.numpy().tobytes(): int(label)
        for task in tasks
        for image, label in zip(*task.train.batch(slice(None))[:2], strict=True)
    }
    for images, labels in mixed_batches(tasks, 16, 1, "cpu"):
        assert [truth[image.numpy().tobytes()] for image in images] == labels.tolist()


@pytest.mark.integration
@pytest.mark.parametrize("name", ["fine-tuning", "joint"])
def test_resumes_bit_for_bit(name: str) -> None:
    assert_resumes(partial(build, name, STREAM, "cpu", **SMALL), [STREAM[0], STREAM[1]])


@pytest.mark.integration
@pytest.mark.parametrize("name", ["fine-tuning", "joint"])
def test_predictions_are_seen_classes(name: str) -> None:
    stream = STREAM.with_changes(first_class=100)
    learner = build(name, stream, "cpu", **SMALL)
    images = stream[0].test.batch(slice(None)).images
    assert (learner.predict(images) == -1).all()
    learn(learner, [stream[0], stream[1]])
    assert set(learner.predict(images).tolist()) <= {100, 101, 102, 103}
    assert set(learner.predict(images, [101, 103]).tolist()) <= {101, 103}


@pytest.mark.parametrize("reset_optimizer", [False, True])
def test_state_of_a_reset_optimizer_is_not_stored(reset_optimizer: bool) -> None:
    learner = build("fine-tuning", STREAM, "cpu", **SMALL, reset_optimizer=reset_optimizer)
    assert bool(learner.state()["optimizer"]) is not reset_optimizer


def test_joint_refuses_an_online_stream() -> None:
    with pytest.raises(ValueError, match="online"):
        build("joint", STREAM.with_changes(online=True), "cpu")


def test_classifiers_refuse_an_endless_stream() -> None:
    with pytest.raises(ValueError, match="the stream is endless; give it an end"):
        build("fine-tuning", STREAM.with_changes(tasks=None), "cpu")


@pytest.mark.parametrize("name", METHODS)
def test_integer_images_are_refused(name: str) -> None:
    stream = STREAM.with_changes(canvas=replace(STREAM.canvas, dtype="uint8"))
    with pytest.raises(ValueError, match="dtype float32, found uint8"):
        build(name, stream, "cpu")


def test_an_unknown_method_lists_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match="unknown method 'derp'; known: dcl, dcl-plus, fine-tuning, joint"
    ):
        find_method("derp")


@pytest.mark.parametrize("name", METHODS)
def test_an_unknown_setting_lists_the_known_ones(name: str) -> None:
    with pytest.raises(ValueError, match="batch_size"):
        build(name, STREAM, "cpu", learning_rat=1)
