"""The fraction of replayed data in a batch: with real data more is better, with poor data less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from everlearn.experiments.framework.groups import line_figures, wilson_line
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.rule import Values, lead_above
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.framework.verdicts import format_values, judge_statement
from everlearn.experiments.gnr.modes import FINAL, describe_mean_shift
from everlearn.experiments.gnr.trials import (
    FRACTION_MODES,
    FRACTIONS,
    LABELS,
    NC,
    with_fraction,
    with_one_seed,
)
from everlearn.metrics import all_classes
from everlearn.report import Group
from everlearn.report.charts.accuracy_lines import Line
from everlearn.report.experiment import ExperimentResult
from everlearn.report.verdict import Verdict

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "How much to replay"
SOURCE = "Graffieti et al. 2022"
CLAIM = (
    "Real data are best as half of a batch; poor data as 10 to 30 %, and more of them does harm."
)


def _trials(scale: str) -> tuple[Trial, ...]:
    sweep = [
        with_fraction(scale, mode, fraction)
        for mode in FRACTION_MODES[scale]
        for fraction in FRACTIONS[scale]
    ]
    return (with_one_seed(NC[scale].trial("none")), *sweep)


SETTINGS = {scale: Settings(_trials(scale)) for scale in (SMALL, PAPER)}
COST = {SMALL: "1 minute", PAPER: "4 minutes, with the extractor"}
_LARGEST_FOR_POOR_DATA = 0.3
# The groups of one mode by the fraction of replayed data; 0 is no replay.
Sweep = Mapping[float, Group]


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw final accuracy against the replayed fraction, one line per mode."""
    trials = results.settings(SETTINGS).trials
    modes = dict.fromkeys(trial.settings["replay_mode"] for trial in trials[1:])
    sweeps = {mode: _sweep(results, trials, mode) for mode in modes}
    lines = [_line(mode, sweep) for mode, sweep in sweeps.items() if len(sweep) > 1]
    caption = "Accuracy on all classes at the end, new classes, one seed; 0 is no replay."
    runs = runs_of(results.groups(trials))
    return ExperimentResult(
        line_figures(lines, "gnr-share", "% of a batch", "accuracy", caption),
        verdicts=[_judge(mode, sweep) for mode, sweep in sweeps.items()],
        runs=runs,
        missing=results.missing(trials),
        note=describe_mean_shift(runs),
    )


def _sweep(results: ResultsFolder, trials: tuple[Trial, ...], mode: str) -> Sweep:
    by_fraction = {0.0: trials[0]} | {
        trial.settings["replay_fraction"]: trial
        for trial in trials
        if trial.settings["replay_mode"] == mode
    }
    return {
        fraction: group
        for fraction, trial in by_fraction.items()
        for group in results.groups([trial])
        if group.mean(FINAL) is not None
    }


def _line(mode: str, sweep: Sweep) -> Line:
    found = [all_classes(group.runs[0].rows) for group in sweep.values()]
    counts = [(int(tests.correct[-1]), int(tests.total[-1])) for tests in found]
    percentages = [100 * fraction for fraction in sweep]
    return wilson_line(LABELS[mode], f"gnr {mode}", percentages, counts)


def _judge(mode: str, sweep: Sweep) -> Verdict:
    """Judge at which fraction above 0 a mode is best; this takes at least two fractions."""
    is_poor = not mode.endswith("od")
    claim = f"{LABELS[mode]} is best {'at 30 % or less' if is_poor else 'above 30 %'}"
    replayed = {fraction: group for fraction, group in sweep.items() if fraction}
    means = {f"{round(100 * f)} %": group.mean(FINAL) for f, group in replayed.items()}
    little = _best([g for f, g in replayed.items() if f <= _LARGEST_FOR_POOR_DATA])
    much = _best([g for f, g in replayed.items() if f > _LARGEST_FOR_POOR_DATA])
    sign = 1 if is_poor else -1
    gains = {seed: sign * (little[seed] - much[seed]) for seed in little.keys() & much.keys()}
    why = "accuracy on all classes at the end"
    return judge_statement(claim, format_values(means), [lead_above(gains, 0.0)], why)


def _best(groups: Sequence[Group]) -> Values:
    """Return the highest final accuracy of all groups, by seed."""
    values = [group.values(FINAL) for group in groups]
    seeds = {seed for found in values for seed in found}
    return {seed: max(found[seed] for found in values if seed in found) for seed in seeds}
