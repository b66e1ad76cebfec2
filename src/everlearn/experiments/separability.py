"""Separability: how much alike shapes are, and how well the nearest exemplar tells them apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from everlearn.experiments.found import Found
from everlearn.experiments.read import points
from everlearn.experiments.trial import PAPER, SMALL, Settings
from everlearn.experiments.verdicts import own
from everlearn.report import Table
from everlearn.report.chapter import Chapter, Figure
from everlearn.report.chart import draw_lines
from everlearn.report.lines import Line
from everlearn.results import Row

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "Separability and the ceiling", "ours"
CLAIM = "Random shapes repeat, the more of them the more; each is still told by its exemplar."
SETTINGS = {
    SMALL: Settings(numbers={"classes": [10, 100, 300], "images": 300}),
    PAPER: Settings(numbers={"classes": [10, 100, 1000, 5000], "images": 2000}),
}
COST = {SMALL: "seconds", PAPER: "1 minute, on a CPU"}
PART = "separability"
PARTS = (PART,)
_ALIKE = (0.9, 0.95, 0.97)
_CEILING = "true map, nearest exemplar"


def run(lab: Lab) -> None:
    """Measure the first classes of the stream."""
    numbers = dict(lab.settings(SETTINGS).numbers)
    lab.measure(PART, numbers, lambda: _measure(lab, **numbers))


def figure(found: Found) -> Chapter:
    """The ceiling against the number of classes, and how many have a near twin."""
    rows = found.rows(PART)
    if not rows:
        return Chapter(
            [], [], [], [own("The nearest exemplar through the true map", "")], [], [PART]
        )
    counts = [row["classes"] for row in rows]
    best = points(_CEILING, "ceiling", counts, [(row["right"], row["images"]) for row in rows])
    words = (
        "the ceiling of accuracy, and shares of classes with a twin, against the number of classes"
    )
    lines = [best, *(_twins(rows, place) for place in range(len(_ALIKE)))]
    svg = draw_lines(
        lines, "separability", "classes", "accuracy, or share of the classes", words, log=True
    )
    last = rows[-1]
    verdicts = [
        own(
            f"Share of {last['classes']:,} classes with another at IoU above 0.90",
            f"{last['alike'][0]:.2f}",
            "none was published; of 5,000 shapes of the original package we counted 0.68, on pixels",
        ),
        own("The nearest exemplar through the true map", f"{last['right'] / last['images']:.4f}"),
    ]  # fmt: skip
    figures = [
        Figure(
            svg,
            "Any pose within the ranges of the grid. A learner that compares otherwise may do better.",
        )
    ]
    return Chapter(figures, [_table(rows)], [], verdicts, [], [], "", found.origins(PART))


def _twins(rows: list[Row], place: int) -> Line:
    """The share of classes that have another so much alike."""
    shares = np.array([row["alike"][place] for row in rows])
    x = np.array([row["classes"] for row in rows])
    return Line(f"twin at IoU above {_ALIKE[place]}", f"twin-{place}", x, shares, shares, shares)


def _table(rows: list[Row]) -> Table:
    head = ["classes", *(f"IoU above {alike}" for alike in _ALIKE), "ceiling"]
    body = [
        [
            f"{row['classes']:,}",
            *(f"{share:.3f}" for share in row["alike"]),
            f"{row['right'] / row['images']:.4f}",
        ]
        for row in rows
    ]
    return Table("Twins", head, body, "Shares of the classes that have another so much alike.")


def _measure(lab: Lab, classes: list[int], images: int) -> Iterator[Row]:
    from everlearn.stream.separability import separability

    for count in classes:
        found = separability(lab.base, count, images)
        alike = [float((found.distances < 1 - limit).mean()) for limit in _ALIKE]
        yield {
            "kind": "separability",
            "classes": count,
            "right": found.right,
            "images": found.images,
            "alike": alike,
        }
