"""Balance: new classes win where their weight vectors are longer than those of old classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from everlearn.experiments.framework.groups import format_number, line_figures
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.framework.verdicts import unpublished
from everlearn.experiments.gnr.modes import FINAL, describe_mean_shift, style_by_mode
from everlearn.experiments.gnr.trials import (
    LABELS,
    MODES,
    NC,
    RATE_MODES,
    RATES,
    with_one_seed,
    with_rate,
)
from everlearn.report import Group, LoadedRun, Table
from everlearn.report.charts.accuracy_lines import Line
from everlearn.report.experiment import ExperimentResult
from everlearn.report.tables.intervals import interval_over_seeds
from everlearn.rows import TaskRow, of_kind

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "The balance of class weights"
SOURCE = "ours"
CLAIM = (
    "CWR* equalises the means of class weights, not their norms: the learning rate of the head, more than "
    "the kind of replay, decides which mode is best."
)


def _sweep(scale: str) -> list[Trial]:
    """Return trials of some modes with several learning rates, among them the default one."""
    return [
        trial
        for mode in RATE_MODES[scale]
        for trial in (
            with_one_seed(NC[scale].trial(mode)),
            *(with_rate(scale, mode, learning_rate) for learning_rate in RATES[scale]),
        )
    ]


def _trials(scale: str) -> tuple[Trial, ...]:
    defaults = {trial.name: trial for trial in (NC[scale].trial(mode) for mode in MODES)}
    return tuple({**{trial.name: trial for trial in _sweep(scale)}, **defaults}.values())


SETTINGS = {scale: Settings(_trials(scale)) for scale in (SMALL, PAPER)}
COST = {SMALL: "seconds after gnr-nc", PAPER: "3 minutes after gnr-nc"}
_NOTE = (
    "Ratio: mean norm of the weights of an experience's classes over that of all other classes, mean over "
    "the experiences after the first. One seed."
)


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw the ratio of norms after every experience, and tabulate it by learning rate."""
    trials = results.settings(SETTINGS).trials
    defaults = {f"gnr-nc-{mode}" for mode in MODES}
    groups = style_by_mode(results.groups(trial for trial in trials if trial.name in defaults))
    lines = [line for group in groups for line in _lines(group)]
    caption = "Norm of the weights of new classes over that of old classes, after each experience."
    sweep = [
        (trial, group)
        for trial in _by_rate(trials)
        for group in results.groups([with_one_seed(trial)])
    ]
    runs = runs_of(results.groups(trials))
    return ExperimentResult(
        line_figures(lines, "gnr-balance", "experiences", "ratio of norms", caption, top=None),
        tables=[_table(sweep)] if sweep else [],
        verdicts=[unpublished("Best mode at each learning rate of the head", _best_modes(sweep))],
        runs=runs,
        missing=results.missing(trials),
        note=describe_mean_shift(runs),
    )


def _by_rate(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials of the sweep, ordered by learning rate."""
    modes = {
        trial.settings["replay_mode"] for trial in trials if trial.name.startswith("gnr-rate-")
    }
    sweep = [trial for trial in trials if trial.settings["replay_mode"] in modes]
    return sorted(sweep, key=lambda trial: float(trial.settings["later_head_learning_rate"]))


def norm_ratios(run: LoadedRun) -> NDArray[np.float64]:
    """Return new over old norm after every experience but the first, (K,); NaN where unknown."""
    rows = [row for row in of_kind(run.costs, TaskRow) if row["learned"]]
    diagnostics = [row.get("diagnostics", {}) for row in rows]
    pairs = [(values.get("new_norm"), values.get("old_norm")) for values in diagnostics]
    return np.array([new / old if new is not None and old else np.nan for new, old in pairs])


def _lines(group: Group) -> list[Line]:
    """Return the line of a group; none where a seed lacks a ratio."""
    seeds = [norm_ratios(run) for run in group.runs]
    if not len(seeds[0]) or len({len(values) for values in seeds}) > 1:
        return []
    values = np.stack(seeds)
    if np.isnan(values).any():
        return []
    x = np.arange(2, values.shape[1] + 2)
    return [Line(group.label, group.method, x, *interval_over_seeds(values))]


def _table(sweep: Sequence[tuple[Trial, Group]]) -> Table:
    rows = [
        [
            LABELS[trial.settings["replay_mode"]],
            f"{trial.settings['later_head_learning_rate']:g}",
            format_number(group.mean(FINAL)),
            format_number(_mean_ratio(group)),
        ]
        for trial, group in sweep
    ]
    head = ["mode", "later learning rate of the head", "accuracy at the end", "ratio of norms"]
    return Table("Learning rates of the head", head, rows, _NOTE)


def _mean_ratio(group: Group) -> float | None:
    values = norm_ratios(group.runs[0])
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _best_modes(sweep: Sequence[tuple[Trial, Group]]) -> str:
    """Name the mode with the highest final accuracy at each learning rate."""
    by_rate: dict[float, dict[str, float]] = {}
    for trial, group in sweep:
        accuracy = group.mean(FINAL)
        if accuracy is not None:
            modes = by_rate.setdefault(trial.settings["later_head_learning_rate"], {})
            modes[LABELS[trial.settings["replay_mode"]]] = accuracy
    best = {rate: max(modes, key=lambda mode: modes[mode]) for rate, modes in by_rate.items()}
    return "; ".join(f"{rate:g}: {mode}, {by_rate[rate][mode]:.3f}" for rate, mode in best.items())
