"""Regularisation: LwF, SI and EWC beside DCL, at their published strength and far above it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.learners import DCL, DCL_PLUS, EWC, FINE_TUNING, LWF, SI
from everlearn.experiments.read import accuracy_at, curves, last_accuracy
from everlearn.experiments.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.verdicts import listed, statement
from everlearn.report.chapter import Chapter

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "Regularisation", "Figure 3"
CLAIM = "LwF, SI and EWC collapse within about ten tasks, LwF and SI whatever their strength; DCL improves."
_STRENGTHS = (
    (LWF, "weight", (1.0, 10.0)),
    (SI, "strength", (1.0, 10.0)),
    (EWC, "strength", (3.0, 30.0)),
)


def _stronger(tasks: int) -> tuple[Trial, ...]:
    """Ten and a hundred times the published strength, on the beginning of the stream."""
    return tuple(
        trial._replace(
            name=f"{trial.name}-{value:g}", settings={name: value}, most=tasks,
            label=f"{trial.label}, {value:g}",
        )
        for trial, name, values in _STRENGTHS
        for value in values
    )  # fmt: skip


_MAIN = (DCL_PLUS, DCL, FINE_TUNING, LWF, SI, EWC)
SETTINGS = {
    SMALL: Settings((*_MAIN, *_stronger(2)), {"early": 2}),
    PAPER: Settings((*_MAIN, *_stronger(50)), {"early": 10}),
}
COST = {SMALL: "2 minutes", PAPER: "20 minutes"}


def run(lab: Lab) -> None:
    """Let all learn."""
    lab.learn(lab.settings(SETTINGS).trials)


def figure(found: Found) -> Chapter:
    """Curves at the published strengths, and beyond."""
    settings = found.settings(SETTINGS)
    main, beyond = found.groups(_MAIN), found.groups(settings.trials[len(_MAIN) :])
    figures = curves(main, "fig3", "Accuracy on all tasks so far, at the published strengths.")
    figures += curves(beyond, "fig3-strengths", "Ten and a hundred times as strong.")
    bound = [group for group in main if group.method in ("lwf", "si", "ewc")]
    early = {group.label: accuracy_at(group, settings.numbers["early"]) for group in bound}
    known = [value for value in early.values() if value is not None]
    late = {group.label: last_accuracy(group) for group in beyond}
    verdicts = [
        statement(
            f"Collapse within about {settings.numbers['early']} tasks", listed(early),
            max(known) <= 0.2 if known else None,
        ),
        statement(
            "Ten and a hundred times the strength changes nothing", listed(late),
            max(late.values()) <= 0.1 if late else None,
            "at the end; the paper says so of LwF and SI; a strong penalty also keeps new tasks out",
        ),
    ]  # fmt: skip
    missing = found.missing(settings.trials)
    return Chapter(figures, [], [], verdicts, runs_of([*main, *beyond]), missing)
