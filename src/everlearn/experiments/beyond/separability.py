"""Separability: how similar shapes are, and how well the nearest exemplar tells them apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from everlearn.experiments.framework.groups import wilson_line
from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.shared_trials import SEEDS
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings
from everlearn.experiments.framework.verdicts import unpublished
from everlearn.report import Table
from everlearn.report.charts import draw_lines
from everlearn.report.charts.accuracy_lines import Line
from everlearn.report.experiment import ExperimentResult, Figure
from everlearn.report.verdict import Verdict
from everlearn.rows import EqualImagesRow, SeparabilityRow, of_kind

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "Separability and the ceiling"
SOURCE = "ours"
CLAIM = "The more random shapes there are, the more have a near duplicate; exemplars still tell them apart."
SETTINGS = {
    SMALL: Settings(options={"classes": [10, 100, 300], "images": 300}),
    PAPER: Settings(options={"classes": [10, 100, 1000, 5000], "images": 2000}),
}
COST = {SMALL: "seconds", PAPER: "1 minute, on a CPU"}
MEASUREMENT = "separability"
EQUAL = "equal-images"
MEASUREMENTS = (MEASUREMENT, EQUAL)
_OVERLAPS = (0.9, 0.95, 0.97)  # intersection over union
_CEILING = "Accuracy of the nearest exemplar through the true map"


def run(runner: Runner) -> None:
    """Measure the first classes of the stream, and compare test images with exemplars."""
    seed = SEEDS[0]
    options = {**runner.settings(SETTINGS).options, "seed": seed}
    runner.measure(MEASUREMENT, options, lambda: _measure(runner, **options))
    runner.measure(EQUAL, {"seed": seed}, lambda: [_count_equal(runner, seed)])


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw the ceiling of accuracy and the near duplicates against the number of classes."""
    rows = of_kind(results.rows(MEASUREMENT), SeparabilityRow)
    equal = _judge_equal(of_kind(results.rows(EQUAL), EqualImagesRow))
    missing = results.unmeasured(*MEASUREMENTS)
    if not rows:
        return ExperimentResult(verdicts=[unpublished(_CEILING, ""), equal], missing=missing)
    last = rows[-1]
    verdicts = [
        unpublished(
            f"Fraction of {last['classes']:,} classes that overlap another by more than 0.90 (IoU)",
            f"{last['alike'][0]:.2f}",
            "none was published",
        ),
        unpublished(_CEILING, f"{last['correct'] / last['images']:.4f}"),
        equal,
    ]
    return ExperimentResult(
        [_figure(rows)],
        [_table(rows)],
        verdicts=verdicts,
        missing=missing,
        measurements=results.origins(*MEASUREMENTS),
    )


def _judge_equal(rows: list[EqualImagesRow]) -> Verdict:
    """Report how many test images equal an exemplar."""
    ours = "".join(
        f"{row['equal']:,} of {row['total']:,}, and {row['other']:,} that of another class"
        for row in rows
    )
    why = "the pose of an exemplar is one of those of the grid; no accuracy changes by 0.002 for it"
    return unpublished(
        "Test images that equal the exemplar of their class in every pixel", ours, why
    )


def _figure(rows: list[SeparabilityRow]) -> Figure:
    classes = [row["classes"] for row in rows]
    counts = [(row["correct"], row["images"]) for row in rows]
    lines = [
        wilson_line("true map, nearest exemplar", "ceiling", classes, counts),
        *(_duplicates(rows, place) for place in range(len(_OVERLAPS))),
    ]
    svg = draw_lines(
        lines,
        "separability",
        "classes",
        "accuracy, or fraction of classes",
        "ceiling of accuracy and fraction of classes with a near duplicate, by number of classes",
        log=True,
    )
    caption = (
        "Any pose within the ranges of the grid. A learner with another similarity may do better."
    )
    return Figure(svg, caption)


def _duplicates(rows: list[SeparabilityRow], place: int) -> Line:
    """Return the fraction of classes that overlap another by more than one of the limits."""
    fractions = np.array([row["alike"][place] for row in rows])
    classes = np.array([row["classes"] for row in rows])
    label = f"duplicate at IoU above {_OVERLAPS[place]}"
    return Line(label, f"twin-{place}", classes, fractions, fractions, fractions)


def _table(rows: list[SeparabilityRow]) -> Table:
    head = ["classes", *(f"IoU above {overlap}" for overlap in _OVERLAPS), "ceiling"]
    body = [
        [
            f"{row['classes']:,}",
            *(f"{fraction:.3f}" for fraction in row["alike"]),
            f"{row['correct'] / row['images']:.4f}",
        ]
        for row in rows
    ]
    note = "Fractions of the classes that overlap another one by more than each limit."
    return Table("Near duplicates", head, body, note)


def _count_equal(runner: Runner, seed: int) -> EqualImagesRow:
    from everlearn.stream.sprites.separability import count_equal_images

    found = count_equal_images(runner.base.with_changes(seed=seed))
    return {
        "kind": "equal_images",
        "seed": seed,
        "equal": found.same_class,
        "other": found.other_class,
        "total": found.images,
    }


def _measure(
    runner: Runner, classes: list[int], images: int, seed: int
) -> Iterator[SeparabilityRow]:
    from everlearn.stream.sprites.separability import separability

    stream = runner.base.with_changes(seed=seed)
    for count in classes:
        found = separability(stream, count, images)
        alike = [float((found.distances < 1 - overlap).mean()) for overlap in _OVERLAPS]
        yield {
            "kind": "separability",
            "classes": count,
            "correct": found.correct,
            "images": found.images,
            "alike": alike,
        }
