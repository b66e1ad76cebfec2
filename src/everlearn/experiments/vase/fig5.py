"""Figure 5: imagination. Can probes trained on imagined images read digits that move?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from everlearn.experiments.framework.pictures import pictures
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.rule import Values, lead_over
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings
from everlearn.experiments.framework.verdicts import format_means, judge_statement, unpublished
from everlearn.experiments.vase.trials import (
    FIRST_TWO,
    SEEDS,
    VASE,
    data_note,
    each_seed,
    paper_seeds,
)
from everlearn.metrics import share
from everlearn.report import Bar, draw_bars
from everlearn.report.experiment import ExperimentResult, Figure
from everlearn.report.verdict import Verdict
from everlearn.rows import TrainingSetRow, VariedLatentsRow, of_kind

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "Imagination of VASE"
SOURCE = "Achille et al. 2018, Figure 5"
CLAIM = (
    "VASE can imagine the items of one environment with the variation of a past one, and probes learn from "
    "that what they have never seen."
)
COST = {SMALL: "half a minute", PAPER: "3 minutes, with MNIST and Fashion-MNIST"}
MEASUREMENT = "vase-fig5"
MEASUREMENTS = (MEASUREMENT,)
# Names of training sets of the probes, as they stand in rows.
STILL = "items that stand still"
MOVING = "items that move"
CODES = "imagined codes"
PRESENT = "imagined images"
PAST = "imagined images, drawn as in the past"
_IMAGINED = (CODES, PRESENT, PAST)
_MIN_GAIN = 15.0  # percent points
_WHY = "accuracy on items that move, percent, mean over seeds"


def _settings(scale: str, items: int, tests: int, still: str, moving: str) -> Settings:
    trial = FIRST_TWO[scale].ablation(VASE, seeds=paper_seeds(scale, SEEDS))
    return Settings((trial,), {"items": items, "tests": tests, "pair": (still, moving)})


SETTINGS = {
    SMALL: _settings(SMALL, 500, 500, "turned-sprites-1", "moving-sprites-1"),
    PAPER: _settings(PAPER, 10_000, 10_000, "mnist", "moving-mnist"),
}


def run(runner: Runner) -> None:
    """Run VASE on two environments if their data are there, and probe what it imagines."""
    settings = runner.settings(SETTINGS)
    if runner.lacks_data(settings.trials):
        return
    runner.run_trials(settings.trials)
    from everlearn.experiments.vase.imagination import probe

    trials = each_seed(settings.trials[0])
    options = dict(settings.options)
    runner.measure(MEASUREMENT, options, lambda: probe(runner, trials, **options), trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw one bar per training set, and show some imagined images."""
    trials = results.settings(SETTINGS).trials
    rows = results.rows(MEASUREMENT)
    percentages = accuracies(of_kind(rows, TrainingSetRow))
    varied = of_kind(rows, VariedLatentsRow)
    counts = "; ".join(f"seed {row['seed']}: {len(row['latents'])}" for row in varied)
    missing = [*results.missing(trials), *results.unmeasured(MEASUREMENT)]
    return ExperimentResult(
        _bars(percentages),
        pictures=pictures(rows),
        verdicts=[
            *judge_imagination(percentages),
            unpublished("Number of latents that imagination varies", counts),
        ],
        runs=runs_of(results.groups(trials)),
        missing=missing,
        note=data_note(missing, results.scale),
        measurements=results.origins(MEASUREMENT),
    )


def accuracies(rows: Sequence[TrainingSetRow]) -> dict[str, dict[int, float]]:
    """Return the accuracy on moving items in percent, by training set and seed."""
    percentages: dict[str, dict[int, float]] = {}
    for row in rows:
        percentage = 100 * float(share(row["correct"], row["total"]))
        percentages.setdefault(row["training_set"], {})[row["seed"]] = percentage
    return percentages


def judge_imagination(percentages: Mapping[str, Values]) -> list[Verdict]:
    """Judge whether each kind of imagination gains 15 points over items that stand still."""
    return [
        judge_statement(
            f"Probes learn 15 points more from {imagined} than from {STILL}",
            _format(percentages, (imagined, STILL, MOVING)),
            [lead_over(percentages.get(imagined, {}), percentages.get(STILL, {}), _MIN_GAIN)],
            _WHY,
        )
        for imagined in _IMAGINED
    ]


def _format(percentages: Mapping[str, Values], names: Sequence[str]) -> str:
    return format_means({name: percentages.get(name, {}) for name in names}, 1)


def _bars(percentages: Mapping[str, Values]) -> list[Figure]:
    values = {name: list(by_seed.values()) for name, by_seed in percentages.items()}
    bars = [
        Bar(name, f"context {number}", sum(found) / len(found), min(found), max(found))
        for number, (name, found) in enumerate(values.items())
    ]
    x = "% of items that move classified correctly"
    caption = (
        "Accuracy of probes on items that move, by training set; only the last bar was trained on such "
        "items. Lines: lowest to highest seed. Imagined: latents used in the past and masked now are drawn "
        "at random. Images are decoded as in the present environment, whose decoder has learned to ignore "
        "masked latents, or as in the past one, and encoded again."
    )
    svg = draw_bars(bars, "vase-fig5", x, f"{x}, by training set") if bars else ""
    return [Figure(svg, caption)] if bars else []
