"""DCL and DCL+ on the paper's own images: hard edges, three channels, more pixels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from everlearn.experiments.dcl.ablations import open_set_areas
from everlearn.experiments.dcl.fig9_open_set import PUBLISHED_AREA
from everlearn.experiments.dcl.table1_one_shot import (
    PUBLISHED,
    Scores,
    compare_one_shot,
    one_shot_table,
    scores_by_seed,
)
from everlearn.experiments.framework.groups import (
    accuracy_figures,
    final_accuracy,
    format_number,
    summary_cell,
)
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import DCL, DCL_PLUS, SEEDS, TABLE_TASKS, once
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.framework.verdicts import compare_number
from everlearn.metrics import share
from everlearn.render.canvas import Canvas
from everlearn.report import Group, Table
from everlearn.report.experiment import ExperimentResult
from everlearn.report.tables.numbers import MISSING
from everlearn.report.verdict import Verdict
from everlearn.rows import MeasurementRow, OneShotCeilingRow, OpenSetCeilingRow, of_kind

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "The paper's images"
SOURCE = "Table 1 and Figure 9"
CLAIM = (
    "On images as the original package draws them, new shapes are recognised as well as published."
)
_CLASSES = 1000  # the hardest of the published one-shot tests
_AREA = "open_set_paper_area"
_WHY = {
    "dcl": "the paper's method and images",
    "dcl-plus": "ours, with exemplar replay, weight averaging and fitted maps, on the paper's images",
}


def _exact(trial: Trial, size: int) -> Trial:
    """Return a trial on images as the original package draws them, of so many pixels."""
    canvas = Canvas(size=size, channels=3, parity=True)
    return once(trial)._replace(
        name=f"{trial.name}-exact-{size}",
        label=f"{trial.label}, {size} pixels",
        stream={"canvas": canvas},
    )


def _settings(tasks: int, new_classes: Sequence[int], *sizes: int) -> Settings:
    trials = tuple(_exact(trial, size) for size in sizes for trial in (DCL_PLUS, DCL))
    return Settings(
        trials, {"tasks": tasks, "new_classes": list(new_classes), "sizes": list(sizes)}
    )


SETTINGS = {
    SMALL: _settings(5, (10, 20), 16),
    PAPER: _settings(TABLE_TASKS, (10, 100, _CLASSES), 128, 224),
}
MEASUREMENT = "paper-exact-ceiling"
MEASUREMENTS = (MEASUREMENT,)
COST = {SMALL: "1 minute", PAPER: "35 minutes"}
_CAPTION = "Accuracy on all tasks so far, on images with hard edges."
_AREA_NOTE = (
    "Open set: the area under the published curve. True maps: the nearest exemplar when the pose is known. "
    "DCL+ fits the map to the nearest exemplars, which can be better."
)


def run(runner: Runner) -> None:
    """Run all trials, with one-shot and open-set tests; measure what true maps reach in those tests."""
    settings = runner.settings(SETTINGS)
    runner.run_trials(settings.trials)
    options = {**settings.options, "seed": SEEDS[0]}
    runner.measure(MEASUREMENT, options, lambda: _measure(runner, settings))


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw accuracy by tasks, and compare one-shot and open-set results with the published ones."""
    settings = results.settings(SETTINGS)
    tasks = settings.options["tasks"]
    found = {group.label: group for group in results.groups(settings.trials, tasks)}
    groups = list(found.values())
    verdicts = [
        verdict
        for trial in settings.trials
        for verdict in _verdicts(trial, found.get(trial.title), tasks)
    ]
    return ExperimentResult(
        accuracy_figures(groups, "paper-exact", _CAPTION),
        tables=[_table(groups, tasks, results.rows(MEASUREMENT))] if groups else [],
        verdicts=verdicts,
        runs=runs_of(groups),
        missing=[*results.missing(settings.trials), *results.unmeasured(MEASUREMENT)],
        measurements=results.origins(MEASUREMENT),
    )


def _measure(runner: Runner, settings: Settings) -> Iterator[OneShotCeilingRow | OpenSetCeilingRow]:
    from everlearn.evaluation.one_shot import FACTORS, one_shot_ceiling
    from everlearn.evaluation.open_set import open_set_ceiling
    from everlearn.experiments.framework.runner import as_sprites

    methods = {trial.stream["canvas"].size: trial for trial in settings.trials}
    for trial in methods.values():
        stream = as_sprites(runner.stream(trial))
        for factors in FACTORS:
            for classes in settings.options["new_classes"]:
                yield from one_shot_ceiling(stream, runner.device, classes, factors)
        yield open_set_ceiling(stream, runner.device)


def _verdicts(trial: Trial, group: Group | None, tasks: int) -> list[Verdict]:
    """Compare the one-shot accuracies with the most classes, and the open-set area."""
    scores = scores_by_seed(group, tasks) if group else {}
    areas = group.values(_AREA) if group else {}
    why = _WHY[trial.method]
    one_shot = [compare_one_shot(trial.title, scores, mode, _CLASSES, why) for mode in PUBLISHED]
    area = f"{trial.title}: area under the published curve"
    return [*one_shot, compare_number(area, PUBLISHED_AREA, areas, why)]


def _table(groups: list[Group], tasks: int, ceilings: Sequence[MeasurementRow]) -> Table:
    """Return the one-shot table with rows for the open set and for accuracy on all tasks."""
    scores = {group.label: scores_by_seed(group, tasks) for group in groups}
    limits = open_set_areas(ceilings)
    table = one_shot_table(scores | _ceiling_scores(ceilings), tasks)
    areas = [
        *(summary_cell(group, _AREA, 4) for group in groups),
        *(format_number(area, 4) for area in limits.values()),
    ]
    ends = [
        *(format_number(final_accuracy(group), 4) for group in groups),
        *[MISSING] * len(limits),
    ]
    rows = [
        *([f"one shot, {name}", *cells] for name, *cells in table.rows),
        ["open set, area", f"{PUBLISHED_AREA:.2f}", *areas],
        ["accuracy on all tasks", MISSING, *ends],
    ]
    head = ["what", *table.head[1:]]
    return table._replace(
        title="New shapes", head=head, rows=rows, note=f"{table.note} {_AREA_NOTE}"
    )


def _ceiling_scores(rows: Sequence[MeasurementRow]) -> dict[str, Scores]:
    """Return what true maps reach in each one-shot test, by the size of images."""
    found: dict[str, Scores] = {}
    for row in of_kind(rows, OneShotCeilingRow):
        key = row["mode"], row["factors"], row["classes"]
        accuracy = float(share(row["correct"], row["total"]))
        found.setdefault(f"true maps, {row['size']} pixels", {})[key] = {row["seed"]: accuracy}
    return found
