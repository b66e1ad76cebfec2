"""Scenarios: blurry task boundaries, recurring classes, and old classes in new poses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everlearn.experiments.framework.groups import (
    accuracy_figures,
    final_pooled_accuracy,
    format_number,
)
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import (
    DCL_PLUS,
    FINE_TUNING,
    MIDDLE_BUFFER,
    once,
    replay,
)
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.framework.verdicts import format_values, unpublished
from everlearn.metrics import LEARNED
from everlearn.report import Table
from everlearn.report.experiment import ExperimentResult, Figure

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

Cells = dict[tuple[str, str], float | None]  # by method and scenario

TITLE = "Scenarios"
SOURCE = "ours"
CLAIM = "The ranking of methods depends on the scenario, which a benchmark of one scenario hides."
_DESCRIPTIONS = {
    "blurry": "Si-Blurry: tasks share classes, every image is seen once",
    "recurring": "half of the classes of a task were seen before",
    "domain": "the same classes, rotated further with every task",
}
_NOTE = "Fraction of all test images of the tasks so far. Curves weight tasks of any size equally."
_LEARNING_NOTE = (
    f"On each task right after learning it; below {LEARNED} it was not learned. One seed decides "
    "nothing."
)
_PAPER_NOTE = (
    "Blurry: every image is seen once, too little for a classifier of 100 classes from random weights. "
    "Recurring: fine-tuning learns the first tasks and stops learning later; the cause was not measured."
)
_NO_OTHER_TESTS = {"one_shot": (), "open_set": False, "final_after": ()}


def _trials(size: int, streams: dict[str, dict[str, Any]], every: int) -> tuple[Trial, ...]:
    return tuple(
        once(trial)._replace(
            name=f"{name}-{trial.method}",
            label=f"{trial.title}, {name}",
            settings={**trial.settings, **({"epochs": 1} if stream.get("online") else {})},
            stream={"scenario": name, **stream},
            max_tasks=None,
            plan={**_NO_OTHER_TESTS, "every": 1 if stream["tasks"] <= 10 else every},
        )
        for name, stream in streams.items()
        for trial in (DCL_PLUS, replay(size), FINE_TUNING)
    )


_SMALL = {"blurry": {"tasks": 2, "online": True}, "recurring": {"tasks": 3}, "domain": {"tasks": 3}}
_PAPER = {
    "blurry": {"tasks": 5, "classes_per_task": 20, "online": True},
    "recurring": {"tasks": 50},
    "domain": {"tasks": 10},
}
SETTINGS = {
    SMALL: Settings(_trials(MIDDLE_BUFFER[SMALL], _SMALL, 1)),
    PAPER: Settings(_trials(MIDDLE_BUFFER[PAPER], _PAPER, 5)),
}
COST = {SMALL: "2 minutes", PAPER: "12 minutes"}


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw accuracy in each scenario, and tabulate final accuracies."""
    trials = results.settings(SETTINGS).trials
    figures: list[Figure] = []
    final: Cells = {}
    learning: Cells = {}
    for name, description in _DESCRIPTIONS.items():
        groups = results.groups([trial for trial in trials if trial.stream["scenario"] == name])
        figures += accuracy_figures(
            groups, f"scenario-{name}", f"{name.capitalize()}: {description}."
        )
        for group in groups:
            cell = group.label.removesuffix(f", {name}"), name
            final[cell] = final_pooled_accuracy(group)
            learning[cell] = group.mean("learning_accuracy")
    ours = format_values({f"{name}, {label}": value for (label, name), value in final.items()})
    return ExperimentResult(
        figures,
        tables=[
            _table("Accuracy at the end", final, _NOTE),
            _table("Learning accuracy", learning, results.note(_LEARNING_NOTE, _PAPER_NOTE)),
        ]
        if final
        else [],
        verdicts=[unpublished("Accuracy at the end", ours)],
        runs=runs_of(results.groups(trials)),
        missing=results.missing(trials),
    )


def _table(title: str, cells: Cells, note: str) -> Table:
    methods = list(dict.fromkeys(method for method, _ in cells))
    rows = [
        [method, *(format_number(cells.get((method, name))) for name in _DESCRIPTIONS)]
        for method in methods
    ]
    return Table(title, ["method", *_DESCRIPTIONS], rows, note)
