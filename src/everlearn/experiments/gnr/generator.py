"""How good generated data must be before positive replay of them beats negative replay."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from everlearn.experiments.framework.results_folder import ResultsFolder, first_tasks, runs_of
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings, Trial, at_scale
from everlearn.experiments.framework.verdicts import unpublished
from everlearn.experiments.gnr.modes import FINAL, describe_mean_shift
from everlearn.experiments.gnr.trials import (
    BETAS,
    FRACTION_MODES,
    FRACTIONS,
    GNR_BY_MODE,
    NC,
    NIC,
    RATE_MODES,
    RATES,
    with_beta,
    with_fraction,
    with_rate,
)
from everlearn.report import LoadedRun, Table
from everlearn.report.charts import Dot, draw_dots
from everlearn.report.experiment import ExperimentResult, Figure
from everlearn.report.tables.numbers import fraction, signed
from everlearn.rows import TaskRow, of_kind

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "When negative replay pays"
SOURCE = "ours"
CLAIM = (
    "Negative replay is better for data that the classifier does not recognise, positive replay for data "
    "that it does: a rule found in these pairs, not tested on others."
)
_NOTE = (
    "Recognised: fraction of the replayed patterns to which the classifier, before the experience, gives "
    "the label they carry; mean over experiences after the first and over both runs. Beta: weight of the "
    "generator's divergence from its prior; where it is small, codes carry the class and the generator "
    "ignores the label. All pairs of runs are listed that differ only in replaying as positives or as "
    "negatives: the same data, settings, stream and seed. Runs of different lengths are compared after as "
    "many tasks as the shorter one learned. Accuracy is on all classes at the end, and on the paper's "
    "stream on all tasks learned by then."
)
_CUT = 0.25  # fraction recognised
_POST_HOC = (
    "the cut at a quarter was chosen after seeing these pairs, so only new pairs can test it"
)
_STREAMS = {"nic": "NIC", "long": "paper's stream"}  # where it is not NC, by the name of a trial
_VARIED = {"beta": "beta ", "rate": "rate ", "share": ""}  # what a trial varies, by its name


class _TrialPair(NamedTuple):
    """Two trials that differ only in whether they replay as positives or as negatives.

    Attributes:
        style: method whose style the dots have.
    """

    label: str
    style: str
    positive: Trial
    negative: Trial


class Agreeing(NamedTuple):
    """How many pairs of runs agree with the rule, and how many there are."""

    agree: int
    pairs: int


class Outcome(NamedTuple):
    """Final accuracies of both trials for one seed, and the fraction recognised."""

    label: str
    style: str
    seed: int
    recognised: float
    positive: float
    negative: float

    @property
    def gain(self) -> float:
        """The accuracy of negative minus that of positive replay."""
        return self.negative - self.positive


def _all_trials(scale: str) -> list[Trial]:
    """Return the trials of all experiments on negative replay, whatever they vary."""
    protocols = [
        protocol[scale].trial(mode) for protocol in (NC, NIC) for mode in protocol[scale].modes
    ]
    betas = [with_beta(scale, mode, beta) for mode in ("pr-gd", "nr-gd") for beta in BETAS[scale]]
    rates = [with_rate(scale, mode, rate) for mode in RATE_MODES[scale] for rate in RATES[scale]]
    shares = [
        with_fraction(scale, mode, share)
        for mode in FRACTION_MODES[scale]
        for share in FRACTIONS[scale]
    ]
    return [*protocols, *betas, *rates, *shares, *GNR_BY_MODE[scale]]


def _trial_pairs(scale: str) -> list[_TrialPair]:
    """Pair all trials with equal settings, stream and data that replay as positives and as negatives.

    How many tasks they learn may differ: a shorter run is the start of a longer one.
    """
    found: dict[str, dict[str, Trial]] = {}
    for trial in _all_trials(scale):
        role, _, data = trial.settings["replay_mode"].partition("-")
        settings = {**trial.settings, "replay_mode": data}
        key = json.dumps([settings, dict(trial.stream), dict(trial.plan), trial.base, trial.seeds])
        found.setdefault(key, {}).setdefault(role, trial)
    return [_pair(roles["pr"], roles["nr"]) for roles in found.values() if {"pr", "nr"} <= {*roles}]


def _pair(positive: Trial, negative: Trial) -> _TrialPair:
    data = negative.settings["replay_mode"].removeprefix("nr-")
    kind = negative.name.split("-")[1]
    stream = _STREAMS.get(kind, "NC")
    value = negative.label.partition(", ")[2]
    variant = f", {_VARIED[kind]}{value}" if kind in _VARIED else ""
    style = {"NC": f"gnr nr-{data}", "NIC": f"gnr pr-{data}"}.get(stream, "gnr")
    return _TrialPair(f"{stream}, {data.upper()}{variant}", style, positive, negative)


_PAIRS = {scale: _trial_pairs(scale) for scale in (SMALL, PAPER)}
SETTINGS = {
    scale: Settings(tuple(trial for pair in pairs for trial in (pair.positive, pair.negative)))
    for scale, pairs in _PAIRS.items()
}
COST = {SMALL: "1 minute", PAPER: "3 minutes after the other experiments on negative replay"}


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw the gain of negative replay against the fraction recognised, one dot per seed."""
    outcomes = all_outcomes(results)
    trials = results.settings(SETTINGS).trials
    statement = (
        "Negative replay ends higher where less than a quarter is recognised, and only there"
    )
    runs = runs_of(results.groups(trials))
    return ExperimentResult(
        _scatter(outcomes),
        tables=[_table(outcomes)] if outcomes else [],
        verdicts=[unpublished(statement, _describe_agreement(outcomes), _POST_HOC)],
        runs=runs,
        missing=results.missing(trials),
        note=describe_mean_shift(runs),
    )


