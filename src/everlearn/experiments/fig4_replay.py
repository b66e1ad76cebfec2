"""Experience replay with buffers of several sizes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from everlearn.experiments.found import Found, label_runs
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
COST = {SMALL: "2 minutes", PAPER: "22 minutes"}


def run(lab: Lab) -> None:
    """Let all learn."""
    lab.learn(lab.settings(SETTINGS).trials)


def figure(found: Found) -> Chapter:
    """A curve a size."""
    trials = found.settings(SETTINGS).trials
    groups = found.groups(trials)
    sizes = [group for group in groups if group.method == "er"]
    ends = {group.label: last_accuracy(group) for group in sizes}
    rising = all(a <= b + 0.01 for a, b in pairwise(ends.values()))
    verdicts = [
        statement(
            "A larger buffer declines later", listed(ends), rising if len(ends) > 1 else None
        ),
        statement("The largest declines before the end", _fall(sizes), _declines(sizes)),
    ]
    caption = "Accuracy on all tasks so far; the number is that of images kept."
    figures = curves(groups, "fig4", caption)
    return Chapter(figures, [], [], verdicts, label_runs(groups), found.missing(trials))


def _fall(sizes: list[Group]) -> str:
    if not sizes:
        return ""
    accuracy = curve(sizes[-1].runs[0].rows).accuracy
    return f"{sizes[-1].label}: {accuracy.max():.3f} at best, {accuracy[-1]:.3f} at the end"


def _declines(sizes: list[Group]) -> bool | None:
    if not sizes:
        return None
    accuracy = curve(sizes[-1].runs[0].rows).accuracy
    return bool(accuracy[-1] < 0.9 * accuracy.max())
