"""All methods on the same stream: the main table and figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.framework.groups import accuracy_figures, final_accuracy
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import (
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
    MIDDLE_BUFFER,
    SEEDS,
    SI,
    replay,
)
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.framework.verdicts import format_values, judge_claim
from everlearn.report import Group
from everlearn.report.experiment import ExperimentResult

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "All methods"
SOURCE = "the paper's claim"
CLAIM = "DCL improves over 500 tasks, while every other method forgets."


def _trials(scale: str, seeds: tuple[int, ...]) -> tuple[Trial, ...]:
    return (
        JOINT[scale],
        DCL_PLUS._replace(seeds=seeds),
        DCL,
        *reversed(ER[scale]),
        replay(MIDDLE_BUFFER[scale], "der++"),
        *(LWF, SI, EWC, AGEM, FINE_TUNING, CONTRASTIVE),
    )


SETTINGS = {SMALL: Settings(_trials(SMALL, (0,))), PAPER: Settings(_trials(PAPER, SEEDS))}
COST = {SMALL: "5 minutes", PAPER: "1 hour"}
_NOTE = (
    "DCL is trained on the true affine map of every image and gets one exemplar of each class; contrastive "
    "gets the exemplars, the other methods only labels. The storage of L2P-lite leaves out its frozen net "
    "of 10.8 MB; joint training renders all tasks again, which counts as no storage. On the H200 up to "
    "five runs shared the GPU, except for ER with 20,000 images."
)
_CAPTION = "Accuracy on the tests of all tasks so far. Some runs learn only the first tasks."


def run(runner: Runner) -> None:
    """Run all trials except L2P-lite: fig5 pre-trains its net."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def compared_groups(results: ResultsFolder) -> list[Group]:
    """Return the runs of all methods to compare."""
    return results.groups([*results.settings(SETTINGS).trials, L2P])


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw one curve per method."""
    trials = results.settings(SETTINGS).trials
    groups = compared_groups(results)
    # Joint training is tested once, and one point makes no curve.
    drawn = [group for group in groups if group.method != "joint"]
    final = {group.label: final_accuracy(group) for group in groups}
    dcl = final.get(DCL.title)
    not_compared = ("joint", DCL.title, DCL_PLUS.title)
    others = [accuracy for label, accuracy in final.items() if label not in not_compared]
    verdict = judge_claim(
        "DCL ends above all methods that forget",
        format_values(final),
        None if dcl is None or not others else dcl > max(others),
        "accuracy at the end of each run",
    )
    return ExperimentResult(
        accuracy_figures(drawn, "overview", _CAPTION),
        verdicts=[verdict],
        runs=runs_of(groups),
        missing=results.missing(trials),
        note=_NOTE,
    )
