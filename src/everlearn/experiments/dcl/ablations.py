"""Ablations of DCL: its losses, exemplars, colours and edges, and the size of images."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from everlearn.experiments.framework.groups import (
    final_accuracy,
    format_number,
    on_shared_seeds,
    summary_cell,
)
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import (
    CONTRASTIVE,
    DCL,
    DCL_PLUS,
    SEEDS,
    TABLE_TASKS,
    once,
)
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.framework.verdicts import format_values, unpublished
from everlearn.metrics import paper_area, paper_curve
from everlearn.render.canvas import Canvas
from everlearn.report import Group, Table
from everlearn.report.experiment import ExperimentResult
from everlearn.report.verdict import Verdict
from everlearn.rows import MeasurementRow, OpenSetCeilingRow, of_kind

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "Ablations of DCL"
SOURCE = "Dziadzio et al. 2023, and ours"
CLAIM = "An image loss adds little to the loss on maps; images of 64 pixels limit the open set."
MEASUREMENT = "dcl-ablations-ceiling"
MEASUREMENTS = (MEASUREMENT,)
COST = {SMALL: "3 minutes", PAPER: "about 1 hour (an estimate)"}
_COLORS = ("white", "red", "lime", "blue")
_DCL = once(DCL)
_PLUS = once(DCL_PLUS)
_SETTINGS: dict[str, tuple[Trial, str, dict[str, Any]]] = {
    "dcl-image-loss": (_DCL, "DCL, map and image loss", {"image_loss_weight": 1.0}),
    "dcl-image-only": (
        _DCL,
        "DCL, image loss only",
        {"image_loss_weight": 1.0, "map_loss_weight": 0.0},
    ),
    "dcl-exemplars-4": (_DCL, "DCL, 4 exemplars per class", {"exemplars_per_class": 4}),
    "dcl-plus-edges-0": (_PLUS, "DCL+, no edge jitter", {"edge_jitter": 0.0}),
}
_L1_ONLY = Trial(
    "contrastive-l1", "contrastive", {"exemplar_loss_weight": 0.0}, max_tasks=50,
    seeds=CONTRASTIVE.seeds, label="contrastive, l1 only",
)  # fmt: skip
_NOTE = (
    "All trials on the seed that all have learned: one seed decides nothing. "
    "DCL+ replays exemplars in poses between those of the grid, so continuous poses are new to DCL alone. "
    "Colours: exemplars are white, images have one of four colours, which a net must regress to compare "
    "them."
)
_PAPER_NOTE = (
    "Image loss only: the net ends with maps that show nothing but background, a minimum that the map "
    "loss leads out of."
)


def _with_settings() -> list[Trial]:
    return [
        base._replace(name=name, label=label, settings=settings)
        for name, (base, label, settings) in _SETTINGS.items()
    ]


def _with_colors(stream: dict[str, Any]) -> list[Trial]:
    """Return trials on shapes of four colours, without and with regression of the colour."""
    regressed = {"regress_color": True}
    colored = _DCL._replace(name="dcl-colors", label="DCL, four colours", stream=stream)
    return [
        colored,
        colored._replace(
            name="dcl-colors-regressed", label="DCL, four colours, regressed", settings=regressed
        ),
        _PLUS._replace(
            name="dcl-plus-colors-regressed", label="DCL+, four colours, regressed",
            stream=stream, settings=regressed,
        ),
    ]  # fmt: skip


def _trials(size: int, colors: dict[str, Any]) -> tuple[Trial, ...]:
    """Return all trials; one has images of twice the size."""
    canvas = Canvas(size=size, channels=3, colors=_COLORS)
    large = _DCL._replace(
        name="dcl-128", label="DCL, twice the size", stream={"canvas": Canvas(size=2 * size)}
    )
    colored = _with_colors({"canvas": canvas, **colors})
    return (DCL, DCL_PLUS, *_with_settings(), *colored, large, CONTRASTIVE, _L1_ONLY)


SETTINGS = {
    SMALL: Settings(
        _trials(16, {}),
        {
            "classes": 20,
            "contrastive_tasks": 5,
            "ceiling": {"sizes": [16, 32], "seeds": [*SEEDS[:1]], "tasks": 5},
        },
    ),
    # As many images per task as with one colour.
    PAPER: Settings(
        _trials(64, {"split": (6000, 150, 100)}),
        {
            "classes": 1000,
            "contrastive_tasks": 50,
            "ceiling": {"sizes": [64, 128], "seeds": [*SEEDS], "tasks": TABLE_TASKS},
        },
    ),
}


def run(runner: Runner) -> None:
    """Run all trials, and measure what true maps reach in the open set."""
    settings = runner.settings(SETTINGS)
    runner.run_trials(settings.trials)
    ceiling = settings.options["ceiling"]
    runner.measure(MEASUREMENT, ceiling, lambda: _measure(runner, **ceiling))


def figure(results: ResultsFolder) -> ExperimentResult:
    """Tabulate all trials, and report each ablation beside its base."""
    settings = results.settings(SETTINGS)
    groups = on_shared_seeds(results.groups(settings.trials, TABLE_TASKS))
    found = {group.label: group for group in groups}
    contrastive_tasks = settings.options["contrastive_tasks"]
    contrastive = results.groups((CONTRASTIVE, _L1_ONLY), contrastive_tasks)
    ceilings = open_set_ceilings(results)
    note = results.note(_NOTE, _PAPER_NOTE)
    verdicts = [_judge_accuracy(found, *pair) for pair in _pairs(settings.trials)]
    verdicts.append(_judge_l1(contrastive, contrastive_tasks))
    verdicts.append(_judge_open_set(found, ceilings))
    return ExperimentResult(
        tables=[_table(groups, settings.options["classes"], note)] if groups else [],
        verdicts=verdicts,
        runs=runs_of([*groups, *contrastive]),
        missing=[*results.missing(settings.trials), *results.unmeasured(MEASUREMENT)],
        measurements=results.origins(MEASUREMENT),
    )


def _pairs(trials: Sequence[Trial]) -> list[tuple[str, str]]:
    """Return the labels of an ablation and of its base."""
    bases = {trial.method: trial.title for trial in (_DCL, _PLUS)}
    return [
        (trial.title, bases[trial.method])
        for trial in trials
        if trial.method in bases and trial.title not in bases.values()
    ]


def _judge_accuracy(groups: dict[str, Group], label: str, base: str) -> Verdict:
    values = {name: final_accuracy(groups[name]) for name in (base, label) if name in groups}
    ours = format_values(values) if label in values else ""
    return unpublished(f"{label}: accuracy on all tasks at the end", ours)


def _judge_l1(groups: Sequence[Group], tasks: int) -> Verdict:
    values = {group.label: final_accuracy(group) for group in groups}
    ours = format_values(values) if _L1_ONLY.title in values else ""
    why = "l1 attracts images to exemplars; l2, left out, repels exemplars from each other"
    return unpublished(f"Contrastive net: l1 only, accuracy after {tasks} tasks", ours, why)


def _judge_open_set(groups: dict[str, Group], ceilings: dict[int, float]) -> Verdict:
    labels = (_DCL.title, "DCL, twice the size")
    areas = {
        label: groups[label].mean("open_set_paper_area") for label in labels if label in groups
    }
    limits = {f"true maps, {size} pixels": area for size, area in ceilings.items()}
    ours = format_values({**areas, **limits}) if areas else ""
    why = "published: 0.92, on hard-edged images of 224 or 256 pixels"
    return unpublished("Open set: area under the published curve", ours, why)


def open_set_ceilings(results: ResultsFolder) -> dict[int, float]:
    """Return the open-set areas that true maps reach, by the size of images, mean over seeds."""
    return open_set_areas(results.rows(MEASUREMENT))


def open_set_areas(rows: Sequence[MeasurementRow]) -> dict[int, float]:
    """Return the open-set areas of true maps, by the size of images, mean over seeds."""
    areas: dict[int, list[float]] = {}
    for row in of_kind(rows, OpenSetCeilingRow):
        area = paper_area(paper_curve(row["known"], row["unknown"]))
        areas.setdefault(row["size"], []).append(area)
    return {size: statistics.mean(found) for size, found in areas.items()}


def _table(groups: Sequence[Group], classes: int, note: str) -> Table:
    head = [
        *("trial", "accuracy", "learning accuracy", f"one shot, {classes:,} classes", "generalised"),
        *("continuous poses", "open set, area"),
    ]  # fmt: skip
    names = [
        "learning_accuracy",
        f"one_shot_standard_grid_{classes}",
        f"one_shot_generalised_grid_{classes}",
        f"one_shot_standard_continuous_{classes}",
        "open_set_paper_area",
    ]
    rows = [
        [
            group.label,
            format_number(final_accuracy(group), 4),
            *(summary_cell(group, name, 4) for name in names),
        ]
        for group in groups
    ]
    return Table("Ablations", head, rows, note)


def _measure(
    runner: Runner, sizes: Sequence[int], seeds: Sequence[int], tasks: int
) -> Iterator[OpenSetCeilingRow]:
    from everlearn.evaluation.open_set import open_set_ceiling

    tasks = min(len(runner.base), tasks)
    for size, seed in itertools.product(sizes, seeds):
        stream = runner.base.with_changes(seed=seed, tasks=tasks, canvas=Canvas(size=size))
        yield open_set_ceiling(stream, runner.device)
