"""Open set: is the shape of an image known at all?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.learners import DCL, DCL_PLUS, SEEDS
from everlearn.experiments.read import lines, mean
from everlearn.experiments.trial import PAPER, SMALL, Settings
from everlearn.experiments.verdicts import listed, number, own
from everlearn.metrics import paper_curve
from everlearn.report import Group
from everlearn.report.chapter import Chapter
from everlearn.report.lines import Line

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "Open set", "Figure 9"
CLAIM = "The curve of the rates on seen and unseen shapes has an area of 0.92."
SETTINGS = {
    SMALL: Settings((DCL_PLUS, DCL)),
    PAPER: Settings((DCL_PLUS._replace(seeds=SEEDS), DCL)),
}
COST = {SMALL: "1 minute", PAPER: "11 minutes"}
_SCORES = ("open_set_auroc", "open_set_average_precision", "open_set_oscr")
_WHY = {
    DCL.title: "the paper's method, on images of 64 pixels with soft edges, after the last task",
    DCL_PLUS.title: "ours, which rehearses, averages and fits; likewise",
}
_NOTE = (
    "The paper calls the two rates precision and recall; they are the shares of seen shapes called seen "
    "and of unseen ones called unseen, over the threshold on the ratio of the two nearest distances."
)


def run(lab: Lab) -> None:
    """Let both learn; the exam is part of their plan."""
    lab.learn(lab.settings(SETTINGS).trials)


def figure(found: Found) -> Chapter:
    """The curve, its area, and textbook scores."""
    trials = found.settings(SETTINGS).trials
    groups = found.groups(trials)
    areas = {group.label: mean(group, "open_set_paper_area") for group in groups}
    verdicts = [
        number(f"{label}: area under the published curve", 0.92, areas.get(label), why)
        for label, why in _WHY.items()
    ]
    verdicts += [
        own(f"{group.label}: textbook scores, unseen positive", listed(_scores(group)))
        for group in groups
    ]
    figures = lines(
        [_line(group) for group in groups], "fig9", "unseen shapes called unseen",
        "seen shapes called seen", "The two rates over all thresholds, first seed.",
    )  # fmt: skip
    return Chapter(figures, [], [], verdicts, runs_of(groups), found.missing(trials), _NOTE)


def _scores(group: Group) -> dict[str, float | None]:
    return {name.removeprefix("open_set_").replace("_", " "): mean(group, name) for name in _SCORES}


def _line(group: Group) -> Line:
    row = [row for row in group.runs[0].rows if row["kind"] == "open-set"][-1]
    found = paper_curve(row["known"], row["unknown"])
    seen = found.seen_rate
    return Line(group.label, group.method, found.unseen_rate, seen, seen, seen)
