"""Plan: when a learner is evaluated, and on what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from everlearn.core.settings import change_settings, setting
from everlearn.core.validate import check_int

MAX_COUNT = 2**40
SPLITS = ("test", "val")
# Evaluations that were added later and are on by default: a run that does not name them had none.
_OFF_UNLESS_RECORDED = {"diagonal_images": 0}


@dataclass(frozen=True)
class Plan:
    """What is measured in a run, and when."""

    split: str = setting("test", "images to evaluate on: test, or val to choose settings")
    every: int = setting(1, "test after every so many tasks, and after the last")
    max_test_tasks: int | None = setting(
        None, "test at most so many of the tasks learned, evenly spread; none: all"
    )
    test_images_per_task: int | None = setting(
        None, "test on so many images per task, always the same; none: all"
    )
    future_tasks: int = setting(
        0, "also test so many tasks that come next, and the untrained learner"
    )
    within_task: bool = setting(
        False, "also test each task with the answers restricted to its own classes"
    )
    all_classes_every: int = setting(
        0,
        "test on all classes, seen or not, after every so many tasks and after the last; 0: never",
    )
    diagonal_images: int = setting(
        200,
        "test each task right after it is learned, and the next one before, on so many images; 0: never",
    )
    theta: bool = setting(
        True, "measure the errors of predicted affine maps, if the learner has any"
    )
    probe_every: int = setting(
        0, "test the tasks seen so far on a few images after every so many steps; 0: never"
    )
    probe_images: int = setting(100, "images per task of such a probe, always the same")
    one_shot: tuple[int, ...] = setting(
        (), "numbers of new classes for one-shot classification at the end"
    )
    open_set: bool = setting(False, "measure open-set recognition at the end")
    final_after: tuple[int, ...] = setting(
        (), "numbers of tasks after which to measure one-shot and open-set, besides the end"
    )
    code_probe_every: int = setting(
        0,
        "train probes on codes before learning, after every so many steps and every task; 0: never",
    )
    code_train_images: int = setting(10_000, "images per task to train code probes on")
    code_test_images: int = setting(2_000, "images per task to test code probes on, at most")
    code_all_tasks: bool = setting(
        False, "probe the codes of all tasks from the start, seen or not"
    )
    describe_latents: bool = setting(False, "describe every latent of the codes after every task")
    disentanglement: bool = setting(
        False, "measure the disentanglement of the codes after every task"
    )

    def __post_init__(self) -> None:
        """Check every setting."""
        if self.split not in SPLITS:
            raise ValueError(f"unknown split {self.split!r}; known: {', '.join(SPLITS)}")
        for name in ("every", "probe_images", "code_train_images", "code_test_images"):
            check_int(getattr(self, name), name, 1, MAX_COUNT)
        check_int(self.future_tasks, "future_tasks", 0, MAX_COUNT)
        for name in ("all_classes_every", "diagonal_images", "probe_every", "code_probe_every"):
            check_int(getattr(self, name), name, 0, MAX_COUNT, " (0: never)")
        for name in ("max_test_tasks", "test_images_per_task"):
            if getattr(self, name) is not None:
                check_int(getattr(self, name), name, 1, MAX_COUNT, " (None: all)")
        for name, low, high in (("one_shot", 2, 10**9), ("final_after", 1, MAX_COUNT)):
            numbers = tuple(check_int(n, name, low, high) for n in getattr(self, name))
            object.__setattr__(self, name, numbers)

    def is_test_due(self, learned: int, last: int) -> bool:
        """Whether to test after task `learned`, when the run ends with task `last`."""
        return learned == last or (learned + 1) % self.every == 0

    def is_all_classes_due(self, learned: int, last: int) -> bool:
        """Whether to test on all classes of the stream after task `learned`."""
        every = self.all_classes_every
        return every > 0 and (learned == last or (learned + 1) % every == 0)

    def is_final(self, learned: int, last: int) -> bool:
        """Whether to measure one-shot and open-set after task `learned`."""
        return learned == last or learned + 1 in self.final_after

    def is_probe_due(self, step: int) -> bool:
        """Whether to probe predictions or codes after a step."""
        return any(n > 0 and step % n == 0 for n in (self.probe_every, self.code_probe_every))

    def tasks_to_test(self, learned: int, tasks: int | None) -> list[int]:
        """List the tasks to test after task `learned` (-1: before any): learned ones, then future ones."""
        stop = learned + 1 + self.future_tasks
        future = range(learned + 1, stop if tasks is None else min(stop, tasks))
        return [*spread(learned + 1, self.max_test_tasks), *future]

    def tasks_to_encode(self, learned: int, tasks: int | None) -> list[int]:
        """List the tasks to probe the codes of while task `learned` is learned."""
        seen = max(1, learned + 1)
        count = tasks if self.code_all_tasks and tasks is not None else seen
        return spread(count, self.max_test_tasks)


def read_plan(values: Mapping[str, Any]) -> Plan:
    """Return the plan that a run was made with; refuse unknown names and old ones."""
    return change_settings(Plan(), {**_OFF_UNLESS_RECORDED, **values}, "the plan")


def spread(count: int, limit: int | None) -> list[int]:
    """List the numbers below `count`: all, or `limit` of them evenly spread with both ends."""
    if limit is None or limit >= count:
        return list(range(count))
    return [int(n) for n in np.unique(np.linspace(0, count - 1, limit).round())]
