"""How good generated data must be before positive replay of them beats negative replay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings, Trial, at_scale
from everlearn.experiments.framework.verdicts import unpublished
from everlearn.experiments.gnr.modes import FINAL
from everlearn.experiments.gnr.trials import BETAS, NC, NIC, with_beta
from everlearn.report import LoadedRun, Table
from everlearn.report.charts import Dot, draw_dots
from everlearn.report.experiment import ExperimentResult, Figure
from everlearn.rows import TaskRow, of_kind

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "When negative replay pays"
SOURCE = "ours"
CLAIM = (
    "Negative replay is better for data that the classifier does not recognise, positive replay for data "
    "that it does."
)
_NOTE = (
    "Recognised: fraction of the replayed patterns to which the classifier, before the experience, gives "
    "the label they carry; mean over experiences after the first and over both runs. Beta: weight of the "
    "generator's divergence from its prior; where it is small, codes carry the class and the generator "
    "ignores the label."
)


class _TrialPair(NamedTuple):
    """Two trials that differ only in how they replay.

    Attributes:
        style: method whose style the dots have.
    """

    label: str
    style: str
    positive: Trial
    negative: Trial


class _Outcome(NamedTuple):
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


def _trial_pairs(scale: str) -> list[_TrialPair]:
    nc = NC[scale]
    nic = NIC[scale]
    pairs = [
        _TrialPair(
            f"NC, {data.upper()}",
            f"gnr nr-{data}",
            nc.trial(f"pr-{data}"),
            nc.trial(f"nr-{data}"),
        )
        for data in ("gd", "rd", "od")
    ]
    pairs.append(_TrialPair("NIC, GD", "gnr pr-gd", nic.trial("pr-gd"), nic.trial("nr-gd")))
    for beta in BETAS[scale]:
        positive = with_beta(scale, "pr-gd", beta)
        negative = with_beta(scale, "nr-gd", beta)
        pairs.append(_TrialPair(f"NC, beta {beta}", "gnr pr-od", positive, negative))
    return pairs


_PAIRS = {scale: _trial_pairs(scale) for scale in (SMALL, PAPER)}
SETTINGS = {
    scale: Settings(tuple(trial for pair in pairs for trial in (pair.positive, pair.negative)))
    for scale, pairs in _PAIRS.items()
}
COST = {SMALL: "1 minute", PAPER: "3 minutes after gnr-nc and gnr-nic"}


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw the gain of negative replay against the fraction recognised, one dot per seed."""
    pairs = at_scale(_PAIRS, results.scale)
    outcomes = [outcome for pair in pairs for outcome in _outcomes(results, pair)]
    trials = results.settings(SETTINGS).trials
    claim = "Accuracy of negative minus positive replay, by the fraction recognised"
    return ExperimentResult(
        _scatter(outcomes),
        tables=[_table(outcomes)] if outcomes else [],
        verdicts=[unpublished(claim, _mean_gains(outcomes))],
        runs=runs_of(results.groups(trials)),
        missing=results.missing(trials),
    )


def _outcomes(results: ResultsFolder, pair: _TrialPair) -> Iterator[_Outcome]:
    """Yield the outcome of every seed for which both runs measured everything."""
    positive = _runs_by_seed(results, pair.positive)
    negative = _runs_by_seed(results, pair.negative)
    for seed in sorted(positive.keys() & negative.keys()):
        runs = (positive[seed], negative[seed])
        fractions = [value for run in runs if (value := recognised(run)) is not None]
        accuracies = [value for run in runs if (value := run.summary[FINAL]) is not None]
        if len(fractions) == len(accuracies) == len(runs):
            mean_fraction = sum(fractions) / len(fractions)
            yield _Outcome(pair.label, pair.style, seed, mean_fraction, *accuracies)


def _runs_by_seed(results: ResultsFolder, trial: Trial) -> dict[int, LoadedRun]:
    return {run.seed: run for group in results.groups([trial]) for run in group.runs}


def recognised(run: LoadedRun) -> float | None:
    """Return the fraction of replayed patterns that the classifier recognised, mean over experiences."""
    rows = of_kind(run.costs, TaskRow)
    values = [row.get("diagnostics", {}).get("recognised") for row in rows]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _scatter(outcomes: Sequence[_Outcome]) -> list[Figure]:
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
        "Final accuracy on all classes of negative minus that of positive replay; numbers are seeds. "
        "Above 0 negative replay is better."
    )
    return [Figure(svg, caption)]


def _table(outcomes: Sequence[_Outcome]) -> Table:
    rows = [
        [
            one.label,
            str(one.seed),
            *(f"{value:.3f}" for value in (one.recognised, one.positive, one.negative)),
            f"{one.gain:+.3f}",
        ]
        for one in sorted(outcomes, key=lambda one: one.recognised)
    ]
    head = ["stream and data", "seed", "recognised", "positive", "negative", "difference"]
    return Table("Pairs of runs", head, rows, _NOTE)


def _mean_gains(outcomes: Sequence[_Outcome]) -> str:
    """Describe the mean gain where less than 25 % is recognised, and elsewhere."""
    gains = {
        "below 25 %": [one.gain for one in outcomes if one.recognised < 0.25],
        "above": [one.gain for one in outcomes if one.recognised >= 0.25],
    }
    return "; ".join(
        f"{name}: {sum(values) / len(values):+.3f} ({len(values)} pairs)"
        for name, values in gains.items()
        if values
    )
