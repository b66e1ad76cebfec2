"""Exams of a learner: tests of the tasks met or of all classes, probes, one shot, open set, codes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from everlearn.border import check_whole
from everlearn.exam.codes import Codes, check_codes
from everlearn.exam.marks import Mark, mark, mark_within, square_errors
from everlearn.exam.one_shot import FACTORS, Row, class_by_class, one_shot
from everlearn.exam.open_set import open_set
from everlearn.exam.plan import MOST, Plan
from everlearn.exam.sheets import Sheet, Sheets
from everlearn.exam.whole import Whole
from everlearn.learner import Learner, Maps, Remembers
from everlearn.stream import Stream, Task

__all__ = ["Exam", "Plan", "Row", "check_exams", "mark", "one_shot", "open_set"]


class Exam:
    """Examines one learner on one stream, as a plan says."""

    def __init__(self, stream: Any, learner: Learner, plan: Plan, tasks: int | None) -> None:
        """Fix which images are asked.

        Args:
            tasks: how many tasks the run has; None for no end.
        """
        check_exams(stream, plan)
        check_codes(learner, plan)
        if tasks is not None:
            most = MOST if stream.tasks is None else stream.tasks
            check_whole(tasks, "tasks", 0, most, " (as many as the stream has)")
        self.stream, self.learner, self.plan, self.tasks = stream, learner, plan, tasks
        self._tests = Sheets(stream, plan.test_images, learner.device)
        self._probes = Sheets(stream, plan.probe_images, learner.device)
        self._whole = Whole(stream, learner.device)
        self._codes = Codes(stream, learner, plan, tasks)
        self._unseen: Sheet | None = None

    def before(self) -> Iterator[Row]:
        """Test the learner before it learns, where the plan asks for it."""
        yield from self._test(0, -1, self.plan.tested(-1, self.tasks))
        if self.plan.probe:
            yield from self.probe(0, -1)
        if self.plan.codes:
            yield from self._codes.probe(0, -1)

    def during(self, step: int, learned: int) -> Iterator[Row]:
        """Probe answers and codes after a step of task `learned`, each when it is due."""
        if self.plan.probe and step % self.plan.probe == 0:
            yield from self.probe(step, learned)
        if self.plan.codes and step % self.plan.codes == 0:
            yield from self._codes.probe(step, learned)

    def probe(self, step: int, learned: int) -> Iterator[Row]:
        """Test on a few images of every task met, while task `learned` is learned."""
        marks = mark(self.learner, self._probes.groups(range(max(1, learned + 1))))
        return (_row("probe", step, learned, one) for one in marks)

    def after(self, step: int, task: Task, last: int) -> Iterator[Row]:
        """Test after a task, when the plan says so; more at the end."""
        self._tests.take(task)
        if self.plan.is_due(task.index, last):
            yield from self._test(step, task.index, self.plan.tested(task.index, self.tasks))
            yield from self._measure_maps(step, task.index)
        if self.plan.is_whole(task.index, last):
            yield self._whole.row(self.learner, step, task.index)
        if self.plan.is_final(task.index, last) and isinstance(self.learner, Remembers):
            yield from self._finals(step, task.index, self.learner)
        yield from self._codes.after(step, task.index)

    def _test(self, step: int, learned: int, tested: list[int]) -> Iterator[Row]:
        for one in mark(self.learner, self._tests.groups(tested)):
            yield _row("test", step, learned, one)
        if self.plan.within:
            for one in mark_within(self.learner, self._tests, tested):
                yield _row("within", step, learned, one)

    def _measure_maps(self, step: int, learned: int) -> Iterator[Row]:
        """Errors of maps on the first task, the last one learned, and one that is never learned."""
        if not (self.plan.theta and isinstance(self.learner, Maps)):
            return
        sheets = [self._tests.sheet(index) for index in sorted({0, learned})]
        for sheet in [*sheets, *self._never_learned()]:
            squares = square_errors(self.learner, sheet)
            if squares:
                yield {
                    "kind": "theta",
                    "step": step,
                    "learned": learned,
                    "tested": sheet.task,
                    "squares": squares,
                    "total": len(sheet.labels),
                }

    def _never_learned(self) -> list[Sheet]:
        """The task after the last of a run, of a stream of sprites."""
        if not isinstance(self.stream, Stream) or self.tasks is None:
            return []
        if self._unseen is None:
            number = first_unmet(self.stream, self.tasks)
            self._unseen = self._tests.take(class_by_class(self.stream)[number])
        return [self._unseen]

    def _finals(self, step: int, learned: int, learner: Remembers) -> Iterator[Row]:
        when = {"step": step, "learned": learned}
        for classes in self.plan.one_shot:
            for factors in FACTORS:
                for row in one_shot(self.stream, learner, classes, factors):
                    yield row | when
        if self.plan.open_set:
            yield open_set(self.stream, learner) | when


def check_exams(stream: Any, plan: Plan) -> None:
    """Raise where a plan asks for classes that a stream cannot show."""
    if plan.whole and stream.tasks is None:
        raise ValueError(
            "whole tests all classes of a stream, and an endless one has no last; give the stream an "
            "end, as in tasks=100, or whole=0"
        )
    if plan.code_ahead and stream.tasks is None:
        raise ValueError(
            "code_ahead probes the codes of all tasks, and an endless stream has no last; give it an "
            "end, as in tasks=100, or leave code_ahead out"
        )
    if (plan.one_shot or plan.open_set) and not isinstance(stream, Stream):
        raise ValueError(
            "one_shot and open_set need new classes: only a stream of sprites has them"
        )
    if isinstance(stream, Stream) and not stream.split[2]:
        asked = [name for name in ("whole", "one_shot", "open_set") if getattr(plan, name)]
        if asked:
            raise ValueError(
                f"exams ({', '.join(asked)}) need test images, and the split {stream.split} has none; "
                "leave some for testing"
            )


def first_unmet(stream: Stream, tasks: int) -> int:
    """The first task, class by class, whose classes a run of so many tasks never meets."""
    if stream.tasks is None:
        return tasks
    # A scenario may draw from more classes than its tasks bring: nic does.
    return max(stream.tasks, -(-len(stream.class_ids) // stream.classes_per_task))


def _row(kind: str, step: int, learned: int, one: Mark) -> Row:
    return {
        "kind": kind,
        "step": step,
        "learned": learned,
        "tested": one.task,
        "right": one.right,
        "total": one.total,
    }
