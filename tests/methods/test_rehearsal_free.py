"""A mixture of four: each alone is the method it is named after, and one that is off costs nothing."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from everlearn.core.settings import change_settings
from everlearn.methods import ewc, fine_tuning, l2, lwf, rehearsal_free
from everlearn.nets import build_classifier, build_net

from .conftest import (
    STREAM,
    TRAIN,
    assert_first_task_is_fine_tuning,
    assert_resumes,
    learn,
    weights,
)

OFF = {"prediction_distillation": 0.0, "feature_distillation": 0.0, "l2": 0.0, "ewc": 0.0}
ALL = {"prediction_distillation": 1.0, "feature_distillation": 0.5, "l2": 0.2, "ewc": 3.0}


def make(**changes: Any) -> rehearsal_free.RehearsalFree:
    settings = change_settings(rehearsal_free.Settings(), TRAIN | changes, "rehearsal-free")
    return rehearsal_free.RehearsalFree(STREAM, settings, "cpu")


def other(module: Any, name: str, **changes: Any) -> Any:
    settings = change_settings(module.Settings(), TRAIN | changes, name)
    return getattr(module, name)(STREAM, settings, "cpu")


@pytest.mark.parametrize(
    ("changes", "alone"),
    [
        ({}, (fine_tuning, "FineTuning", {})),
        ({"prediction_distillation": 2.0}, (lwf, "LwF", {"distillation_weight": 2.0})),
        ({"l2": 2.0}, (l2, "L2", {"strength": 2.0})),
        ({"ewc": 100.0}, (ewc, "EWC", {"strength": 100.0})),
    ],
)
def test_each_regularizer_alone_equals_its_method(changes: Any, alone: Any) -> None:
    module, name, settings = alone
    mixed, single = (
        learn(make(**OFF | changes), STREAM),
        learn(other(module, name, **settings), STREAM),
    )
    for one, two in zip(weights(mixed), weights(single), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-6)


def test_feature_distillation_matches_a_plain_loop() -> None:
    net, teacher = (build_classifier("mlp", 8, 6, 1, STREAM.seed) for _ in range(2))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for task in STREAM:
        teacher.load_state_dict(net.state_dict())
        for batch in task.batches(16, 2):
            loss = cross_entropy(net(batch.images), batch.labels)
            if task.index:
                off = net.features(batch.images) - teacher.features(batch.images).detach()
                loss = loss + 0.5 * off.square().sum() / len(off)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    mixed = learn(make(**OFF | {"feature_distillation": 0.5}), STREAM)
    for one, two in zip(weights(mixed), net.parameters(), strict=True):
        torch.testing.assert_close(one, two.detach(), rtol=1e-3, atol=1e-5)


def test_features_and_logits_come_from_one_pass() -> None:
    net = build_net("convnet-pooled", 1, 5, 8, seed=0).eval()
    images = torch.rand(3, 1, 8, 8)
    both = rehearsal_free.FeaturesAndLogits(net)(images)
    assert torch.equal(both, torch.cat([net.features(images), net(images)], 1))


def test_regularizers_with_weight_zero_are_not_built() -> None:
    learner = make(**OFF)
    assert learner.teacher is None
    assert learner.l2 == learner.ewc == []
    assert learn(learner, [STREAM[0], STREAM[1]]).state()["penalty"] == []


def test_first_task_equals_fine_tuning() -> None:
    assert_first_task_is_fine_tuning(make(**ALL), STREAM, TRAIN)


def test_resumes_bit_for_bit() -> None:
    assert_resumes(partial(make, **ALL), STREAM)


@pytest.mark.parametrize("name", [*ALL, "temperature", "fisher_samples"])
def test_settings_out_of_range_are_refused(name: str) -> None:
    with pytest.raises((TypeError, ValueError), match=name):
        make(**{name: -1})
