"""Generative replay without end: what hundreds of experiences leave of it, and what each of them costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.gnr import AR1_FREE, BIR, GNR, GNR_NONE, GNR_POSITIVE, NEGATIVE
from everlearn.experiments.gnr_modes import apart
from everlearn.experiments.learners import DCL, DCL_PLUS, MIDDLE, replay
from everlearn.experiments.read import curves, last_accuracy, mean, shown
from everlearn.experiments.trial import PAPER, SMALL, Settings
from everlearn.experiments.verdicts import listed, own
from everlearn.report import Group, Table
from everlearn.report.chapter import Chapter
from everlearn.report.numbers import NONE, size

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "Generative replay without end", "ours"
CLAIM = "Nobody has said whether a generator that learns from its own output lasts for hundreds of tasks."
SETTINGS = {
    SMALL: Settings((DCL_PLUS, DCL, replay(MIDDLE[SMALL]), AR1_FREE[SMALL], GNR[SMALL])),
    PAPER: Settings(
        (
            DCL_PLUS, DCL, replay(20_000), replay(MIDDLE[PAPER]), AR1_FREE[PAPER], GNR[PAPER],
            GNR_POSITIVE, GNR_NONE, NEGATIVE, BIR,
        )
    ),
}  # fmt: skip
COST = {SMALL: "seconds after the overview", PAPER: "1 hour after the overview"}
_NOTE = (
    "GNR and AR1*free begin with an extractor that was pre-trained on 500 other shapes; DCL and DCL+ are "
    "told the map of every image; the others begin with nothing. BIR and negative replay learn 100 tasks."
)
_TENTH = 10


def run(lab: Lab) -> None:
    """Let all learn."""
    lab.learn(lab.settings(SETTINGS).trials)


def figure(found: Found) -> Chapter:
    """A curve each, and what a task costs at the beginning and at the end."""
    trials = found.settings(SETTINGS).trials
    groups = found.groups(trials)
    ends = listed({group.label: last_accuracy(group) for group in groups})
    verdicts = [own("Accuracy at the end", ends)]
    figures = curves(apart(groups), "gnr-long", "Accuracy on the tests of all tasks so far.")
    tables = [_costs(groups)] if groups else []
    return Chapter(figures, tables, [], verdicts, runs_of(groups), found.missing(trials), _NOTE)


def _costs(groups: Sequence[Group]) -> Table:
    rows = []
    for group in groups:
        first, last = seconds(group)
        stored = mean(group, "bytes")
        ratio = last / first if first and last else None
        cells = [shown(value, digits=2) for value in (first, last, ratio)]
        rows.append([group.label, *cells, NONE if stored is None else size(stored)])
    head = ["method", "first tasks, s", "last tasks, s", "last over first", "stored at the end"]
    note = (
        "Seconds of learning a task: mean of the first tenth of the tasks, without the very first, and of "
        "the last tenth. Runs of one page may have shared a card."
    )
    return Table("What a task costs", head, rows, note)


def seconds(group: Group) -> tuple[float | None, float | None]:
    """Mean seconds of a task in the first tenth, less the first task, and in the last; one seed."""
    rows = [row for row in group.runs[0].costs if row["kind"] == "task"]
    spent = [row["seconds"] for row in sorted(rows, key=lambda row: row["learned"])][1:]
    count = max(1, (len(spent) + 1) // _TENTH)
    if not spent:
        return None, None
    return sum(spent[:count]) / count, sum(spent[-count:]) / count
