"""Figure 10: galleries of DCL's matches and mistakes, which are made between similar shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from everlearn.experiments.framework.pictures import picture_row, pictures
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.rule import lead_above
from everlearn.experiments.framework.shared_trials import MEASURED
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings
from everlearn.experiments.framework.verdicts import judge_statement, unpublished
from everlearn.report.experiment import ExperimentResult
from everlearn.rows import CountRow, MeasurementRow, OverlapRow, PictureRow, of_kind

if TYPE_CHECKING:
    from torch import Tensor

    from everlearn.evaluation.one_shot import QueryBatch
    from everlearn.experiments.framework.runner import Runner
    from everlearn.memory import Exemplars
    from everlearn.methods.dcl import DCL
    from everlearn.stream import Stream

TITLE = "Matches and mistakes"
SOURCE = "Figure 10"
CLAIM = "Open-set mistakes are made between shapes that look alike."
SETTINGS = {
    SMALL: Settings((MEASURED[SMALL],), {"shown": 8, "classes": 20}),
    PAPER: Settings((MEASURED[PAPER],), {"shown": 12, "classes": 1000}),
}
COST = {SMALL: "seconds after the run", PAPER: "seconds after the run"}
MEASUREMENT = "fig10-mistakes"
MEASUREMENTS = (MEASUREMENT,)
_CORRECT = (
    "Test images of known shapes, mapped to the canonical pose, and the exemplars they match."
)
_ACCEPTED = "Unknown shapes most confidently taken for a known one."
_REJECTED = "Known shapes that seem most novel: the two nearest exemplars are almost equally near."
_WRONG = "Known shapes taken for another one."


def run(runner: Runner) -> None:
    """Match images of known and unknown shapes, and keep the most telling ones."""
    settings = runner.settings(SETTINGS)
    runner.run_trials(settings.trials)
    options = dict(settings.options)
    runner.measure(MEASUREMENT, options, lambda: _measure(runner, **options), settings.trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Show the galleries, and compare the overlap of mistaken shapes with that of any two."""
    rows = results.rows(MEASUREMENT)
    distances = {row["what"]: row["mean"] for row in of_kind(rows, OverlapRow)}
    trials = results.settings(SETTINGS).trials
    seed = trials[0].seeds[0]
    closer = {seed: distances["any"] - distances["mistaken"]} if len(distances) == 2 else {}
    counts = [
        f"{row['wrong']} of {row['total']} images of known shapes"
        for row in of_kind(rows, CountRow)
    ]
    verdicts = [
        judge_statement(
            "Shapes mistaken for each other look alike",
            ", ".join(f"{pairs}: {distance:.3f}" for pairs, distance in distances.items()),
            [lead_above(closer, 0.0)],
            "mean of 1 - intersection over union of two shapes",
        ),
        unpublished("Known shapes taken for another one", "; ".join(counts)),
    ]
    return ExperimentResult(
        pictures=pictures(rows),
        verdicts=verdicts,
        runs=runs_of(results.groups(trials)),
        missing=[*results.missing(trials), *results.unmeasured(MEASUREMENT)],
        measurements=results.origins(MEASUREMENT),
    )


def _measure(runner: Runner, shown: int, classes: int) -> Iterator[MeasurementRow]:
    import torch

    from everlearn.evaluation.one_shot import join, new_classes, query_batches
    from everlearn.evaluation.open_set import known_queries
    from everlearn.evaluation.plan import spread
    from everlearn.experiments.framework.runner import as_sprites
    from everlearn.methods.dcl import DCL

    trial = runner.settings(SETTINGS).trials[0]
    learner = runner.learner(trial)
    assert isinstance(learner, DCL)
    stream = as_sprites(runner.stream(trial))
    labels = learner.memory.labels
    known_classes = [labels[place] for place in spread(len(labels), classes)]
    memory = learner.memory.subset(known_classes)
    count = len(known_classes)
    known = join(list(known_queries(stream, known_classes, 2, runner.device)))
    unknown = join(
        list(query_batches(new_classes(stream, learner), count, 2 * count, runner.device))
    )
    known_matches = learner.match(known.images, memory, 2)
    unknown_matches = learner.match(unknown.images, memory, 2)
    nearest = known_matches.labels[:, 0]
    nearest_of_unknown = unknown_matches.labels[:, 0]

    wrong = (nearest != known.labels).nonzero().flatten()
    correct = (nearest == known.labels).nonzero().flatten()
    rejected = correct[known_matches.novelty[correct].argsort(descending=True)]
    accepted = unknown_matches.novelty.argsort()
    spread_out = torch.tensor(spread(len(correct), shown), device=correct.device)
    yield {"kind": "count", "wrong": len(wrong), "total": len(nearest)}
    yield from _gallery(_CORRECT, learner, memory, known, nearest, correct[spread_out])
    yield from _gallery(_ACCEPTED, learner, memory, unknown, nearest_of_unknown, accepted[:shown])
    yield from _gallery(_REJECTED, learner, memory, known, nearest, rejected[:shown])
    yield from _gallery(_WRONG, learner, memory, known, nearest, wrong[:shown])
    mistaken = accepted[: 5 * shown]
    yield from _overlaps(stream, unknown.labels[mistaken], nearest_of_unknown[mistaken])


def _gallery(
    caption: str,
    learner: DCL,
    memory: Exemplars,
    questions: QueryBatch,
    nearest: Tensor,
    rows: Tensor,
) -> Iterator[PictureRow]:
    """Yield a picture of some questions and the exemplars nearest to them; none without rows."""
    from everlearn.report.charts.gallery import gallery

    if not len(rows):
        return
    images = questions.images[rows]
    matched = nearest[rows].tolist()
    columns = (images, learner.canonicalize(images), memory.images(matched))
    arrays = [
        column.float().cpu().numpy() if column.is_floating_point() else column.cpu().numpy()
        for column in columns
    ]
    labels = questions.labels[rows].tolist()
    yield picture_row(caption, gallery(arrays[0], arrays[1], arrays[2], labels, matched))


def _overlaps(stream: Stream, unknown: Tensor, matched: Tensor) -> Iterator[OverlapRow]:
    """Yield the mean distance of the pairs (unknown, matched), and that of all combinations."""
    import numpy as np

    from everlearn.shapes import outlines
    from everlearn.shapes.overlap import iou_distances, packed_masks

    masks = [
        packed_masks(outlines(stream.seed, classes.cpu().numpy(), stream.style).coefficients)
        for classes in (unknown, matched)
    ]
    distances = np.array([iou_distances(mask, masks[1]) for mask in masks[0]])
    yield {"kind": "overlap", "what": "mistaken", "mean": float(distances.diagonal().mean())}
    yield {"kind": "overlap", "what": "any", "mean": float(distances.mean())}
