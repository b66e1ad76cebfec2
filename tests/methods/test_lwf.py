"""Learning without forgetting: only old classes are distilled, from the net before the task."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div, log_softmax

from everlearn.core.settings import change_settings
from everlearn.methods import build, lwf
from everlearn.nets import build_classifier

from .conftest import (
    STREAM,
    TOY,
    TRAIN,
    assert_first_task_is_fine_tuning,
    assert_resumes,
    learn,
    same,
    toy_accuracy,
    weights,
)


def make(stream: Any = STREAM, **changes: Any) -> lwf.LwF:
    return lwf.LwF(stream, change_settings(lwf.Settings(), TRAIN | changes, "lwf"), "cpu")


def plain_loop(weight: float, temperature: float) -> list[Tensor]:
    net, teacher = (build_classifier("mlp", 8, 6, 1, STREAM.seed) for _ in range(2))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for task in STREAM:
        past = 2 * task.index
        teacher.load_state_dict(net.state_dict())
        for batch in task.batches(16, 2):
            logits = net(batch.images)
            loss = cross_entropy(logits, batch.labels)
            if past:
                old = log_softmax(teacher(batch.images).detach()[:, :past] / temperature, 1)
                new = log_softmax(logits[:, :past] / temperature, 1)
                loss = loss + weight * kl_div(new, old, reduction="batchmean", log_target=True)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return [value.detach() for value in net.parameters()]


def test_matches_a_plain_loop() -> None:
    learner = learn(make(distillation_weight=3.0, temperature=1.5), STREAM)
    for one, two in zip(weights(learner), plain_loop(3.0, 1.5), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-5)


def test_distillation_is_zero_while_the_net_equals_its_teacher() -> None:
    """A net without normalisation answers as its teacher in its first step of a task."""
    sgd = {"optimizer": "sgd", "momentum": 0.0}
    trainer, plain = (
        make(**sgd, distillation_weight=1000.0),
        build("fine-tuning", STREAM, "cpu", **TRAIN | sgd),
    )
    learn(trainer, [STREAM[0]])
    learn(plain, [STREAM[0]])
    next(iter(trainer.learn(STREAM[1])))
    next(iter(plain.learn(STREAM[1])))
    for one, two in zip(weights(trainer), weights(plain), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-5)


def test_only_old_classes_are_distilled() -> None:
    learner = make()
    for task in STREAM:
        assert learner.old_classes.tolist() == [unit < 2 * task.index for unit in range(6)]
        learn(learner, [task])


def test_first_task_equals_fine_tuning() -> None:
    assert_first_task_is_fine_tuning(make(distillation_weight=100.0), STREAM, TRAIN)


def test_teacher_is_fixed_during_a_task() -> None:
    learner = learn(make(), [STREAM[0]])
    before = [value.clone() for value in learner.teacher.state_dict().values()]
    for _ in learner.learn(STREAM[1]):
        assert same(learner.teacher.state_dict().values(), before)
    assert same(learner.teacher.state_dict().values(), weights(learner))


def test_resumes_bit_for_bit() -> None:
    assert_resumes(make, STREAM)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="distillation_weight must lie in"):
        make(distillation_weight=-1.0)
    with pytest.raises(ValueError, match="temperature must lie in"):
        make(temperature=0.0)


@pytest.mark.integration
def test_forgets_the_toy_stream() -> None:
    assert toy_accuracy(partial(make, **TOY), range(3)) <= 0.30
