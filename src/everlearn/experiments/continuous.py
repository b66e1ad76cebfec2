"""Continuous factors: does a learner of a grid of poses know those between?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.found import Found, label_runs
from everlearn.experiments.learners import DCL, DCL_PLUS
from everlearn.experiments.read import mean
from everlearn.experiments.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.verdicts import listed, own
from everlearn.report import Group, Table
from everlearn.report.chapter import Chapter, Figure
from everlearn.report.chart import Bar, draw_bars
from everlearn.report.numbers import NONE

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "Continuous factors", "ours"
CLAIM = (
    "Test images on the training grid flatter a learner; poses between show what it has understood."
)
JITTER = Trial("dcl-plus-jitter", "dcl-plus", {"jitter": 0.25}, label="DCL+ with jitter")
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
        [[group.label, *(_cell(group, name) for name in names.values())] for group in groups],
        "The memory holds the new shapes alone. Continuous: any pose within the ranges of the grid.",
    )
    between = {group.label: mean(group, names["continuous"]) for group in groups}
    bars = [
        Bar(group.label, group.method, value, value, value)
        for group in groups
        if (value := between[group.label]) is not None
    ]
    words = "accuracy between the poses of the grid, by method"
    svg = [draw_bars(bars, "continuous", "accuracy, continuous factors", words)] if bars else []
    verdicts = [own(f"{classes:,} new classes between the poses of the grid", listed(between, 4))]
    figures = [Figure(one, "One shot, poses between those of the grid.") for one in svg]
    tables = [table] if groups else []
    return Chapter(
        figures, tables, [], verdicts, label_runs(groups), found.missing(settings.trials)
    )


def _cell(group: Group, name: str) -> str:
    value = mean(group, name)
    return NONE if value is None else f"{value:.4f}"
