"""Experience replay with buffers of several sizes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.learners import DCL_PLUS, ER, FINE_TUNING
from everlearn.experiments.read import curves, last_accuracy
from everlearn.experiments.trial import PAPER, SMALL, Settings
from everlearn.experiments.verdicts import listed, statement
from everlearn.metrics import curve
from everlearn.report import Group
from everlearn.report.chapter import Chapter

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "Replay buffers", "Figure 4"
CLAIM = "A larger buffer declines later; even 20,000 images decline before 500 tasks."
SETTINGS = {scale: Settings((DCL_PLUS, *ER[scale], FINE_TUNING)) for scale in (SMALL, PAPER)}
_NEVER = 10**9
COST = {SMALL: "2 minutes", PAPER: "22 minutes"}


def run(lab: Lab) -> None:
    """Let all learn."""
    lab.learn(lab.settings(SETTINGS).trials)


def figure(found: Found) -> Chapter:
    """A curve a size."""
    trials = found.settings(SETTINGS).trials
    groups = found.groups(trials)
    sizes = [group for group in groups if group.method == "er"]
    falls = {group.label: _fall(group) for group in sizes}
    late = all(low <= high for low, high in pairwise(falls.values()))
    words = {label: f"{tasks} tasks" for label, tasks in falls.items() if tasks < _NEVER}
    verdicts = [
        statement(
            "A larger buffer declines later", "; ".join(f"{k}: {v}" for k, v in words.items()),
            late if len(words) > 1 else None, "when a tenth of the best accuracy is lost",
        ),
        statement(
            "The largest declines before the end", listed({g.label: last_accuracy(g) for g in sizes[-1:]}),
            falls[sizes[-1].label] < _NEVER if sizes else None, "accuracy at the end",
        ),
    ]  # fmt: skip
    caption = "Accuracy on all tasks so far; the number is that of images kept."
    figures = curves(groups, "fig4", caption)
    return Chapter(figures, [], [], verdicts, runs_of(groups), found.missing(trials))


def _fall(group: Group) -> int:
    """After how many tasks a tenth of the best accuracy is lost, and stays lost."""
    seen = curve(group.runs[0].rows)
    kept = np.flatnonzero(seen.accuracy >= 0.9 * seen.accuracy.max())
    after = seen.learned[kept[-1] + 1 :]
    return int(after[0]) + 1 if len(after) else _NEVER
