"""Tuning: which trial of a method's grid is chosen, by validation images alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from everlearn.experiments.framework.grids import GRIDS, tuning_trials
from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.trial import Trial
from everlearn.metrics import LEARNED, learned_its_tasks
from everlearn.report import Group
from everlearn.report.tables.numbers import MISSING, fraction
from everlearn.report.tables.table import Table
from everlearn.runs import find_runs


class Score(NamedTuple):
    """What a trial is chosen by, and its settings.

    Attributes:
        accuracy: on the validation images of all tasks learned, after the last.
        learning_accuracy: on those of each task right after learning it, mean over tasks; None for a
            method that is trained after the last task only.
    """

    trial: Trial
    accuracy: float
    learning_accuracy: float | None

    @property
    def rank(self) -> tuple[bool, float, float]:
        """Learning comes first: trials that do not learn their tasks are compared by how much they do.

        It also decides between trials of equal accuracy: methods that forget everything keep the last
        task, whatever their settings.
        """
        learning = 1.0 if self.learning_accuracy is None else self.learning_accuracy
        learned = learned_its_tasks(self.learning_accuracy) is not False
        return learned, self.accuracy if learned else learning, learning


def scores(results: ResultsFolder, method: str) -> list[Score]:
    """Return the scores of all finished trials of a method, in the order of its grid."""
    trials = tuning_trials(method, results.scale)
    return [_score(trial, group) for trial in trials for group in results.groups([trial])]


def choose(candidates: Iterable[Score]) -> Score:
    """Return the best trial: of those that learned their tasks, the one with the highest accuracy.

    Of equal ones, that with the highest learning accuracy is chosen, then the first of the grid.
    """
    ranked = list(candidates)
    if not ranked:
        raise ValueError("there are no finished trials to choose from; run everlearn tune METHOD")
    return max(ranked, key=lambda score: score.rank)


def is_tuning_folder(folder: Path, scale: str) -> bool:
    """Return whether all runs in a folder are trials of grids."""
    names = {
        trial.folder(seed)
        for method in GRIDS
        for trial in tuning_trials(method, scale)
        for seed in trial.seeds
    }
    found = {run.name for run in find_runs(folder)}
    return bool(found) and found <= names


def tuning_table(results: ResultsFolder, methods: Sequence[str] = tuple(GRIDS)) -> Table:
    """Return a table of all trials; the chosen one of each method is marked."""
    rows = [row for method in methods for row in _rows(scores(results, method))]
    note = (
        "Validation images of the first tasks of seed "
        f"{', '.join(map(str, _seeds(methods, results.scale)))}. Chosen (*): the highest accuracy among "
        f"trials with a learning accuracy of {LEARNED} or more, and of equal ones the highest learning "
        "accuracy; where there is none, the highest learning accuracy."
    )
    return Table("Tuning", ["trial", "settings", "accuracy", "learning accuracy", ""], rows, note)


def _rows(candidates: Sequence[Score]) -> list[list[str]]:
    if not candidates:
        return []
    best = choose(candidates)
    return [
        [
            score.trial.title,
            describe_settings(score),
            fraction(score.accuracy),
            MISSING if score.learning_accuracy is None else fraction(score.learning_accuracy),
            "*" if score is best else "",
        ]
        for score in candidates
    ]


def describe_settings(score: Score) -> str:
    """Describe the settings that a trial varies: "learning_rate 0.001, reset_optimizer False"."""
    varied = GRIDS[score.trial.method].choices
    return ", ".join(f"{name} {_format(score.trial.settings[name])}" for name in varied)


def _format(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _score(trial: Trial, group: Group) -> Score:
    """Average the accuracies of a trial over its seeds."""
    measures_learning = trial.plan["diagonal_images"]
    learning = _mean(group, "learning_accuracy") if measures_learning else None
    return Score(trial, _mean(group, "average_accuracy"), learning)


def _mean(group: Group, name: str) -> float:
    """Return a number of the summary, mean over all seeds, each of which must have it."""
    values = group.values(name)
    for run in group.runs:
        if run.seed not in values:
            raise ValueError(
                f"{run.folder} has no {name.replace('_', ' ')}, by which trials are chosen; remove it and "
                "run everlearn tune again"
            )
    return sum(values.values()) / len(values)


def _seeds(methods: Sequence[str], scale: str) -> list[int]:
    return sorted(
        {seed for name in methods for t in tuning_trials(name, scale) for seed in t.seeds}
    )
