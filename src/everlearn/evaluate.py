"""The main loop: a learner learns the tasks of a stream, and rows report how well."""

from __future__ import annotations

from collections.abc import Iterator

from everlearn.evaluation.costs import check_losses
from everlearn.evaluation.evaluator import Evaluator
from everlearn.evaluation.plan import Plan
from everlearn.evaluation.prefetch import TaskLoader
from everlearn.evaluation.task_row import task_row
from everlearn.evaluation.timing import TaskTimer
from everlearn.learner import Learner
from everlearn.rows import Row
from everlearn.stream import TaskStream


def run(
    stream: TaskStream,
    learner: Learner,
    plan: Plan | None = None,
    tasks: int | None = None,
    start: int = 0,
    step: int = 0,
) -> Iterator[Row]:
    """Learn task after task; yield evaluation rows. The row of kind "task" comes last for each task.

    Args:
        plan: when to evaluate, and on what; after every task by default.
        tasks: how many tasks of the stream to learn; all by default.
        start: the first task to learn, when a run is resumed.
        step: optimizer steps done before.
    """
    plan = plan or Plan()
    end = stream.tasks if tasks is None else tasks
    last = -1 if end is None else end - 1
    evaluator = Evaluator(stream, learner, plan, end)
    if start == 0:
        yield from evaluator.before()
    loader = TaskLoader(stream, start, end, learner.device)
    for task in loader:
        timer = TaskTimer(learner.device)
        losses = []
        for loss in learner.learn(task):
            losses.append(loss)
            step += 1
            if plan.is_probe_due(step):
                with timer.evaluating():
                    yield from list(evaluator.during(step, task.index))
        loader.prefetch()  # while a GPU still works through the steps
        mean_loss = check_losses(losses, task.index, step)
        with timer.evaluating():
            yield from list(evaluator.after(step, task, last, loader.next, bool(losses)))
        tested = plan.is_test_due(task.index, last)
        yield task_row(learner, task.index, step, len(losses), mean_loss, timer, tested)
