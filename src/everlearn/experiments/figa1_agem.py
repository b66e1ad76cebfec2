"""A-GEM: steps that are not against the gradient on a few old images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.learners import AGEM, DCL, DCL_PLUS, FINE_TUNING
from everlearn.experiments.read import accuracy_at, curves
from everlearn.experiments.trial import PAPER, SMALL, Settings
from everlearn.experiments.verdicts import listed, statement
from everlearn.report.chapter import Chapter

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "A-GEM", "Figure A1"
CLAIM = "A-GEM is far below DCL over 50 tasks."
_TRIALS = (DCL_PLUS, DCL, AGEM, FINE_TUNING)
SETTINGS = {SMALL: Settings(_TRIALS, {"late": 5}), PAPER: Settings(_TRIALS, {"late": 50})}
COST = {SMALL: "1 minute", PAPER: "11 minutes"}


def run(lab: Lab) -> None:
    """Let all learn."""
    lab.learn(lab.settings(SETTINGS).trials)


def figure(found: Found) -> Chapter:
    """Curves."""
    late = found.settings(SETTINGS).numbers["late"]
    groups = found.groups(_TRIALS)
    at = {group.label: accuracy_at(group, late) for group in groups}
    ours, maps = at.get(AGEM.title), at.get(DCL.title)
    holds = None if ours is None or maps is None else ours < maps - 0.3
    verdicts = [statement(f"After {late} tasks A-GEM is far below DCL", listed(at), holds)]
    figures = curves(groups, "figA1", "Accuracy on all tasks so far.")
    return Chapter(figures, [], [], verdicts, runs_of(groups), found.missing(_TRIALS))
