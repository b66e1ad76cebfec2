"""Online against offline: DCL with one, three and five passes over each task."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.learners import DCL, DCL_PLUS
from everlearn.experiments.read import curves, last_accuracy
from everlearn.experiments.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.verdicts import listed, own, statement
from everlearn.metrics import curve
from everlearn.report import Group
from everlearn.report.chapter import Chapter

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "Online against offline", "Figure 8"
CLAIM = "DCL rises over the stream with one, three and five passes over each task, higher with more passes."
_PASSES = (
    Trial("dcl-online", "dcl", {"epochs": 1}, {"online": True}, label="DCL, 1 pass"),
    Trial("dcl-3", "dcl", {"epochs": 3}, label="DCL, 3 passes"),
    DCL,
)
_PLUS = Trial("dcl-plus-online", "dcl-plus", {"epochs": 1}, {"online": True}, label="DCL+, 1 pass")
SETTINGS = dict.fromkeys((SMALL, PAPER), Settings((*_PASSES, _PLUS, DCL_PLUS)))
COST = {SMALL: "1 minute", PAPER: "8 minutes"}


def run(lab: Lab) -> None:
    """Let all learn; on the online stream a second pass is refused."""
    lab.learn(lab.settings(SETTINGS).trials)


def figure(found: Found) -> Chapter:
    """A curve for each number of passes."""
    trials = found.settings(SETTINGS).trials
    groups, plain = found.groups(trials), found.groups(_PASSES)
    ends = {group.label: last_accuracy(group) for group in plain}
    whole = len(plain) == len(_PASSES)
    rising = all(low <= high + 0.01 for low, high in pairwise(ends.values()))
    better = [group for group in groups if group.label == _PLUS.label]
    verdicts = [
        statement("More passes end higher", listed(ends), rising if whole else None),
        statement(
            "All rise",
            listed({g.label: _rise(g) for g in plain}),
            _all_rise(plain, whole),
            "the last accuracy less the first",
        ),
        own("DCL+ with one pass", listed({g.label: last_accuracy(g) for g in better})),
    ]
    figures = curves(groups, "fig8", "Accuracy on all tasks so far.")
    return Chapter(figures, [], [], verdicts, runs_of(groups), found.missing(trials))


def _rise(group: Group) -> float:
    """The last accuracy less the first."""
    accuracy = curve(group.runs[0].rows).accuracy
    return float(accuracy[-1] - accuracy[0])


def _all_rise(groups: list[Group], whole: bool) -> bool | None:
    return all(_rise(group) > 0 for group in groups) if whole else None
