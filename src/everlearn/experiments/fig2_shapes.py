"""Shapes and factors: what the stream is made of, and that it is the same everywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from everlearn.experiments.found import Found
from everlearn.experiments.pictures import picture_row, pictures
from everlearn.experiments.trial import PAPER, SMALL, Settings
from everlearn.experiments.verdicts import own
from everlearn.report.chapter import Chapter
from everlearn.results import Row

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab
    from everlearn.stream import Task

TITLE, SOURCE = "Shapes and factors", "Figure 2"
CLAIM = (
    "Shapes are drawn without end, in every combination of colour, scale, orientation and position."
)
SETTINGS = {
    SMALL: Settings(numbers={"shapes": 48, "task": 3}),
    PAPER: Settings(numbers={"shapes": 96, "task": 1_000_000}),
}
COST = {SMALL: "seconds", PAPER: "seconds"}
PART = "fig2-shapes"
PARTS = (PART,)
COLORS = ("white", "red", "orange", "yellow", "lime", "cyan", "blue", "purple", "pink")


def run(lab: Lab) -> None:
    """Draw sheets, and sum up what was drawn."""
    numbers = dict(lab.settings(SETTINGS).numbers)
    lab.measure(PART, numbers, lambda: _draw(lab, **numbers))


def figure(found: Found) -> Chapter:
    """The sheets."""
    rows = found.rows(PART)
    sums = [row for row in rows if row["kind"] == "digest"]
    ours = "; ".join(f"task {row['task']:,}: tables {row['tables'][:12]}" for row in sums)
    same = all(row["again"] for row in sums)
    words = "A far task follows from the seed alone, drawn twice and in another order"
    verdicts = [
        own(words, ours + ("" if same else ", NOT the same"), "the original package takes no seed")
    ]
    missing = [] if rows else [PART]
    return Chapter([], [], pictures(rows), verdicts, [], missing, _NOTE, found.origins(PART))


_NOTE = (
    "The digest is of the labels and factors of a far task, drawn twice, in another order; it is the same "
    "on every machine. The original package takes no seed, so its shapes cannot be drawn again."
)


def _draw(lab: Lab, shapes: int, task: int) -> Iterator[Row]:
    from dataclasses import replace

    from everlearn import sheets
    from everlearn.sheets.files import to_png

    stream = lab.base.with_changes(tasks=None)
    colorful = stream.with_changes(canvas=replace(stream.canvas, channels=3, colors=COLORS))
    yield picture_row(
        "Shapes of the first classes.", to_png(sheets.shape_sheet(stream, shapes, 12))
    )
    yield picture_row(
        "Training images of the first task, with their factors.",
        to_png(sheets.factor_sheet(stream[0])),
    )
    yield picture_row("One shape under one factor at a time.", to_png(sheets.sweep_sheet(colorful)))
    first = _digest(stream[task])
    stream[0], stream[task + 1]  # any order gives the same
    again = _digest(stream.from_json(stream.to_json())[task])
    yield {"kind": "digest", "task": task, "tables": first, "again": first == again}


def _digest(task: Task) -> str:
    """Sum up the labels and factors of a task."""
    factors = task.train.factors
    assert factors is not None  # sprites have them
    parts = [task.train.labels, *factors]
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()
