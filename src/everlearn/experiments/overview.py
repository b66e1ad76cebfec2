"""All methods on one stream: the main table and figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.learners import (
    AGEM,
    CONTRASTIVE,
    DCL,
    DCL_PLUS,
    ER,
    EWC,
    FINE_TUNING,
    JOINT,
    L2P,
    LWF,
    MIDDLE,
    SEEDS,
    SI,
    replay,
)
from everlearn.experiments.read import curves, last_accuracy
from everlearn.experiments.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.verdicts import listed, statement
from everlearn.report import Group
from everlearn.report.chapter import Chapter

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "All methods", "the paper's claim"
CLAIM = "DCL improves over 500 tasks, where every other method forgets."


def _trials(scale: str, seeds: tuple[int, ...]) -> tuple[Trial, ...]:
    derpp = replay(MIDDLE[scale], "der++")
    bound = (LWF, SI, EWC, AGEM, FINE_TUNING, CONTRASTIVE)
    best = (JOINT[scale], DCL_PLUS._replace(seeds=seeds), DCL)
    return (*best, *reversed(ER[scale]), derpp, *bound)


SETTINGS = {SMALL: Settings(_trials(SMALL, (0,))), PAPER: Settings(_trials(PAPER, SEEDS))}
COST = {SMALL: "5 minutes", PAPER: "1 hour"}
_NOTE = (
    "DCL learns from the true map of every image and gets an exemplar of each class; contrastive gets the "
    "exemplars, the others labels only. What L2P-lite stores leaves out its frozen net of 10.8 MB; joint "
    "training draws all tasks again, which counts as nothing stored. On the H200 runs shared the card with "
    "up to four others, but for ER with 20,000 images."
)


def run(lab: Lab) -> None:
    """Let all learn; L2P-lite is left to fig5, which pre-trains its net."""
    lab.learn(lab.settings(SETTINGS).trials)


def shown(found: Found) -> list[Group]:
    """The methods to compare."""
    return found.groups([*found.settings(SETTINGS).trials, L2P])


def figure(found: Found) -> Chapter:
    """A curve each."""
    trials = found.settings(SETTINGS).trials
    groups = shown(found)
    # One point makes no curve: joint training is tested once.
    figures = curves([group for group in groups if group.method != "joint"], "overview", _CAPTION)
    ends = {group.label: last_accuracy(group) for group in groups}
    maps = ends.get(DCL.title)
    others = [value for label, value in ends.items() if label not in _KNOW_MORE]
    holds = None if maps is None or not others else maps > max(others)
    verdicts = [statement("DCL ends above all that forget", listed(ends), holds, _WHY)]
    return Chapter(figures, [], [], verdicts, runs_of(groups), found.missing(trials), _NOTE)


_CAPTION = "Accuracy on the tests of all tasks so far. Some runs are the beginning of the stream."
_WHY = "accuracy at the end of each run"
_KNOW_MORE = ("joint", DCL.title, DCL_PLUS.title)
