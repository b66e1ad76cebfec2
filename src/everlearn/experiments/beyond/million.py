"""A million classes: one exemplar each, and an exact nearest-neighbour search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import MEASURED
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings
from everlearn.experiments.framework.verdicts import unpublished
from everlearn.metrics import share, wilson
from everlearn.report import Table
from everlearn.report.experiment import ExperimentResult
from everlearn.report.tables.numbers import byte_size
from everlearn.rows import MillionRow, of_kind

if TYPE_CHECKING:
    from everlearn.evaluation.one_shot import QueryBatch
    from everlearn.experiments.framework.runner import Runner
    from everlearn.memory import SearchResult

TITLE = "A million classes"
SOURCE = "ours"
CLAIM = "Only the memory of exemplars grows with the number of classes; a new class needs no training step."
SETTINGS = {
    SMALL: Settings((MEASURED[SMALL],), {"classes": 1000, "questions": 200}),
    PAPER: Settings((MEASURED[PAPER],), {"classes": 1_000_000, "questions": 10_000}),
}
COST = {SMALL: "seconds after the run", PAPER: "2 minutes after the run"}
MEASUREMENT = "million"
MEASUREMENTS = (MEASUREMENT,)


def run(runner: Runner) -> None:
    """Fill a memory with new classes, and classify images of them."""
    settings = runner.settings(SETTINGS)
    runner.run_trials(settings.trials)
    options = dict(settings.options)
    runner.measure(MEASUREMENT, options, lambda: _measure(runner, **options), settings.trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Tabulate accuracy, accuracy with the true map, speed and memory."""
    rows = of_kind(results.rows(MEASUREMENT), MillionRow)
    settings = results.settings(SETTINGS)
    ours = ", ".join(f"{row['factors']} {row['correct'] / row['total']:.3f}" for row in rows)
    claim = f"One-shot accuracy among {settings.options['classes']:,} classes"
    return ExperimentResult(
        tables=[_table(rows)] if rows else [],
        verdicts=[unpublished(claim, ours)],
        runs=runs_of(results.groups(settings.trials)),
        missing=[*results.missing(settings.trials), *results.unmeasured(MEASUREMENT)],
        measurements=results.origins(MEASUREMENT),
    )


def _table(rows: list[MillionRow]) -> Table:
    head = [
        "factors",
        "classes",
        "accuracy",
        "interval",
        "with the true map",
        "images per second",
        "memory",
    ]
    body = []
    for row in rows:
        low, high = wilson(row["correct"], row["total"])
        body.append([
            row["factors"], f"{row['classes']:,}", f"{share(row['correct'], row['total']):.4f}",
            f"{low:.4f} to {high:.4f}", f"{share(row['nearest'], row['total']):.4f}",
            f"{row['total'] / row['seconds']:,.0f}", byte_size(row["memory_bytes"]),
        ])  # fmt: skip
    note = (
        "With the true map: the nearest exemplar when the pose is known. DCL+ fits the map to the nearest "
        "exemplars, which can be better."
    )
    return Table("One-shot classification", head, body, note)


def _measure(runner: Runner, classes: int, questions: int) -> Iterator[MillionRow]:
    from everlearn.evaluation.one_shot import FACTORS, add_exemplars, new_classes, query_batches
    from everlearn.experiments.framework.runner import as_sprites
    from everlearn.methods.dcl import DCL
    from everlearn.render.affine import transform_images
    from everlearn.training.device import synchronized_time

    trial = runner.settings(SETTINGS).trials[0]
    learner = runner.learner(trial)
    assert isinstance(learner, DCL)
    stream = as_sprites(runner.stream(trial))
    new = new_classes(stream, learner)
    memory = learner.memory.empty()
    add_exemplars(memory, new, range(new.first_class, new.first_class + classes), runner.device)
    for factors in FACTORS:
        shown = new_classes(stream, learner, factors)
        batches = list(query_batches(shown, classes, questions, runner.device))
        start = synchronized_time(runner.device)
        matches = [learner.match(batch.images, memory, 1) for batch in batches]
        correct = _count_correct(matches, batches)
        seconds = synchronized_time(runner.device) - start
        # The nearest exemplar through the true map, without any fitting.
        nearest = [memory.search(transform_images(b.images, b.theta), 1) for b in batches]
        yield {
            "kind": "million",
            "classes": classes,
            "memory_bytes": memory.bytes,
            "factors": factors,
            "correct": correct,
            "nearest": _count_correct(nearest, batches),
            "total": sum(len(batch.labels) for batch in batches),
            "seconds": seconds,
        }


def _count_correct(matches: list[SearchResult], batches: list[QueryBatch]) -> int:
    pairs = zip(matches, batches, strict=True)
    return sum(int((found.labels[:, 0] == batch.labels).sum()) for found, batch in pairs)
