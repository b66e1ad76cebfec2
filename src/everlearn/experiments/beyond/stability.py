"""The stability gap: accuracy on old tasks at every step, not only after each task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from everlearn.experiments.framework.groups import bar_figures, summary_cell
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import (
    AGEM,
    DCL,
    DCL_PLUS,
    EWC,
    FINE_TUNING,
    LWF,
    MIDDLE_BUFFER,
    SI,
    replay,
)
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.framework.verdicts import judge_claim, unpublished
from everlearn.metrics import NotMeasuredError, Series, mean_stability_gap, probes, regained
from everlearn.report import Group, Table
from everlearn.report.charts.curves import draw_probes
from everlearn.report.experiment import ExperimentResult, Figure
from everlearn.report.verdict import Verdict

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "The stability gap"
SOURCE = "De Lange et al. 2023"
CLAIM = (
    "Replay, gradient constraints, distillation and regularisation all lose accuracy on old tasks for a "
    "while when a new task begins."
)
_PLAN = {"every": 1, "one_shot": (), "open_set": False, "final_after": ()}
_TEMPORARY = 0.3  # a loss is temporary if at least this fraction of it is regained
_FOR_GOOD = "on this stream they lose old tasks for good, and a loss that stays is no gap"
_REPLAY = ("er", "der++")
_OTHERS = ("agem", "lwf", "ewc", "si")
_DRAWN = ("dcl-plus", "dcl", "er", "fine-tuning")  # more lines would hide each other
_COLUMNS = {
    "stability_gap": "stability gap",
    "min_accuracy": "min accuracy",
    "worst_case_accuracy": "worst-case accuracy",
    "windowed_forgetting_10": "largest drop in 10 steps",
    "average_accuracy": "accuracy at the end",
}


def _trials(size: int, tasks: int, probe: int, images: int) -> tuple[Trial, ...]:
    plan = {**_PLAN, "probe_every": probe, "probe_images": images}
    trials = (DCL_PLUS, DCL, replay(size), replay(size, "der++"), AGEM, LWF, EWC, SI, FINE_TUNING)
    return tuple(
        trial._replace(
            name=f"gap-{trial.method}",
            stream={"tasks": tasks},
            max_tasks=None,
            plan=plan,
            label=trial.title,
        )
        for trial in trials
    )


SETTINGS = {
    SMALL: Settings(_trials(MIDDLE_BUFFER[SMALL], 2, 5, 16)),
    PAPER: Settings(_trials(MIDDLE_BUFFER[PAPER], 10, 1, 100)),
}
COST = {SMALL: "2 minutes", PAPER: "5 minutes"}


def run(runner: Runner) -> None:
    """Run all trials, with probes while they learn."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw the gap of each method, and accuracy on the first task while others are learned."""
    trials = results.settings(SETTINGS).trials
    groups = [
        group for group in results.groups(trials) if any(probes(run.rows) for run in group.runs)
    ]
    caption = "Mean drop of accuracy on old tasks while the next task is learned."
    figures = bar_figures(groups, "stability_gap", "gap-bars", "stability gap", caption)
    probed = draw_probes([group for group in groups if group.method in _DRAWN])
    if probed:
        figures.append(Figure(probed, "Accuracy on the first task while the others are learned."))
    return ExperimentResult(
        figures,
        tables=[_table(groups)] if groups else [],
        verdicts=_verdicts(groups),
        runs=runs_of(groups),
        missing=results.missing(trials),
    )


def _verdicts(groups: list[Group]) -> list[Verdict]:
    """Judge which methods lose accuracy temporarily, and which for good."""
    by_method = {group.method: group for group in groups}
    replay_groups = [by_method[method] for method in _REPLAY if method in by_method]
    other_groups = [by_method[method] for method in _OTHERS if method in by_method]
    dcl_groups = [by_method[method] for method in ("dcl", "dcl-plus") if method in by_method]
    temporary = [_is_temporary(group) for group in other_groups]
    others = judge_claim(
        "So do gradient constraints, distillation and regularisation",
        _describe(other_groups),
        all(temporary) if temporary else None,
        "" if all(temporary) else _FOR_GOOD,
    )
    if temporary and not any(temporary):
        others = others._replace(verdict="not comparable")
    return [
        judge_claim(
            "Replay loses accuracy on old tasks for a while",
            _describe(replay_groups),
            all(_is_temporary(group) for group in replay_groups) if replay_groups else None,
        ),
        others,
        unpublished("DCL, measured in the same way", _describe(dcl_groups)),
    ]


def _is_temporary(group: Group) -> bool:
    return _mean(group, regained) > _TEMPORARY


def _describe(groups: list[Group]) -> str:
    return "; ".join(f"{group.label}: {_describe_gap(group)}" for group in groups)


def _describe_gap(group: Group) -> str:
    gap = _mean(group, mean_stability_gap)
    if gap <= 0:
        return "does not drop"
    return f"drops by {gap:.2f}, regains {_mean(group, regained):.2f} of it"


def _mean(group: Group, metric: Callable[[Mapping[int, Series]], float]) -> float:
    """Average a metric of probes over the runs of a group; 0 where nothing was lost."""
    values = []
    for run in group.runs:
        try:
            values.append(metric(probes(run.rows)))
        except NotMeasuredError:
            values.append(0.0)
    return sum(values) / len(values)


def _table(groups: list[Group]) -> Table:
    rows = [
        [
            group.label,
            *(summary_cell(group, name) for name in _COLUMNS),
            f"{_mean(group, regained):.3f}",
        ]
        for group in groups
    ]
    note = (
        "Minima over small subsets are biased low. The gap is averaged over old tasks and task switches; a "
        "method that has forgotten everything has no gap. Regained: fraction of the accuracy lost while a "
        "task was learned that is back at its end. DCL+ predicts with averaged weights, which change only "
        "when a task ends."
    )
    return Table("While learning", ["method", *_COLUMNS.values(), "regained"], rows, note)
