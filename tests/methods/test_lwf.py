"""Learning without forgetting: only old classes are distilled, from the net before the task."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div, log_softmax

from everlearn.methods import build, lwf
from everlearn.nets import build_net
from everlearn.settings import change_settings

from .conftest import (
    STREAM,
    STUDY,
    TOY,
    assert_goes_on,
    assert_plain_first,
    learn,
    same,
    toy_accuracy,
    weights,
)


def make(stream: Any = STREAM, **changes: Any) -> lwf.LwF:
    return lwf.LwF(stream, change_settings(lwf.Settings(), STUDY | changes, "lwf"), "cpu")


def plain_loop(weight: float, temperature: float) -> list[Tensor]:
    net, teacher = (build_net("mlp", 8, 6, 1, STREAM.seed) for _ in range(2))
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


def test_it_is_the_plain_loop() -> None:
    learner = learn(make(weight=3.0, temperature=1.5), STREAM)
    for one, two in zip(weights(learner), plain_loop(3.0, 1.5), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-5)


def test_b6_a_student_that_is_its_teacher_takes_the_step_of_fine_tuning() -> None:
    """A net without normalisation answers as its teacher in its first step of a task."""
    sgd = {"optimizer": "sgd", "momentum": 0.0}
    student, plain = make(**sgd, weight=1000.0), build("fine-tuning", STREAM, "cpu", **STUDY | sgd)
    learn(student, [STREAM[0]])
    learn(plain, [STREAM[0]])
    next(iter(student.learn(STREAM[1])))
    next(iter(plain.learn(STREAM[1])))
    for one, two in zip(weights(student), weights(plain), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-5)


def test_b6_only_classes_of_earlier_tasks_are_distilled() -> None:
    learner = make()
    for task in STREAM:
        assert learner.past.tolist() == [unit < 2 * task.index for unit in range(6)]
        learn(learner, [task])


def test_b14_the_first_task_is_fine_tuning_to_the_bit() -> None:
    assert_plain_first(make(weight=100.0), STREAM, STUDY)


def test_the_teacher_stays_while_a_task_is_learned() -> None:
    learner = learn(make(), [STREAM[0]])
    before = [value.clone() for value in learner.teacher.state_dict().values()]
    for _ in learner.learn(STREAM[1]):
        assert same(learner.teacher.state_dict().values(), before)
    assert same(learner.teacher.state_dict().values(), weights(learner))


def test_a_loaded_state_goes_on_to_the_same_bits() -> None:
    assert_goes_on(make, STREAM)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="weight must lie in"):
        make(weight=-1.0)
    with pytest.raises(ValueError, match="temperature must lie in"):
        make(temperature=0.0)


@pytest.mark.slow
def test_b12_it_does_not_keep_the_toy_stream() -> None:
    assert toy_accuracy(partial(make, **TOY), range(3)) <= 0.30
