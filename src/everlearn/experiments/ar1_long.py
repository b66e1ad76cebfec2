"""AR1 and its parts on the long stream of new classes, beside regularisation and replay of images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.gnr import AR1_FREE, AR1_STAR, LATENT_REPLAY
from everlearn.experiments.learners import DCL_PLUS, EWC, FINE_TUNING, LWF, MIDDLE, SI, replay
from everlearn.experiments.read import curves, last_accuracy
from everlearn.experiments.trial import PAPER, SMALL, Settings
from everlearn.experiments.verdicts import listed, own
from everlearn.report.chapter import Chapter

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "AR1 on the long stream", "ours"
CLAIM = "AR1 was measured on tens of experiences; here are hundreds, beside the usual baselines."
_OLD = (LWF, EWC, SI, FINE_TUNING)
SETTINGS = {
    SMALL: Settings((DCL_PLUS, replay(MIDDLE[SMALL]), AR1_FREE[SMALL], *_OLD)),
    PAPER: Settings(
        (DCL_PLUS, replay(MIDDLE[PAPER]), AR1_FREE[PAPER], LATENT_REPLAY, AR1_STAR, *_OLD)
    ),
}
COST = {SMALL: "seconds after the overview", PAPER: "40 minutes after the overview"}
_NOTE = (
    "AR1 and latent replay begin with an extractor that was pre-trained on 500 other shapes; DCL+ is "
    "told the map of every image; the others begin with nothing."
)


def run(lab: Lab) -> None:
    """Let all learn."""
    lab.learn(lab.settings(SETTINGS).trials)


def figure(found: Found) -> Chapter:
    """A curve each."""
    trials = found.settings(SETTINGS).trials
    groups = found.groups(trials)
    ends = listed({group.label: last_accuracy(group) for group in groups})
    verdicts = [own("Accuracy at the end", ends)]
    figures = curves(groups, "ar1", "Accuracy on the tests of all tasks so far.")
    return Chapter(figures, [], [], verdicts, runs_of(groups), found.missing(trials), _NOTE)
