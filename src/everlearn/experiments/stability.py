"""The stability gap: what happens to old tasks at every step, not only when a task has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.found import Found, label_runs
from everlearn.experiments.learners import (
    AGEM,
    DCL,
    DCL_PLUS,
    EWC,
    FINE_TUNING,
    LWF,
    MIDDLE,
    SI,
    replay,
)
from everlearn.experiments.read import mean
from everlearn.experiments.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.verdicts import listed, statement
from everlearn.report import Group, Table
from everlearn.report.chapter import Chapter, Figure
from everlearn.report.chart import Bar, draw_bars
from everlearn.report.curves import draw_probes
from everlearn.report.numbers import NONE

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "The stability gap", "De Lange et al. 2023"
CLAIM = (
    "Replay, constraints, distillation and regularisation all lose old tasks for a while when a new one "
    "begins."
)
_EXAMS = {"every": 1, "one_shot": (), "open_set": False, "finals": ()}
_SHOWN = ("dcl-plus", "dcl", "er", "fine-tuning")  # more would hide one another
_COLUMNS = {
    "stability_gap": "stability gap",
    "min_accuracy": "min accuracy",
    "worst_case_accuracy": "worst-case accuracy",
    "windowed_forgetting_10": "largest fall in 10 steps",
    "average_accuracy": "accuracy at the end",
}


def _trials(size: int, tasks: int, probe: int, images: int) -> tuple[Trial, ...]:
    plan = {**_EXAMS, "probe": probe, "probe_images": images}
    kinds = (DCL_PLUS, DCL, replay(size), replay(size, "der++"), AGEM, LWF, EWC, SI, FINE_TUNING)
    return tuple(
        trial._replace(
            name=f"gap-{trial.method}",
            stream={"tasks": tasks},
            most=None,
            plan=plan,
            label=trial.title,
        )
        for trial in kinds
    )


SETTINGS = {
    SMALL: Settings(_trials(MIDDLE[SMALL], 2, 5, 16)),
    PAPER: Settings(_trials(MIDDLE[PAPER], 10, 1, 100)),
}
COST = {SMALL: "2 minutes", PAPER: "5 minutes"}


def run(lab: Lab) -> None:
    """Let all learn, probed as they learn."""
    lab.learn(lab.settings(SETTINGS).trials)


def figure(found: Found) -> Chapter:
    """The first task while the others are learned, and the gap of each method."""
    trials = found.settings(SETTINGS).trials
    groups = [group for group in found.groups(trials) if mean(group, "stability_gap") is not None]
    gaps = {group.label: mean(group, "stability_gap") for group in groups}
    bars = [_bar(group) for group in groups]
    figures = []
    if groups:
        svg = draw_bars(bars, "gap-bars", "stability gap", "mean fall of old tasks, by method")
        figures = [Figure(svg, "How far old tasks fall while the next is learned, on average.")]
        probes = draw_probes([group for group in groups if group.method in _SHOWN])
        figures += (
            [Figure(probes, "The first task, while the others are learned.")] if probes else []
        )
    others = [gaps[group.label] for group in groups if not group.method.startswith("dcl")]
    holds = all(gap is not None and gap > 0.02 for gap in others) if others else None
    verdicts = [statement("Every other method has a gap", listed(gaps), holds)]
    tables = [_table(groups)] if groups else []
    return Chapter(figures, tables, [], verdicts, label_runs(groups), found.missing(trials))


def _bar(group: Group) -> Bar:
    value = mean(group, "stability_gap") or 0.0
    return Bar(group.label, group.method, value, value, value)


def _table(groups: list[Group]) -> Table:
    rows = [[group.label, *(_cell(group, name) for name in _COLUMNS)] for group in groups]
    note = (
        "Minima over small subsets are biased low. The gap is averaged over old tasks and switches: what "
        "has nothing left has nothing to lose. DCL+ answers with a net that changes when a task ends."
    )
    return Table("While learning", ["method", *_COLUMNS.values()], rows, note)


def _cell(group: Group, name: str) -> str:
    value = mean(group, name)
    return NONE if value is None else f"{value:.3f}"
