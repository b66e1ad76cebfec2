"""Figure 4: codes decoded in another environment, and the environment of ambiguous images."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from everlearn.experiments.framework.groups import format_number, line_figures
from everlearn.experiments.framework.pictures import pictures
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.rule import lead_above, lead_below, lead_over
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings, at_scale
from everlearn.experiments.framework.verdicts import format_values, judge_statement
from everlearn.experiments.vase.trials import MOVING_PAIR, SEQUENCE_A, SEQUENCE_B, VASE, data_note
from everlearn.metrics import mean_or_none
from everlearn.metrics.measured import Floats
from everlearn.report import Table
from everlearn.report.charts.accuracy_lines import Line
from everlearn.report.experiment import ExperimentResult, Figure
from everlearn.report.tables.intervals import interval_over_seeds
from everlearn.report.tables.numbers import signed
from everlearn.report.verdict import Verdict
from everlearn.rows import CrossingRow, MixtureRow, of_kind

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "VASE across environments"
SOURCE = "Achille et al. 2018, Figure 4"
CLAIM = (
    "Shared latents mean the same in two environments, and an ambiguous image is assigned to the "
    "environment of the images around it."
)
COST = {SMALL: "seconds after vase-fig3", PAPER: "4 minutes after vase-table1 and vase-fig3"}
CROSSING = "vase-fig4-crossing"
AMBIGUITY = "vase-fig4-ambiguity"
MEASUREMENTS = (CROSSING, AMBIGUITY)
# Fractions of a batch that are images of the first environment or, below 0, of the second.
CONTEXTS = (-0.5, -0.25, 0.0, 0.25, 0.5)
_MAX_RATIO = 0.5  # of the distance to the position in any other image
_LOW = 0.1  # probabilities between which the transition is measured
_HIGH = 0.9
_MAX_WIDTH = 0.3
_EVIDENCE = {"errors": "reconstruction errors", "classifier": "the classifier"}
_DISTANCES = ("within", "across", "any")
_NOTE = (
    "Root mean squared distance between the centres of mass of the decoded and of the original image, as a "
    "fraction of the canvas. Any: to the position in another image, as if nothing were kept."
)

# Sequences, and the two environments between which codes are transferred.
CROSSED = {
    SMALL: ((MOVING_PAIR[SMALL], ("moving-sprites", "moving-sprites-1")),),
    PAPER: (
        (MOVING_PAIR[PAPER], ("moving-fashion-mnist", "inverse-moving-mnist")),
        (SEQUENCE_A[PAPER], ("moving-fashion-mnist", "moving-mnist")),
    ),
}
# The two environments of which images are mixed.
MIXED = {
    SMALL: ("scaled-turned-sprites", "moving-sprites"),
    PAPER: ("mnist", "inverse-fashion-mnist"),
}
# Weights (W,) and, by seed, the probability of the first environment (S, W), by context.
Curves = Mapping[float, tuple[Floats, Floats]]


def _settings(scale: str, **options: object) -> Settings:
    sequences = [*(sequence for sequence, _ in CROSSED[scale]), SEQUENCE_B[scale]]
    trials = {trial.name: trial for trial in (s.ablation(VASE) for s in sequences)}
    return Settings(tuple(trials.values()), options)


SETTINGS = {
    SMALL: _settings(SMALL, images=128, weights=11),
    PAPER: _settings(PAPER, images=2048, weights=41),
}


def run(runner: Runner) -> None:
    """Run all trials if their data are there; transfer codes, and classify mixtures."""
    settings = runner.settings(SETTINGS)
    if runner.lacks_data(settings.trials):
        return
    runner.run_trials(settings.trials)
    from everlearn.experiments.vase.transfer import cross, mix

    crossed = at_scale(CROSSED, runner.scale)
    trials = [sequence.ablation(VASE) for sequence, _ in crossed]
    crossing = {"pairs": [pair for _, pair in crossed], "images": settings.options["images"]}
    runner.measure(CROSSING, crossing, lambda: cross(runner, trials, **crossing), trials)
    trial = at_scale(SEQUENCE_B, runner.scale).ablation(VASE)
    mixing = {
        **settings.options,
        "mixed": at_scale(MIXED, runner.scale),
        "contexts": CONTEXTS,
    }
    runner.measure(AMBIGUITY, mixing, lambda: mix(runner, trial, **mixing), [trial])


def figure(results: ResultsFolder) -> ExperimentResult:
    """Tabulate how far items move, and draw the environments of mixtures."""
    trials = results.settings(SETTINGS).trials
    rows = {name: results.rows(name) for name in MEASUREMENTS}
    crossed = of_kind(rows[CROSSING], CrossingRow)
    mixed = of_kind(rows[AMBIGUITY], MixtureRow)
    curves = {by: probability_curves(mixed, by) for by in _EVIDENCE}
    names = at_scale(MIXED, results.scale)
    pairs = [pair for _, pair in at_scale(CROSSED, results.scale)]
    missing = [*results.missing(trials), *results.unmeasured(*MEASUREMENTS)]
    return ExperimentResult(
        [figure for by in _EVIDENCE for figure in _figures(curves[by], by, names)],
        tables=[_table(crossed)] if crossed else [],
        pictures=[picture for name in MEASUREMENTS for picture in pictures(rows[name])],
        verdicts=[
            *(judge_crossing(crossed, pair) for pair in pairs),
            *judge_mixing(curves["errors"]),
        ],
        runs=runs_of(results.groups(trials)),
        missing=missing,
        note=data_note(missing, results.scale),
        measurements=results.origins(*MEASUREMENTS),
    )


def distance(rows: Sequence[CrossingRow], name: str) -> float | None:
    """Return the root mean squared distance over all images: within, across or any."""
    total = sum(row["total"] for row in rows)
    if not total:
        return None
    sums: list[Any] = list(rows)  # indexed by the name of a distance
    return float(np.sqrt(sum(row[name] for row in sums) / total))


def judge_crossing(rows: Sequence[CrossingRow], pair: Sequence[str]) -> Verdict:
    """Judge whether items keep their position, within half of the distance between any two images."""
    selected = [row for row in rows if {row["source"], row["target"]} == set(pair)]
    distances = {name: distance(selected, name) for name in _DISTANCES}
    closer = {
        seed: _closer([row for row in selected if row["seed"] == seed])
        for seed in {row["seed"] for row in selected}
    }
    return judge_statement(
        f"An item decoded in the other environment keeps its position ({', '.join(pair)})",
        format_values(distances),
        [lead_above(closer, 0.0)],
        "root mean squared distance, fraction of the canvas; at most half of that to any other image",
    )


def _closer(rows: Sequence[CrossingRow]) -> float:
    """Return by how much items stay within half of the distance between any two images."""
    return _MAX_RATIO * (distance(rows, "any") or 0.0) - (distance(rows, "across") or 0.0)


def _table(rows: Sequence[CrossingRow]) -> Table:
    body = [
        [
            str(row["seed"]),
            f"{row['source']} to {row['target']}",
            *(format_number(distance([row], name)) for name in _DISTANCES),
        ]
        for row in rows
    ]
    head = ["seed", "environments", "decoded in its own", "decoded in the other", "any"]
    return Table("Distances of items", head, body, _NOTE)


def probability_curves(rows: Iterable[MixtureRow], by: str) -> Curves:
    """Return the probability of the first environment by weight, for every seed and context."""
    by_context: dict[float, list[MixtureRow]] = {}
    for row in rows:
        if row["by"] == by:
            by_context.setdefault(row["context"], []).append(row)
    return {
        context: (np.array(seeds[0]["weights"]), np.stack([_probability(row) for row in seeds]))
        for context, seeds in sorted(by_context.items())
    }


def _probability(row: MixtureRow) -> Floats:
    """Return the probability of the first environment, given that it is one of the two, (W,)."""
    first = np.array(row["first"], float)
    total = first + np.array(row["second"], float)
    return np.where(total > 0, first / np.where(total > 0, total, 1), 0.5)


def _figures(curves: Curves, by: str, names: Sequence[str]) -> list[Figure]:
    first, second = names
    lines = [
        _line(_context_label(context, first, second), f"context {number}", weights, values)
        for number, (context, (weights, values)) in enumerate(curves.items())
    ]
    caption = (
        f"Probability, by {_EVIDENCE[by]}, that a batch is from {first} and not from {second}. Its images "
        "are mixtures of both, except for the fraction given."
    )
    x = f"weight of {first} in a mixture"
    y = f"of {first}, not of {second}"
    return line_figures(lines, f"vase-fig4-{by}", x, y, caption)


def _line(label: str, style: str, weights: Floats, values: Floats) -> Line:
    line = Line(label, style, weights, *interval_over_seeds(values))
    return line._replace(low=line.low.clip(0, 1), high=line.high.clip(0, 1))


def _context_label(context: float, first: str, second: str) -> str:
    if not context:
        return "mixtures alone"
    return f"{abs(context):.0%} {first if context > 0 else second}"


def crossing_weight(weights: Floats, probability: Floats, level: float = 0.5) -> float:
    """Return the weight from which the probability (W,) stays above a level: 0 if always, 1 if never."""
    below = np.flatnonzero(probability < level)
    if not len(below):
        return 0.0
    last = int(below[-1])
    if last == len(weights) - 1:
        return 1.0
    fraction = (level - probability[last]) / (probability[last + 1] - probability[last])
    return float(weights[last] + fraction * (weights[last + 1] - weights[last]))


def judge_mixing(curves: Curves) -> list[Verdict]:
    """Judge whether mixtures are assigned abruptly, and sooner to the environment around them."""
    weights, alone = curves.get(0.0, (np.empty(0), np.empty((0, 0))))
    widths = {place: transition_width(weights, values) for place, values in enumerate(alone)}
    crossings = {
        context: {place: crossing_weight(weights, seed) for place, seed in enumerate(values)}
        for context, (weights, values) in curves.items()
    }
    means = {
        signed(context, 2): mean_or_none(found.values()) for context, found in crossings.items()
    }
    return [
        judge_statement(
            "Mixtures are assigned to one environment or the other",
            f"from 0.1 to 0.9 within {format_number(mean_or_none(widths.values()), 2)} of the weight",
            [lead_below(widths, _MAX_WIDTH)],
            "by errors, mixtures alone; within 0.3 at most",
        ),
        judge_statement(
            "They are assigned sooner to the environment of the images around them",
            format_values(means, 2),
            [lead_over(less, more) for less, more in pairwise(crossings.values())],
            "weight at which both are equally likely, by the fraction of a batch that is from the first "
            "environment or, below 0, from the second",
        ),
    ]


def transition_width(weights: Floats, probability: Floats) -> float:
    """Return the difference of the weights at probabilities 0.1 and 0.9; 1 if they are not reached."""
    if probability[0] > _LOW or probability[-1] < _HIGH:
        return 1.0
    return crossing_weight(weights, probability, _HIGH) - crossing_weight(
        weights, probability, _LOW
    )
