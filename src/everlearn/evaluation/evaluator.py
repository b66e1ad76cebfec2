"""Evaluator: evaluates one learner on one stream, when and on what a plan says."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Literal, cast

from everlearn.core.validate import check_int
from everlearn.evaluation.all_classes import AllClassesTest
from everlearn.evaluation.codes import CodeEvaluator, check_codes
from everlearn.evaluation.diagonal import DiagonalTest
from everlearn.evaluation.one_shot import FACTORS, class_by_class, one_shot
from everlearn.evaluation.open_set import open_set
from everlearn.evaluation.plan import MAX_COUNT, Plan
from everlearn.evaluation.scoring import Score, score, score_within_task, sum_squared_errors
from everlearn.evaluation.test_sets import TestSet, TestSets
from everlearn.learner import HasMemory, Learner, PredictsTheta
from everlearn.rows import Row
from everlearn.stream import Stream, Task, TaskStream

_TASKS_TO_SEARCH = 10  # for validation images: a task of a blurry stream may have none


class Evaluator:
    """Yields the rows of one run: before learning, during a task and after it."""

    def __init__(self, stream: TaskStream, learner: Learner, plan: Plan, tasks: int | None) -> None:
        """Check the plan; nothing is drawn yet.

        Args:
            tasks: the number of tasks in the run; None if it is endless.
        """
        check_plan(stream, plan)
        check_codes(learner, plan)
        if tasks is not None:
            limit = MAX_COUNT if stream.tasks is None else stream.tasks
            check_int(tasks, "tasks", 0, limit, " (as many as the stream has)")
        self.stream = stream
        self.learner = learner
        self.plan = plan
        self.tasks = tasks
        self._tests = TestSets(stream, plan.test_images_per_task, learner.device, plan.split)
        self._probes = TestSets(stream, plan.probe_images, learner.device, plan.split)
        self._all_classes = AllClassesTest(stream, learner.device, plan.split)
        self._diagonal = DiagonalTest(stream, plan, learner.device)
        self._codes = CodeEvaluator(stream, learner, plan, tasks)
        self._never_learned: TestSet | None = None

    def before(self) -> Iterator[Row]:
        """Evaluate the untrained learner, if the plan says so."""
        return self._name_split(self._before())

    def during(self, step: int, learned: int) -> Iterator[Row]:
        """Run the probes that are due after a step of task `learned`."""
        return self._name_split(self._during(step, learned))

    def after(
        self,
        step: int,
        task: Task,
        last: int,
        upcoming: Task | None = None,
        trained: bool = True,
    ) -> Iterator[Row]:
        """Run the evaluations that are due after a task.

        Args:
            last: the last task of the run.
            upcoming: the task after `task`, if it is already made.
            trained: whether the learner took a step; joint training waits for several tasks, and has
                not learned the task until then.
        """
        rows = self._after(step, task, last)
        if self.plan.diagonal_images and trained:
            diagonal = self._diagonal.rows(self.learner, step, task, upcoming)
            rows = chain(rows, diagonal)
        return self._name_split(rows)

    def _name_split(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Mark rows that were made from validation images."""
        for row in rows:
            if self.plan.split == "val":
                row["split"] = "val"
            yield row

    def _before(self) -> Iterator[Row]:
        yield from self._test(0, -1)
        if self.plan.probe_every:
            yield from self._probe(0, -1)
        if self.plan.code_probe_every:
            yield from self._codes.probe(0, -1)

    def _during(self, step: int, learned: int) -> Iterator[Row]:
        if self.plan.probe_every and step % self.plan.probe_every == 0:
            yield from self._probe(step, learned)
        if self.plan.code_probe_every and step % self.plan.code_probe_every == 0:
            yield from self._codes.probe(step, learned)

    def _probe(self, step: int, learned: int) -> Iterator[Row]:
        """Test on a few images of every task seen, while task `learned` is learned."""
        scores = score(self.learner, self._probes.groups(range(max(1, learned + 1))))
        return (_row("probe", step, learned, result) for result in scores)

    def _after(self, step: int, task: Task, last: int) -> Iterator[Row]:
        self._tests.add(task)
        if self.plan.is_test_due(task.index, last):
            yield from self._test(step, task.index)
            yield from self._measure_theta(step, task.index)
        if self.plan.is_all_classes_due(task.index, last):
            yield self._all_classes.row(self.learner, step, task.index)
        if self.plan.is_final(task.index, last) and isinstance(self.learner, HasMemory):
            yield from self._measure_memory(step, task.index, self.learner)
        yield from self._codes.after(step, task.index)

    def _test(self, step: int, learned: int) -> Iterator[Row]:
        tasks = self.plan.tasks_to_test(learned, self.tasks)
        for result in score(self.learner, self._tests.groups(tasks)):
            yield _row("test", step, learned, result)
        if self.plan.within_task:
            for result in score_within_task(self.learner, self._tests, tasks):
                yield _row("within_task", step, learned, result)

    def _measure_theta(self, step: int, learned: int) -> Iterator[Row]:
        """Measure the affine maps of the first task, the last one learned and one never learned."""
        if not (self.plan.theta and isinstance(self.learner, PredictsTheta)):
            return
        test_sets = [self._tests.get(index) for index in sorted({0, learned})]
        for test_set in [*test_sets, *self._unseen_test_sets()]:
            errors = sum_squared_errors(self.learner, test_set)
            if errors:
                yield {
                    "kind": "theta",
                    "step": step,
                    "learned": learned,
                    "tested": test_set.task,
                    "squared_errors": errors,
                    "total": len(test_set.labels),
                }

    def _unseen_test_sets(self) -> list[TestSet]:
        """Return the test set of the task after the last of the run, for a stream of sprites."""
        if not isinstance(self.stream, Stream) or self.tasks is None:
            return []
        if self._never_learned is None:
            index = first_unseen_task(self.stream, self.tasks)
            self._never_learned = self._tests.add(class_by_class(self.stream)[index])
        return [self._never_learned]

    def _measure_memory(self, step: int, learned: int, learner: HasMemory) -> Iterator[Row]:
        """Measure one-shot classification and open-set recognition."""
        if not isinstance(self.stream, Stream):  # the plan has neither then
            return
        for classes in self.plan.one_shot:
            for factors in FACTORS:
                yield from one_shot(self.stream, learner, classes, factors, step, learned)
        if self.plan.open_set:
            yield open_set(self.stream, learner, step=step, learned=learned)


