"""Figure 3: LwF, SI and EWC beside DCL, at one, ten and a hundred times their published strength."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from everlearn.experiments.framework.groups import (
    accuracy_figures,
    values_after,
    values_by_title,
)
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.rule import lead_below
from everlearn.experiments.framework.shared_trials import (
    DCL,
    DCL_PLUS,
    EWC,
    FINE_TUNING,
    LWF,
    SI,
)
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.framework.verdicts import format_means, judge_statement
from everlearn.report import Group
from everlearn.report.experiment import ExperimentResult
from everlearn.report.tables.protocol import did_not_learn
from everlearn.report.verdict import Verdict

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "Regularisation"
SOURCE = "Figure 3"
CLAIM = "LwF, SI and EWC collapse within about ten tasks, LwF and SI at any strength; DCL improves."
# The published strength, 10 and 100 times as much, without the one that the trials on another seed chose.
_STRENGTHS = (
    (LWF, "distillation_weight", (0.1, 10.0)),
    (SI, "strength", (0.1, 1.0)),
    (EWC, "strength", (3.0, 30.0)),
)


def _other_strengths(tasks: int) -> tuple[Trial, ...]:
    """Return trials with the strengths that were not chosen, on the first tasks of the stream."""
    return tuple(
        trial._replace(
            name=f"{trial.name}-{value:g}", settings={name: value}, max_tasks=tasks, tasks_by_seed={},
            label=f"{trial.label}, {value:g}",
        )
        for trial, name, values in _STRENGTHS
        for value in values
    )  # fmt: skip


_CHOSEN = (DCL_PLUS, DCL, FINE_TUNING, LWF, SI, EWC)
SETTINGS = {
    SMALL: Settings((*_CHOSEN, *_other_strengths(2)), {"early": 2, "strengths": 2}),
    PAPER: Settings((*_CHOSEN, *_other_strengths(20)), {"early": 10, "strengths": 20}),
}
COST = {SMALL: "2 minutes", PAPER: "1 hour"}
_REGULARISED = (LWF, SI, EWC)
_COLLAPSED = 0.2
_NO_HELP = 0.1


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw accuracy at the strengths that were chosen, and at the others."""
    settings = results.settings(SETTINGS)
    chosen = results.groups(_CHOSEN)
    early_tasks = settings.options["early"]
    compared = results.groups(_CHOSEN, early_tasks)
    other_trials = settings.trials[len(_CHOSEN) :]
    others = results.groups(other_trials)
    figures = accuracy_figures(
        chosen, "fig3", "Accuracy on all tasks so far, at the strengths chosen on another seed."
    )
    caption = "At other strengths: the published one, and 10 or 100 times it."
    figures += accuracy_figures(others, "fig3-strengths", caption)
    tasks = settings.options["strengths"]
    strengths = (*_REGULARISED, *other_trials)
    verdicts = [
        _judge_collapse(compared, early_tasks),
        _judge_strengths(results.groups(strengths, tasks), strengths, tasks),
    ]
    return ExperimentResult(
        figures,
        verdicts=verdicts,
        runs=runs_of([*compared, *others]),
        missing=results.missing(settings.trials),
    )


def _judge_collapse(groups: Sequence[Group], tasks: int) -> Verdict:
    """Judge whether all methods have forgotten the early tasks."""
    early = values_by_title(
        _REGULARISED, {group.label: values_after(group, tasks) for group in groups}
    )
    return judge_statement(
        f"They collapse within about {tasks} tasks",
        format_means(early),
        [lead_below(values, _COLLAPSED) for values in early.values()],
        f"collapsed: below {_COLLAPSED}",
        list(early),
    )


def _judge_strengths(groups: Sequence[Group], trials: Sequence[Trial], tasks: int) -> Verdict:
    """Judge whether any strength helps, also those chosen: 10 (LwF) and 100 times (SI) the published."""
    unlearned = [group.label for group in groups if did_not_learn(group)]
    found = values_by_title(
        [trial for trial in trials if trial.title not in unlearned],
        {group.label: values_after(group, tasks) for group in groups},
    )
    why = f"helps: above {_NO_HELP} after {tasks} tasks; the paper says so of LwF and SI"
    if unlearned:
        why += f"; left out, since they did not learn their tasks: {', '.join(unlearned)}"
    return judge_statement(
        "10 and 100 times the strength does not help",
        format_means(found),
        [lead_below(values, _NO_HELP) for values in found.values()],
        why,
        list(found),
    )
