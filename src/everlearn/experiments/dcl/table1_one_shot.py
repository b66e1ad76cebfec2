"""Table 1: one-shot classification of new shapes, with one exemplar each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from everlearn.experiments.framework.groups import format_number
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import DCL, DCL_PLUS, TABLE_TASKS
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings
from everlearn.experiments.framework.verdicts import compare_number
from everlearn.metrics import mean_or_none, one_shot, share
from everlearn.metrics.one_shot import Count
from everlearn.report import Group, LoadedRun, Table
from everlearn.report.experiment import ExperimentResult
from everlearn.report.verdict import Verdict
from everlearn.rows import OneShotRow, of_kind

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "One shot"
SOURCE = "Table 1"
CLAIM = (
    "After 200 tasks one-shot accuracy on 10 / 100 / 1,000 new shapes is 1.00 / 0.98 / 0.95, and "
    "0.96 / 0.95 / 0.93 among all shapes."
)
PUBLISHED = {
    "standard": {10: 1.00, 100: 0.98, 1000: 0.95},
    "generalised": {10: 0.96, 100: 0.95, 1000: 0.93},
}
_WHY = {
    DCL.title: "the paper's method, on images of 64 pixels with soft edges",
    DCL_PLUS.title: "ours, with exemplar replay, weight averaging and fitted maps, on the same images",
}
SETTINGS = {
    SMALL: Settings((DCL_PLUS, DCL), {"tasks": 5}),
    PAPER: Settings((DCL_PLUS, DCL), {"tasks": TABLE_TASKS}),
}
COST = {SMALL: "1 minute", PAPER: "15 minutes"}
Protocol = tuple[str, str, int]  # mode, factors and number of new classes
Scores = dict[Protocol, dict[int, float]]  # by protocol and seed


def run(runner: Runner) -> None:
    """Run both trials; one-shot evaluation is part of their plan."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Compare each published number with ours."""
    settings = results.settings(SETTINGS)
    tasks = settings.options["tasks"]
    groups = results.groups(settings.trials, tasks)
    scores = {group.label: scores_by_seed(group, tasks) for group in groups}
    verdicts = [
        compare_one_shot(label, scores.get(label, {}), mode, classes, why)
        for label, why in _WHY.items()
        for mode, by_classes in PUBLISHED.items()
        for classes in by_classes
    ]
    return ExperimentResult(
        tables=[one_shot_table(scores, tasks)] if groups else [],
        verdicts=verdicts,
        runs=runs_of(groups),
        missing=results.missing(settings.trials),
    )


def compare_one_shot(label: str, scores: Scores, mode: str, classes: int, why: str) -> Verdict:
    """Compare a one-shot accuracy with the published one.

    New shapes are the independent draws: images of one shape fail together.
    """
    values = scores.get((mode, "grid", classes), {})
    return compare_number(
        f"{label}: {classes:,} new classes, {mode}", PUBLISHED[mode][classes], values, why,
        draws=classes * len(values),
    )  # fmt: skip


def scores_by_seed(group: Group, tasks: int) -> Scores:
    """Return each score after so many tasks or at the end of a shorter stream, by seed."""
    found: Scores = {}
    for run in group.runs:
        for key, score in one_shot_scores(run, tasks).items():
            found.setdefault(key, {})[run.seed] = score
    return found


def one_shot_scores(run: LoadedRun, tasks: int) -> dict[Protocol, float]:
    """Return the scores of one run after so many tasks, or at the end of a shorter stream."""
    counts = one_shot_counts(run, tasks)
    return {key: float(share(found.correct, found.total)) for key, found in counts.items()}


def one_shot_counts(run: LoadedRun, tasks: int) -> dict[Protocol, Count]:
    """Return the counts of one run after so many tasks, or at the end of a shorter stream."""
    rows = of_kind(run.rows, OneShotRow)
    last = max((row["learned"] for row in rows if row["learned"] < tasks), default=-1)
    counts = one_shot(row for row in rows if row["learned"] == last)
    return {(key.mode, key.factors, key.classes): count for key, count in counts.items()}


def one_shot_table(scores: dict[str, Scores], tasks: int) -> Table:
    """Return a table with one row per protocol and one column per method."""
    first = next(iter(scores.values()))
    keys = sorted(first, key=lambda key: (key[1] != "grid", key[0] != "standard", key[2]))
    rows = [_row(key, list(scores.values())) for key in keys]
    note = (
        f"After {tasks} tasks. Standard: the memory holds only the new shapes; generalised: also the old "
        "ones. Grid: poses as in training; continuous: any pose in between."
    )
    return Table("One shot", ["new classes", "published", *scores], rows, note)


def _row(key: Protocol, methods: Sequence[Scores]) -> list[str]:
    mode, factors, classes = key
    published = PUBLISHED[mode].get(classes) if factors == "grid" else None
    cells = [format_number(mean_or_none(scores.get(key, {}).values()), 4) for scores in methods]
    return [f"{classes:,}, {mode}, {factors}", format_number(published, 2), *cells]