def all_outcomes(results: ResultsFolder) -> list[Outcome]:
    """Return the outcomes of all pairs of runs that were measured."""
    pairs = at_scale(_PAIRS, results.scale)
    return [outcome for pair in pairs for outcome in _outcomes(results, pair)]


def _outcomes(results: ResultsFolder, pair: _TrialPair) -> Iterator[Outcome]:
    """Yield the outcome of every seed for which both runs measured everything."""
    positive = _runs_by_seed(results, pair.positive)
    negative = _runs_by_seed(results, pair.negative)
    for seed in sorted(positive.keys() & negative.keys()):
        runs = _after_as_many_tasks(positive[seed], negative[seed])
        fractions = [value for run in runs if (value := recognised(run)) is not None]
        accuracies = [value for run in runs if (value := _accuracy(run)) is not None]
        if len(fractions) == len(accuracies) == len(runs):
            mean_fraction = sum(fractions) / len(fractions)
            yield Outcome(pair.label, pair.style, seed, mean_fraction, *accuracies)


def _after_as_many_tasks(*runs: LoadedRun) -> list[LoadedRun]:
    """Return runs as they were after as many tasks as the shortest of them learned."""
    tasks = min(run.stream["tasks"] for run in runs)
    return [first_tasks(run, tasks) for run in runs]


def _accuracy(run: LoadedRun) -> float | None:
    """Return the accuracy at the end on all classes, or on all tasks where that was not tested."""
    found: float | None = run.summary[FINAL]
    return run.summary["average_accuracy"] if found is None else found


def _runs_by_seed(results: ResultsFolder, trial: Trial) -> dict[int, LoadedRun]:
    return {run.seed: run for group in results.groups([trial]) for run in group.runs}


def recognised(run: LoadedRun) -> float | None:
    """Return the fraction of replayed patterns that the classifier recognised, mean over experiences."""
    rows = of_kind(run.costs, TaskRow)
    values = [row.get("diagnostics", {}).get("recognised") for row in rows]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _scatter(outcomes: Sequence[Outcome]) -> list[Figure]:
    if not outcomes:
        return []
    dots = [
        Dot(f"{one.label}, {one.seed}", one.style, 100 * one.recognised, 100 * one.gain)
        for one in outcomes
    ]
    x = "% of the replayed data is recognised"
    y = "gain of negative replay, points"
    svg = draw_dots(dots, "gnr-generator", x, y, f"{y}, against the % recognised", log=False)
    caption = (
        "Final accuracy of negative minus that of positive replay; numbers are seeds. "
        "Above 0 negative replay is better."
    )
    return [Figure(svg, caption)]


def _table(outcomes: Sequence[Outcome]) -> Table:
    rows = [
        [
            one.label,
            str(one.seed),
            *(fraction(value) for value in (one.recognised, one.positive, one.negative)),
            signed(one.gain),
        ]
        for one in sorted(outcomes, key=lambda one: one.recognised)
    ]
    head = ["stream and data", "seed", "recognised", "positive", "negative", "difference"]
    note = f"{_NOTE} A cut at a quarter agrees {_describe_agreement(outcomes)}."
    return Table("Pairs of runs", head, rows, note)


def count_agreeing(outcomes: Sequence[Outcome]) -> tuple[Agreeing, Agreeing]:
    """Count the pairs below and above the cut in which the predicted kind of replay ends higher."""
    below = [one.gain > 0 for one in outcomes if one.recognised < _CUT]
    above = [one.gain <= 0 for one in outcomes if one.recognised >= _CUT]
    return Agreeing(sum(below), len(below)), Agreeing(sum(above), len(above))


def _describe_agreement(outcomes: Sequence[Outcome]) -> str:
    if not outcomes:
        return ""
    below, above = count_agreeing(outcomes)
    return (
        f"in {below.agree + above.agree} of {len(outcomes)} pairs: {below.agree} of {below.pairs} below "
        f"the cut, {above.agree} of {above.pairs} above it"
    )
