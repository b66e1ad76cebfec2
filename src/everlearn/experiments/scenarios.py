"""Scenarios: blurry borders, classes that come back, and old classes in new poses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.learners import DCL_PLUS, FINE_TUNING, MIDDLE, replay
from everlearn.experiments.read import curves, last_pooled
from everlearn.experiments.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.verdicts import listed, own
from everlearn.report import Table
from everlearn.report.chapter import Chapter, Figure
from everlearn.report.numbers import NONE

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "Scenarios", "ours"
CLAIM = "How a method fares depends on what comes when; a benchmark of one scenario hides it."
_WORDS = {
    "blurry": "Si-Blurry: borders leak, every image is seen once",
    "recurring": "half of the classes of a task were met before",
    "domain": "the same classes, turned further with every task",
}
_EXAMS = {"one_shot": (), "open_set": False, "finals": ()}


def _trials(size: int, streams: dict[str, dict[str, Any]], every: int) -> tuple[Trial, ...]:
    return tuple(
        trial._replace(
            name=f"{name}-{trial.method}",
            label=f"{trial.title}, {name}",
            settings={**trial.settings, **({"epochs": 1} if stream.get("online") else {})},
            stream={"scenario": name, **stream},
            most=None,
            plan={**_EXAMS, "every": 1 if stream["tasks"] <= 10 else every},
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
    SMALL: Settings(_trials(MIDDLE[SMALL], _SMALL, 1)),
    PAPER: Settings(_trials(MIDDLE[PAPER], _PAPER, 5)),
}
COST = {SMALL: "2 minutes", PAPER: "4 minutes"}


def run(lab: Lab) -> None:
    """Let all learn."""
    lab.learn(lab.settings(SETTINGS).trials)


def figure(found: Found) -> Chapter:
    """Curves of each scenario, and where they end."""
    trials = found.settings(SETTINGS).trials
    figures: list[Figure] = []
    ends: dict[tuple[str, str], float] = {}
    for name, words in _WORDS.items():
        groups = found.groups([trial for trial in trials if trial.stream["scenario"] == name])
        figures += curves(groups, f"scenario-{name}", f"{name.capitalize()}: {words}.")
        ends |= {
            (group.label.removesuffix(f", {name}"), name): last_pooled(group) for group in groups
        }
    every = found.groups(trials)
    ours = listed({f"{name}, {label}": value for (label, name), value in ends.items()})
    tables = [_table(ends)] if ends else []
    verdicts = [own("Accuracy at the end", ours)]
    return Chapter(figures, tables, [], verdicts, runs_of(every), found.missing(trials))


def _table(ends: dict[tuple[str, str], float]) -> Table:
    methods = list(dict.fromkeys(method for method, _ in ends))
    rows = [
        [
            method,
            *(f"{ends[method, name]:.3f}" if (method, name) in ends else NONE for name in _WORDS),
        ]
        for method in methods
    ]
    return Table(
        "Accuracy at the end",
        ["method", *_WORDS],
        rows,
        "Share of all test images of the tasks met. Curves weigh tasks alike, of whatever size.",
    )
