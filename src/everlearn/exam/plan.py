"""When a learner is examined, and on what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from everlearn.border import check_whole
from everlearn.settings import setting

MOST = 2**40


@dataclass(frozen=True)
class Plan:
    """What is measured in a run."""

    every: int = setting(1, "test after so many tasks, and after the last")
    test_tasks: int | None = setting(None, "test so many of the tasks met, evenly spread; all")
    test_images: int | None = setting(None, "test on so many images a task, always the same; all")
    ahead: int = setting(0, "test so many tasks to come, too, and the learner before it learns")
    within: bool = setting(False, "test each task among its own classes only, too")
    whole: int = setting(
        0,
        "test on all classes of the stream, met or not, after so many tasks, and after the last; never",
    )
    theta: bool = setting(True, "measure errors of maps, of a learner that tells them")
    probe: int = setting(0, "probe the tasks met after so many steps; never")
    probe_images: int = setting(100, "images a task of a probe, always the same")
    one_shot: tuple[int, ...] = setting((), "numbers of new classes to tell apart at the end")
    open_set: bool = setting(False, "tell known from unknown classes at the end")
    finals: tuple[int, ...] = setting((), "numbers of tasks after which to do as at the end, too")
    codes: int = setting(
        0, "train probes on codes after so many steps, before the first and after every task; never"
    )
    code_images: int = setting(10_000, "images a task that probes of codes are trained on")
    code_tests: int = setting(2_000, "images a task that probes of codes are tested on, at most")
    code_ahead: bool = setting(False, "probe the codes of all tasks from the start, met or not")
    latents: bool = setting(False, "describe every latent of codes after every task")
    disentanglement: bool = setting(False, "measure how codes hold factors after every task")

    def __post_init__(self) -> None:
        """Check every setting."""
        check_whole(self.every, "every", 1, MOST)
        check_whole(self.ahead, "ahead", 0, MOST)
        check_whole(self.whole, "whole", 0, MOST, " (0: never)")
        check_whole(self.probe, "probe", 0, MOST, " (0: never)")
        check_whole(self.probe_images, "probe_images", 1, MOST)
        check_whole(self.codes, "codes", 0, MOST, " (0: never)")
        check_whole(self.code_images, "code_images", 1, MOST)
        check_whole(self.code_tests, "code_tests", 1, MOST)
        for name in ("test_tasks", "test_images"):
            if getattr(self, name) is not None:
                check_whole(getattr(self, name), name, 1, MOST, " (None: all)")
        for name, low, high in (("one_shot", 2, 10**9), ("finals", 1, MOST)):
            numbers = tuple(check_whole(n, name, low, high) for n in getattr(self, name))
            object.__setattr__(self, name, numbers)

    def is_due(self, learned: int, last: int) -> bool:
        """Whether to test after task `learned`, when the run ends with task `last`."""
        return learned == last or (learned + 1) % self.every == 0

    def is_whole(self, learned: int, last: int) -> bool:
        """Whether to test on all classes of the stream."""
        return self.whole > 0 and (learned == last or (learned + 1) % self.whole == 0)

    def is_final(self, learned: int, last: int) -> bool:
        """Whether to examine as at the end."""
        return learned == last or learned + 1 in self.finals

    def is_probed(self, step: int) -> bool:
        """Whether to probe answers or codes after a step."""
        return any(every > 0 and step % every == 0 for every in (self.probe, self.codes))

    def tested(self, learned: int, tasks: int | None) -> list[int]:
        """The tasks to test after task `learned` (-1: before any): those met, and those ahead."""
        stop = learned + 1 + self.ahead
        ahead = range(learned + 1, stop if tasks is None else min(stop, tasks))
        return [*spread(learned + 1, self.test_tasks), *ahead]

    def coded(self, learned: int, tasks: int | None) -> list[int]:
        """The tasks to probe codes of, while task `learned` is learned: those met, or all of `tasks`."""
        met = max(1, learned + 1)
        return spread(met if tasks is None or not self.code_ahead else tasks, self.test_tasks)


def spread(count: int, most: int | None) -> list[int]:
    """Numbers below `count`: all, or so many of them evenly spread with both ends."""
    if most is None or most >= count:
        return list(range(count))
    return [int(n) for n in np.unique(np.linspace(0, count - 1, most).round())]
