"""Continuous factors: does a learner of a grid of poses know those between?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.learners import DCL, DCL_PLUS
from everlearn.experiments.read import bars, cell, mean
from everlearn.experiments.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.verdicts import listed, own
from everlearn.report import Table
from everlearn.report.chapter import Chapter

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "Continuous factors", "ours"
CLAIM = (
    "Test images on the training grid flatter a learner; poses between show what it has understood."
)
JITTER = Trial(
    "dcl-plus-jitter", "dcl-plus", {"jitter": 0.25, "own": 0.0}, label="DCL+ with jitter"
)
_TRIALS = (DCL, DCL_PLUS, JITTER)
SETTINGS = {
    SMALL: Settings(_TRIALS, {"classes": 20}),
    PAPER: Settings(_TRIALS, {"classes": 1000}),
}
COST = {SMALL: "1 minute", PAPER: "8 minutes"}


def run(lab: Lab) -> None:
    """Let all learn; the exams are part of their plan."""
    lab.learn(lab.settings(SETTINGS).trials)


def figure(found: Found) -> Chapter:
    """One shot on the grid and between its values."""
    settings = found.settings(SETTINGS)
    groups, classes = found.groups(settings.trials), settings.numbers["classes"]
    names = {kind: f"one_shot_standard_{kind}_{classes}" for kind in ("grid", "continuous")}
    table = Table(
        f"{classes:,} new classes, one shot",
        ["method", *names],
        [[group.label, *(cell(group, name, 4) for name in names.values())] for group in groups],
        "The memory holds the new shapes alone. Continuous: any pose within the ranges of the grid. The "
        "run with jitter counts no own moments.",
    )
    between = {group.label: mean(group, names["continuous"]) for group in groups}
    caption = "One shot, poses between those of the grid."
    figures = bars(
        groups, names["continuous"], "continuous", "accuracy, continuous factors", caption
    )
    verdicts = [own(f"{classes:,} new classes between the poses of the grid", listed(between, 4))]
    tables = [table] if groups else []
    return Chapter(figures, tables, [], verdicts, runs_of(groups), found.missing(settings.trials))
