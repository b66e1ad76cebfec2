"""Figure 2: shapes and factors of the stream, which are the same on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from everlearn.experiments.framework.pictures import picture_row, pictures
from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings
from everlearn.experiments.framework.verdicts import unpublished
from everlearn.report.experiment import ExperimentResult
from everlearn.rows import DigestRow, MeasurementRow, of_kind

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner
    from everlearn.stream import Task

TITLE = "Shapes and factors"
SOURCE = "Figure 2"
CLAIM = "Shapes never run out, and occur in every combination of colour, scale, orientation and position."
SETTINGS = {
    SMALL: Settings(options={"shapes": 48, "task": 3}),
    PAPER: Settings(options={"shapes": 96, "task": 1_000_000}),
}
COST = {SMALL: "seconds", PAPER: "seconds"}
MEASUREMENT = "fig2-shapes"
MEASUREMENTS = (MEASUREMENT,)
COLORS = ("white", "red", "orange", "yellow", "lime", "cyan", "blue", "purple", "pink")
_NOTE = (
    "The digest is of the labels and factors of a distant task. It was computed twice, with tasks made in "
    "another order, and is the same on every machine. The original package takes no seed, so its shapes "
    "cannot be made again."
)


def run(runner: Runner) -> None:
    """Draw contact sheets, and hash a distant task."""
    options = dict(runner.settings(SETTINGS).options)
    runner.measure(MEASUREMENT, options, lambda: _measure(runner, **options))


def figure(results: ResultsFolder) -> ExperimentResult:
    """Show the contact sheets and the hash."""
    rows = results.rows(MEASUREMENT)
    digests = of_kind(rows, DigestRow)
    ours = "; ".join(f"task {row['task'] + 1:,}: tables {row['tables'][:12]}" for row in digests)
    repeatable = all(row["repeatable"] for row in digests)
    verdict = unpublished(
        "A distant task depends on the seed alone, not on the order in which tasks are made",
        ours + ("" if repeatable else ", NOT the same"),
        "the original package takes no seed",
    )
    return ExperimentResult(
        pictures=pictures(rows),
        verdicts=[verdict],
        missing=results.unmeasured(MEASUREMENT),
        note=_NOTE,
        measurements=results.origins(MEASUREMENT),
    )


def _measure(runner: Runner, shapes: int, task: int) -> Iterator[MeasurementRow]:
    from dataclasses import replace

    from everlearn.stream import preview
    from everlearn.stream.preview.files import to_png

    stream = runner.base.with_changes(tasks=None)
    coloured = stream.with_changes(canvas=replace(stream.canvas, channels=3, colors=COLORS))
    sheets = {
        "Shapes of the first classes.": preview.shape_sheet(stream, shapes, 12),
        "Training images of the first task, with their factors.": preview.factor_sheet(stream[0]),
        "One shape, with one factor varied at a time.": preview.sweep_sheet(coloured),
    }
    for caption, sheet in sheets.items():
        yield picture_row(caption, to_png(sheet))
    first = _hash_tables(stream[task])
    stream[0], stream[task + 1]  # other tasks, to change the order
    second = _hash_tables(stream.from_json(stream.to_json())[task])
    yield {"kind": "digest", "task": task, "tables": first, "repeatable": first == second}


def _hash_tables(task: Task) -> str:
    """Return the SHA-256 of the labels and factors of a task."""
    factors = task.train.factors
    assert factors is not None  # sprites have factors
    arrays = [task.train.labels, *factors]
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()
