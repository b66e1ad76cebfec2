"""Continuous factors: does a learner trained on a grid of poses generalise to poses in between?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.framework.groups import bar_figures, on_shared_seeds, summary_cell
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import DCL, DCL_PLUS, TABLE_TASKS, once
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.framework.verdicts import format_values, unpublished
from everlearn.report import Table
from everlearn.report.experiment import ExperimentResult

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "Continuous factors"
SOURCE = "ours"
CLAIM = (
    "Tests on the training grid overestimate a learner that trained on the grid alone; poses in between "
    "show whether it generalises."
)
# Some images of a batch are moved to a pose between those of the grid.
DCL_JITTER = once(Trial("dcl-jitter", "dcl", {"jitter": 0.25}, label="DCL with jitter"))
JITTER = DCL_JITTER._replace(
    name="dcl-plus-jitter",
    method="dcl-plus",
    settings={"jitter": 0.25, "instance_stats": 0.0},
    label="DCL+ with jitter",
)
_TRIALS = (DCL, DCL_JITTER, DCL_PLUS, JITTER)
SETTINGS = {
    SMALL: Settings(_TRIALS, {"classes": 20}),
    PAPER: Settings(_TRIALS, {"classes": 1000}),
}
COST = {SMALL: "1 minute", PAPER: "25 minutes"}
_NOTE = (
    f"After {TABLE_TASKS} tasks, on the seed that all have learned: one seed decides nothing. The memory "
    "holds only the new shapes. Continuous: any pose within the ranges of the grid. Only DCL is trained on "
    "the grid alone, so only for DCL are these poses new: exemplar replay of DCL+ shows exemplars in "
    "random continuous poses, and jitter moves images off the grid. DCL+ with jitter uses no instance "
    "statistics."
)
_WHY = "no value was published; DCL+ and jitter train on such poses"


def run(runner: Runner) -> None:
    """Run all trials; one-shot evaluation is part of their plan."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Compare one-shot accuracy on the grid and between its values."""
    settings = results.settings(SETTINGS)
    groups = on_shared_seeds(results.groups(settings.trials, TABLE_TASKS))
    classes = settings.options["classes"]
    names = {
        factors: f"one_shot_standard_{factors}_{classes}" for factors in ("grid", "continuous")
    }
    table = Table(
        f"{classes:,} new classes, one shot",
        ["method", *names],
        [
            [group.label, *(summary_cell(group, name, 4) for name in names.values())]
            for group in groups
        ],
        _NOTE,
    )
    continuous = {group.label: group.mean(names["continuous"]) for group in groups}
    caption = "One-shot accuracy, poses between those of the grid."
    figures = bar_figures(
        groups, names["continuous"], "continuous", "accuracy, continuous factors", caption
    )
    claim = f"{classes:,} new classes, poses between those of the grid (new for DCL alone)"
    return ExperimentResult(
        figures,
        tables=[table] if groups else [],
        verdicts=[unpublished(claim, format_values(continuous, 4), _WHY)],
        runs=runs_of(groups),
        missing=results.missing(settings.trials),
    )
