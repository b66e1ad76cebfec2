"""The main loop: a learner learns the tasks of a stream, and rows say how it does."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from time import perf_counter
from typing import Any

from everlearn.exam import Exam, Plan, Row
from everlearn.exam.costs import check_losses, count_costs, settled
from everlearn.learner import Learner
from everlearn.nets.fast import beside


def run(
    stream: Any,
    learner: Learner,
    plan: Plan | None = None,
    tasks: int | None = None,
    start: int = 0,
    step: int = 0,
) -> Iterator[Row]:
    """Learn task after task; give rows of every kind, the one of kind "task" last for each task.

    Args:
        plan: when to test, and on what; after every task by default.
        tasks: how many tasks of the stream; all by default.
        start: the first task to learn, when a run goes on.
        step: optimiser steps done before.
    """
    plan, end = plan or Plan(), stream.tasks if tasks is None else tasks
    exam, last = Exam(stream, learner, plan, end), -1 if end is None else end - 1
    if start == 0:
        yield from exam.before()
    following: Any = stream[start] if start != end else None
    for index in count(start) if end is None else range(start, end):
        task, began, testing, losses = following, perf_counter(), 0.0, []
        for loss in learner.learn(task):
            losses.append(loss)
            step += 1
            if plan.is_probed(step):
                since = settled(learner.device)
                yield from list(exam.during(step, index))
                testing += perf_counter() - since
        with beside(learner.device):  # a GPU is still busy with the steps before
            following = stream[index + 1].place(learner.device) if index != last else None
        mean = check_losses(losses, index, step)
        learned = perf_counter()
        yield from list(exam.after(step, task, last))
        yield {
            "kind": "task",
            "learned": index,
            "step": step,
            "images": len(losses) * learner.batch_size,
            "seconds": learned - began - testing,
            "evaluation_seconds": testing + perf_counter() - learned,
            "loss": mean,
            **count_costs(learner, full=plan.is_due(index, last)),
        }
