"""The stability gap: what happens to old tasks at every step, not only when a task has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.found import Found, runs_of
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
from everlearn.experiments.read import bars, cell, mean
from everlearn.experiments.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.verdicts import own, statement
from everlearn.metrics import Series, probes
from everlearn.report import Group, Table
from everlearn.report.chapter import Chapter, Figure
from everlearn.report.curves import draw_probes
from everlearn.report.verdict import Verdict

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "The stability gap", "De Lange et al. 2023"
CLAIM = (
    "Replay, constraints, distillation and regularisation all lose old tasks for a while when a new one "
    "begins."
)
_EXAMS = {"every": 1, "one_shot": (), "open_set": False, "finals": ()}
_BACK = 0.3  # of what was lost: it comes back
_FOR_GOOD = "on this stream they lose old tasks for good: what does not come back is no gap"
_BOUND = ("agem", "lwf", "ewc", "si")
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
    caption = "How far old tasks fall while the next is learned, on average."
    figures = bars(groups, "stability_gap", "gap-bars", "stability gap", caption)
    probed = draw_probes([group for group in groups if group.method in _SHOWN])
    if probed:
        figures.append(Figure(probed, "The first task, while the others are learned."))
    tables = [_table(groups)] if groups else []
    runs, missing = runs_of(groups), found.missing(trials)
    return Chapter(figures, tables, [], _verdicts(groups), runs, missing)


def _verdicts(groups: list[Group]) -> list[Verdict]:
    """Who falls and comes back, and who loses for good."""
    words = {group.method: _in_words(group) for group in groups}
    back = {group.method: regained(group) > _BACK for group in groups}
    replays = [back[method] for method in ("er", "der++") if method in back]
    others = [words[method] for method in _BOUND if method in words]
    maps = [words[method] for method in ("dcl", "dcl-plus") if method in words]
    heard = [words[method] for method in ("er", "der++") if method in words]
    bound = [back[method] for method in _BOUND if method in back]
    lost = statement(
        "So do constraints, distillation and regularisation", "; ".join(others),
        all(bound) if bound else None, "" if all(bound) else _FOR_GOOD,
    )  # fmt: skip
    if bound and not any(bound):
        lost = lost._replace(verdict="not comparable")
    holds = all(replays) if replays else None
    return [
        statement("Replay loses old tasks for a while", "; ".join(heard), holds),
        lost,
        own("DCL, in the same way", "; ".join(maps)),
    ]


def _in_words(group: Group) -> str:
    gap = mean(group, "stability_gap") or 0.0
    told = (
        f"falls by {gap:.2f}, regains {regained(group):.2f} of it" if gap > 0 else "does not fall"
    )
    return f"{group.label}: {told}"


def regained(group: Group) -> float:
    """The share of what old tasks lost while a task was learned that was back at its end."""
    lost = back = 0.0
    for run in group.runs:
        for task, series in probes(run.rows).items():
            for switch in range(task + 1, int(series.learned.max()) + 1):
                fell, rose = _swing(series, switch)
                lost, back = lost + fell, back + rose
    return back / lost if lost else 0.0


def _swing(series: Series, switch: int) -> tuple[float, float]:
    """How far a task fell while another was learned, and how far it rose again by its end."""
    before = series.where(series.learned < switch).accuracy
    during = series.where(series.learned == switch).accuracy
    if not len(before) or not len(during):
        return 0.0, 0.0
    low = float(during.min())
    return max(0.0, float(before[-1]) - low), max(
        0.0, min(float(before[-1]), float(during[-1])) - low
    )


def _table(groups: list[Group]) -> Table:
    rows = [
        [group.label, *(cell(group, name) for name in _COLUMNS), f"{regained(group):.3f}"]
        for group in groups
    ]
    note = (
        "Minima over small subsets are biased low. The gap is averaged over old tasks and switches: what "
        "has nothing left has nothing to lose. Regained: of what was lost while a task was learned, at its "
        "end. DCL+ answers with a net that changes when a task ends."
    )
    return Table("While learning", ["method", *_COLUMNS.values(), "regained"], rows, note)