def check_plan(stream: TaskStream, plan: Plan) -> None:
    """Raise where a plan needs classes or test images that a stream does not have."""
    if plan.all_classes_every and stream.tasks is None:
        raise ValueError(
            "all_classes_every tests all classes of a stream, and an endless stream has no last class; "
            "give the stream an end, as in tasks=100, or set all_classes_every=0"
        )
    if plan.code_all_tasks and stream.tasks is None:
        raise ValueError(
            "code_all_tasks probes the codes of all tasks, and an endless stream has no last task; give "
            "it an end, as in tasks=100, or leave code_all_tasks out"
        )
    if (plan.one_shot or plan.open_set) and not isinstance(stream, Stream):
        raise ValueError(
            "one_shot and open_set need new classes, which only a stream of sprites has"
        )
    if plan.split == "val":
        _check_validation(stream, plan)
    elif isinstance(stream, Stream) and not stream.split[2]:
        names = ("all_classes_every", "one_shot", "open_set")
        requested = [name for name in names if getattr(plan, name)]
        if requested:
            raise ValueError(
                f"{', '.join(requested)} need test images, and the split {stream.split} has none; "
                "leave some for testing"
            )


def _check_validation(stream: TaskStream, plan: Plan) -> None:
    """Raise where a plan on validation images needs what they cannot give."""
    if plan.one_shot or plan.open_set:
        raise ValueError(
            "one_shot and open_set use test images, and split='val' is there to leave them alone; "
            "set one_shot=() and open_set=False, or split='test'"
        )
    if not _has_validation(stream):
        raise ValueError(
            "split='val' needs validation images, and this stream has none; give it some, as with "
            "split=(0.96, 0.024, 0.016) for shapes or val_share=0.1 for a data set, or set split='test'"
        )


def _has_validation(stream: TaskStream) -> bool:
    """Whether the stream of sprites keeps validation images, or the first tasks of another have any."""
    if isinstance(stream, Stream):
        return stream.split[1] > 0
    tasks = _TASKS_TO_SEARCH if stream.tasks is None else min(stream.tasks, _TASKS_TO_SEARCH)
    return any(len(stream[index].val) for index in range(tasks))


def first_unseen_task(stream: Stream, tasks: int) -> int:
    """Return the first task, class by class, with classes that a run of `tasks` tasks never shows."""
    if stream.tasks is None:
        return tasks
    # A scenario may draw from more classes than its tasks bring: nic does.
    return max(stream.tasks, -(-len(stream.class_ids) // stream.classes_per_task))


def _row(
    kind: Literal["test", "within_task", "probe"], step: int, learned: int, result: Score
) -> Row:
    row = {
        "kind": kind,
        "step": step,
        "learned": learned,
        "tested": result.task,
        "correct": result.correct,
        "total": result.total,
    }
    return cast("Row", row)
