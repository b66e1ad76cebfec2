"""Cost per accuracy: what a method stores and how long it learns, against what it knows in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.learners import (
    DCL,
    DCL_PLUS,
    ER,
    EWC,
    JOINT,
    LWF,
    MIDDLE,
    SI,
    replay,
)
from everlearn.experiments.read import last_accuracy, mean
from everlearn.experiments.trial import PAPER, SMALL, Settings
from everlearn.experiments.verdicts import own
from everlearn.report import Group
from everlearn.report.chapter import Chapter, Figure
from everlearn.report.chart import Dot, draw_dots

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "Cost per accuracy", "ours"
CLAIM = (
    "Methods are compared by accuracy; what they store and how long they learn belongs beside it."
)
SETTINGS = {
    scale: Settings(
        (
            DCL_PLUS,
            DCL,
            *ER[scale],
            replay(MIDDLE[scale], "der++"),
            LWF,
            SI,
            EWC,
            JOINT[scale],
        )
    )
    for scale in (SMALL, PAPER)
}
COST = {
    SMALL: "nothing beyond the other experiments",
    PAPER: "nothing beyond the other experiments",
}
_NOTE = (
    "Stored: all that a method keeps from task to task (net, images, logits, exemplars); joint "
    "training draws all tasks again, which counts as nothing. On the H200 runs shared the card with up "
    "to four others, but for ER with 20,000 images: compare seconds with care."
)


def run(lab: Lab) -> None:
    """Let all learn."""
    lab.learn(lab.settings(SETTINGS).trials)


def figure(found: Found) -> Chapter:
    """Bytes and seconds against accuracy."""
    trials = found.settings(SETTINGS).trials
    groups = found.groups(trials)
    figures = [
        *_dots(groups, "bytes", "bytes stored"),
        *_dots(groups, "seconds", "seconds of learning"),
    ]
    one_by_one = [group for group in groups if group.method != "joint"]
    best = max(one_by_one, key=_per_byte, default=None)
    ours = (
        f"{best.label}, {last_accuracy(best):.4f} with {(mean(best, 'bytes') or 0) / 1e6:,.0f} MB"
        if best
        else ""
    )
    verdicts = [own("Most accuracy for a byte stored, of those that see a task at a time", ours)]
    return Chapter(figures, [], [], verdicts, runs_of(groups), found.missing(trials), _NOTE)


def _per_byte(group: Group) -> float:
    return last_accuracy(group) / (mean(group, "bytes") or 1)


def _dots(groups: list[Group], name: str, words: str) -> list[Figure]:
    """Accuracy at the end against one cost, where it was measured."""
    costs = {group.label: mean(group, name) for group in groups}
    dots = [
        Dot(group.label, group.method, cost, last_accuracy(group))
        for group in groups
        if (cost := costs[group.label])
    ]
    if not dots:
        return []
    svg = draw_dots(dots, f"cost-{name}", words, "accuracy at the end", f"accuracy against {words}")
    return [Figure(svg, f"Accuracy on all tasks at the end against {words}.")]
