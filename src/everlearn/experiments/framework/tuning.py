"""Tuning: which trial of a method's grid is chosen, by validation images alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from everlearn.experiments.framework.grids import GRIDS, tuning_trials
from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.trial import Trial
from everlearn.metrics import LEARNED
from everlearn.report.loaded_run import LoadedRun
from everlearn.report.tables.numbers import fraction
from everlearn.report.tables.table import Table


class Score(NamedTuple):
    """What a trial is chosen by, and its settings.

    Attributes:
        accuracy: on the validation images of all tasks learned, after the last.
        learning_accuracy: on those of each task right after learning it, mean over tasks.
    """

    trial: Trial
    accuracy: float
    learning_accuracy: float

    @property
    def rank(self) -> tuple[bool, float]:
        """Learning comes first: trials that do not learn their tasks are compared by how much they do."""
        learned = self.learning_accuracy >= LEARNED
        return learned, self.accuracy if learned else self.learning_accuracy


def scores(results: ResultsFolder, method: str) -> list[Score]:
    """Return the scores of all finished trials of a method, in the order of its grid."""
    trials = tuning_trials(method, results.scale)
    return [_score(trial, group.runs) for trial in trials for group in results.groups([trial])]


def choose(candidates: Iterable[Score]) -> Score:
    """Return the best trial: of those that learned their tasks, the one with the highest accuracy.

    Of equal ones the first of the grid is chosen.
    """
    return max(candidates, key=lambda score: score.rank)


def chosen_settings(results: ResultsFolder, method: str) -> dict[str, Any]:
    """Return the settings that the trials of a method choose."""
    return dict(choose(scores(results, method)).trial.settings)


def tuning_table(results: ResultsFolder, methods: Sequence[str] = tuple(GRIDS)) -> Table:
    """Return a table of all trials; the chosen one of each method is marked."""
    rows = [row for method in methods for row in _rows(scores(results, method))]
    note = (
        "Validation images of the first tasks of seed "
        f"{', '.join(map(str, _seeds(methods, results.scale)))}. Chosen (*): the highest accuracy among "
        f"trials with a learning accuracy of {LEARNED} or more; where there is none, the highest learning "
        "accuracy."
    )
    return Table("Tuning", ["trial", "settings", "accuracy", "learning accuracy", ""], rows, note)


def _rows(candidates: Sequence[Score]) -> list[list[str]]:
    if not candidates:
        return []
    best = choose(candidates)
    return [
        [
            score.trial.title,
            ", ".join(f"{name} {_format(value)}" for name, value in score.trial.settings.items()),
            fraction(score.accuracy),
            fraction(score.learning_accuracy),
            "*" if score is best else "",
        ]
        for score in candidates
    ]


def _format(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _score(trial: Trial, runs: Sequence[LoadedRun]) -> Score:
    """Average the accuracies of a trial over its seeds."""
    return Score(
        trial, _mean(runs, "average_accuracy"), _mean(runs, "learning_accuracy")
    )


def _mean(runs: Sequence[LoadedRun], name: str) -> float:
    values = [run.summary[name] for run in runs]
    return sum(0.0 if value is None else float(value) for value in values) / len(values)


def _seeds(methods: Sequence[str], scale: str) -> list[int]:
    return sorted({seed for name in methods for t in tuning_trials(name, scale) for seed in t.seeds})
