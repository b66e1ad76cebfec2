"""Conformance: checks that every learner must pass, yours included.

    from everlearn.evaluation.conformance import CONFORMANCE
    for check in CONFORMANCE.values():
        check(lambda stream: MyLearner(stream, "cpu"), Gaussians(tasks=3))

A check takes a function that makes a new learner for a stream, and a finite stream of at least three tasks.
It raises a `ConformanceError` that says what was found and what was expected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from everlearn.core.state import flatten, to_arrays, to_tensors, unflatten
from everlearn.learner import Learner
from everlearn.stream import Task, TaskStream

LearnerFactory = Callable[[TaskStream], Learner]


class ConformanceError(AssertionError):
    """A learner does not behave as the Learner protocol demands."""


def yields_finite_losses(make: LearnerFactory, stream: TaskStream) -> None:
    """`learn` yields one finite loss per step, and `batch_size` is a positive whole number."""
    learner = make(stream)
    losses = [torch.as_tensor(loss) for loss in learner.learn(stream[0])]
    _expect(len(losses) > 0, "learn yielded no loss; it should yield one after every step")
    finite = all(loss.ndim == 0 and bool(loss.isfinite()) for loss in losses)
    _expect(finite, "learn yielded a loss that is not a single finite number")
    size = learner.batch_size
    _expect(
        isinstance(size, int) and size > 0,
        f"batch_size should be a positive whole number, found {size!r}",
    )


def predicts_seen_classes(make: LearnerFactory, stream: TaskStream) -> None:
    """Predictions are -1 before learning, then seen classes, or those given as `among`, seen or not."""
    learner = make(stream)
    images = _test_images(stream[0], learner.device)
    before = learner.predict(images)
    _expect(
        before.shape == (len(images),) and before.dtype == torch.int64,
        f"predict should return int64 of shape ({len(images)},), found {before.dtype} {before.shape}",
    )
    _expect(
        bool((before == -1).all()),
        f"predictions should be -1 before learning, found {_classes(before)}",
    )
    _learn(learner, stream, 2)
    seen = {*stream[0].classes, *stream[1].classes}
    found = _classes(learner.predict(images))
    _expect(found <= seen, f"predictions should be among the seen classes {seen}, found {found}")
    among = list(stream[1].classes)[:2]
    found = _classes(learner.predict(images, among))
    _expect(found <= set(among), f"predictions should be among {among}, found {found}")
    unseen = list(stream[2].classes)
    found = _classes(learner.predict(images, unseen))
    _expect(
        found <= {*unseen, -1},
        f"predictions among the unseen classes {unseen} should be these or -1, found {found}",
    )


def predicting_changes_nothing(make: LearnerFactory, stream: TaskStream) -> None:
    """Predictions after every step leave the learned state as it is without them."""
    evaluated = make(stream)
    images = _test_images(stream[0], evaluated.device)
    for index in range(2):
        for _ in evaluated.learn(stream[index]):
            evaluated.predict(images)
    undisturbed = _learn(make(stream), stream, 2)
    _expect_equal(evaluated, undisturbed, "a learner that predicted and one that did not")


def repeats_bit_for_bit(make: LearnerFactory, stream: TaskStream) -> None:
    """Two learners of one stream end in the same state."""
    first = _learn(make(stream), stream, 2)
    second = _learn(make(stream), stream, 2)
    _expect_equal(first, second, "two learners of one stream")


def resumes_from_its_state(make: LearnerFactory, stream: TaskStream) -> None:
    """A learner that loads a stored state continues bit for bit."""
    uninterrupted = _learn(make(stream), stream, 3)
    stopped = _learn(make(stream), stream, 2)
    resumed = _learn(make(stream), stream, 1)
    next(iter(resumed.learn(stream[1])))  # the state must replace all of this
    resumed.load_state(to_tensors(unflatten(*flatten(to_arrays(stopped.state())))))
    _expect_equal(stopped, resumed, "a state and the one loaded from it")
    for _ in resumed.learn(stream[2]):
        pass
    _expect_equal(uninterrupted, resumed, "a resumed learner and one that was never stopped")
    images = _test_images(stream[0], uninterrupted.device)
    same = torch.equal(uninterrupted.predict(images), resumed.predict(images))
    _expect(same, "a resumed learner should predict as one that was never stopped, and differs")


def depends_on_the_seed(make: LearnerFactory, stream: TaskStream) -> None:
    """Streams with different seeds give different states."""
    other_stream = stream.with_changes(seed=stream.seed + 1)
    learner = _learn(make(stream), stream, 1)
    other = _learn(make(other_stream), other_stream, 1)
    same = all(map(torch.equal, _tensors(learner.state()), _tensors(other.state())))
    _expect(not same, "two seeds should give different states, found the same one")


def stops_at_any_step(make: LearnerFactory, stream: TaskStream) -> None:
    """After `learn` is abandoned early, predictions are still seen classes."""
    learner = _learn(make(stream), stream, 1)
    next(iter(learner.learn(stream[1])))
    found = _classes(learner.predict(_test_images(stream[0], learner.device)))
    seen = {*stream[0].classes, *stream[1].classes}
    _expect(found <= seen, f"predictions should be among the seen classes {seen}, found {found}")


CONFORMANCE: dict[str, Callable[[LearnerFactory, TaskStream], None]] = {
    check.__name__: check
    for check in (
        yields_finite_losses,
        predicts_seen_classes,
        predicting_changes_nothing,
        repeats_bit_for_bit,
        resumes_from_its_state,
        depends_on_the_seed,
        stops_at_any_step,
    )
}


def _learn(learner: Learner, stream: TaskStream, tasks: int) -> Learner:
    for index in range(tasks):
        for _ in learner.learn(stream[index]):
            pass
    return learner


def _test_images(task: Task, device: str) -> Tensor:
    return task.test.batch(slice(0, 64), device).images


def _classes(predictions: Tensor) -> set[int]:
    return set(predictions.tolist())


def _tensors(state: object) -> Iterator[Tensor]:
    if isinstance(state, (Tensor, int, float)):
        yield torch.as_tensor(state).detach().cpu()
    for part in state.values() if isinstance(state, dict) else ():
        yield from _tensors(part)
    for part in state if isinstance(state, (list, tuple)) else ():
        yield from _tensors(part)


def _expect(holds: bool, message: str) -> None:
    if not holds:
        raise ConformanceError(message)


def _expect_equal(first: Learner, second: Learner, names: str) -> None:
    first_tensors = list(_tensors(first.state()))
    second_tensors = list(_tensors(second.state()))
    _expect(
        len(first_tensors) == len(second_tensors)
        and all(map(torch.equal, first_tensors, second_tensors)),
        f"{names} should have the same state, bit for bit, and differ",
    )
