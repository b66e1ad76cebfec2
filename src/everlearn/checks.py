"""The exam that every method must pass; for methods of your own, too.

    from everlearn.checks import CHECKS
    for check in CHECKS.values():
        check(lambda stream: MyLearner(stream, "cpu"), Gaussians(tasks=3))

A check takes a function from a stream to a new learner, and a stream of three tasks or more that ends. It
raises a `FailedCheckError` that says what was found and what was expected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from everlearn.learner import Learner
from everlearn.results import flatten, unflatten
from everlearn.runs import to_arrays, to_tensors
from everlearn.stream import Task

Make = Callable[[Any], Learner]


class FailedCheckError(AssertionError):
    """A learner does not behave as learners do."""


def gives_a_loss_after_every_step(make: Make, stream: Any) -> None:
    """`learn` is a generator of finite numbers, and says how many images a step takes."""
    learner = make(stream)
    losses = [torch.as_tensor(loss) for loss in learner.learn(stream[0])]
    _expect(len(losses) > 0, "learn gave no loss; it should yield after every step")
    finite = all(loss.ndim == 0 and bool(loss.isfinite()) for loss in losses)
    _expect(finite, "learn gave a loss that is no single finite number")
    size = learner.batch_size
    _expect(
        isinstance(size, int) and size > 0, f"batch_size should be a whole number, found {size!r}"
    )


def answers_with_classes_it_met(make: Make, stream: Any) -> None:
    """Before learning the answer is -1; then a class met, or one of those it may choose from."""
    learner, images = make(stream), _images(stream[0], make(stream).device)
    before = learner.predict(images)
    _expect(
        before.shape == (len(images),) and before.dtype == torch.int64,
        f"predict should give int64 of shape ({len(images)},), found {before.dtype} {before.shape}",
    )
    _expect(bool((before == -1).all()), f"nothing was met yet, found answers {_set(before)}")
    _learn(learner, stream, 2)
    known = {*stream[0].classes, *stream[1].classes}
    found = _set(learner.predict(images))
    _expect(found <= known, f"classes {known} were met, found answers {found}")
    few = list(stream[1].classes)[:2]
    found = _set(learner.predict(images, few))
    _expect(found <= set(few), f"asked among {few}, found answers {found}")


def is_not_changed_by_questions(make: Make, stream: Any) -> None:
    """Asking at any step leaves what is learned as it would be."""
    asked, left = make(stream), make(stream)
    images = _images(stream[0], asked.device)
    for index in range(2):
        for _ in asked.learn(stream[index]):
            asked.predict(images)
    _learn(left, stream, 2)
    _expect_same(asked, left, "a learner that was asked and one that was not")


def gives_the_same_bits_twice(make: Make, stream: Any) -> None:
    """Two learners of one stream end in the same state."""
    _expect_same(
        _learn(make(stream), stream, 2), _learn(make(stream), stream, 2), "two learners alike"
    )


def goes_on_from_its_state(make: Make, stream: Any) -> None:
    """A state that was kept without pickle and loaded goes on to the same bits."""
    whole, first = _learn(make(stream), stream, 3), _learn(make(stream), stream, 2)
    second = _learn(make(stream), stream, 1)
    next(iter(second.learn(stream[1])))  # all that it has learned, and begun, is to be replaced
    second.load_state(to_tensors(unflatten(*flatten(to_arrays(first.state())))))
    _expect_same(first, second, "a state and the one loaded from it")
    for _ in second.learn(stream[2]):
        pass
    _expect_same(whole, second, "a learner that went on and one that was never stopped")
    images = _images(stream[0], whole.device)
    same = torch.equal(whole.predict(images), second.predict(images))
    _expect(same, "a learner that went on answers otherwise than one that was never stopped")


def depends_on_the_seed(make: Make, stream: Any) -> None:
    """Streams of other seeds give other states."""
    other = stream.with_changes(seed=stream.seed + 1)
    one, two = _learn(make(stream), stream, 1), _learn(make(other), other, 1)
    same = all(map(torch.equal, _tensors(one.state()), _tensors(two.state())))
    _expect(not same, "two seeds gave the same state; the seed should matter")


def can_be_left_at_any_step(make: Make, stream: Any) -> None:
    """Whoever leaves `learn` early finds a learner that still answers with classes it met."""
    learner = _learn(make(stream), stream, 1)
    next(iter(learner.learn(stream[1])))
    found = _set(learner.predict(_images(stream[0], learner.device)))
    known = {*stream[0].classes, *stream[1].classes}
    _expect(found <= known, f"classes {known} were met, found answers {found}")


CHECKS: dict[str, Callable[[Make, Any], None]] = {
    check.__name__: check
    for check in (
        gives_a_loss_after_every_step,
        answers_with_classes_it_met,
        is_not_changed_by_questions,
        gives_the_same_bits_twice,
        goes_on_from_its_state,
        depends_on_the_seed,
        can_be_left_at_any_step,
    )
}


def _learn(learner: Learner, stream: Any, tasks: int) -> Learner:
    for index in range(tasks):
        for _ in learner.learn(stream[index]):
            pass
    return learner


def _images(task: Task, device: str) -> Tensor:
    return task.test.batch(slice(0, 64), device).images


def _set(answers: Tensor) -> set[int]:
    return set(answers.tolist())


def _tensors(state: Any) -> Iterator[Tensor]:
    if isinstance(state, (Tensor, int, float)):
        yield torch.as_tensor(state).detach().cpu()
    for part in state.values() if isinstance(state, dict) else ():
        yield from _tensors(part)
    for part in state if isinstance(state, (list, tuple)) else ():
        yield from _tensors(part)


def _expect(holds: bool, words: str) -> None:
    if not holds:
        raise FailedCheckError(words)


def _expect_same(one: Learner, two: Learner, words: str) -> None:
    first, second = list(_tensors(one.state())), list(_tensors(two.state()))
    _expect(
        len(first) == len(second) and all(map(torch.equal, first, second)),
        f"{words} should have the same state, bit by bit, and differ",
    )
