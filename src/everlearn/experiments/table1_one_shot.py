"""One shot: new shapes are known by one exemplar each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.learners import DCL, DCL_PLUS, SEEDS
from everlearn.experiments.trial import PAPER, SMALL, Settings
from everlearn.experiments.verdicts import number
from everlearn.metrics import one_shot, share
from everlearn.report import Finished, Group, Table
from everlearn.report.chapter import Chapter
from everlearn.report.numbers import NONE

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "One shot", "Table 1"
CLAIM = (
    "After 200 tasks 1.00 / 0.98 / 0.95 of the images of 10 / 100 / 1,000 new shapes are named right, and "
    "0.96 / 0.95 / 0.93 among all shapes."
)
_PUBLISHED = {
    "standard": {10: 1.00, 100: 0.98, 1000: 0.95},
    "generalised": {10: 0.96, 100: 0.95, 1000: 0.93},
}
_WHY = {
    DCL.title: "the paper's method, on images of 64 pixels with soft edges",
    DCL_PLUS.title: "ours, which rehearses, averages and fits; likewise",
}
SETTINGS = {
    SMALL: Settings((DCL_PLUS, DCL), {"tasks": 5}),
    PAPER: Settings((DCL_PLUS._replace(seeds=SEEDS), DCL), {"tasks": 200}),
}
COST = {SMALL: "1 minute", PAPER: "11 minutes"}


def run(lab: Lab) -> None:
    """Let both learn; the exam is part of their plan."""
    lab.learn(lab.settings(SETTINGS).trials)


def figure(found: Found) -> Chapter:
    """The table, and each published number beside ours."""
    settings = found.settings(SETTINGS)
    groups, tasks = found.groups(settings.trials), settings.numbers["tasks"]
    scores = {group.label: _scores(group, tasks) for group in groups}
    verdicts = [
        number(
            f"{label}: {classes:,} new classes, {mode}", value,
            scores.get(label, {}).get((mode, "grid", classes)), why,
        )
        for label, why in _WHY.items()
        for mode, row in _PUBLISHED.items()
        for classes, value in row.items()
    ]  # fmt: skip
    tables = [_table(scores, tasks)] if groups else []
    return Chapter([], tables, [], verdicts, runs_of(groups), found.missing(settings.trials))


def _scores(group: Group, tasks: int) -> dict[tuple[str, str, int], float]:
    """The mean over seeds of each score, after so many tasks or at the end of a shorter stream."""
    every = [_of_run(run, tasks) for run in group.runs]
    return {key: sum(one[key] for one in every) / len(every) for key in every[0]}


def _of_run(run: Finished, tasks: int) -> dict[tuple[str, str, int], float]:
    there = [row for row in run.rows if row["kind"] == "one-shot"]
    last = max((row["learned"] for row in there if row["learned"] < tasks), default=-1)
    counts = one_shot(row for row in there if row["learned"] == last)
    return {key: float(share(count.right, count.total)) for key, count in counts.items()}


def _table(scores: dict[str, dict[tuple[str, str, int], float]], tasks: int) -> Table:
    """A row a way of testing, a column a method."""
    first = next(iter(scores.values()))
    keys = sorted(first, key=lambda key: (key[1] != "grid", key[0] != "standard", key[2]))
    rows = [_row(key, list(scores.values())) for key in keys]
    note = (
        f"After {tasks} tasks. Standard: the memory holds the new shapes alone; generalised: the old ones, "
        "too. Grid: poses as in training; continuous: any between."
    )
    return Table("One shot", ["new classes", "published", *scores], rows, note)


def _row(
    key: tuple[str, str, int], scores: Sequence[dict[tuple[str, str, int], float]]
) -> list[str]:
    mode, factors, classes = key
    told = _PUBLISHED[mode].get(classes) if factors == "grid" else None
    cells = [f"{one[key]:.4f}" if key in one else NONE for one in scores]
    return [f"{classes:,}, {mode}, {factors}", NONE if told is None else f"{told:.2f}", *cells]
