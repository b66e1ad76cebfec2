"""Equivariant against invariant: DCL, which tells what was done to a shape, and a contrastive net."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.learners import CONTRASTIVE, DCL, DCL_PLUS, FINE_TUNING
from everlearn.experiments.read import accuracy_at, curves, mean
from everlearn.experiments.trial import PAPER, SMALL, Settings
from everlearn.experiments.verdicts import listed, statement
from everlearn.report import Group
from everlearn.report.chapter import Chapter

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "Equivariant against invariant", "Figure 7"
CLAIM = "The contrastive net decays, slower than fine-tuning, and stays well above chance; DCL does not."
SETTINGS = {
    SMALL: Settings((DCL_PLUS, DCL, CONTRASTIVE, FINE_TUNING), {"late": 5, "classes": 15}),
    PAPER: Settings((DCL_PLUS, DCL, CONTRASTIVE, FINE_TUNING), {"late": 100, "classes": 1000}),
}
COST = {SMALL: "1 minute", PAPER: "14 minutes"}


def run(lab: Lab) -> None:
    """Let all learn."""
    lab.learn(lab.settings(SETTINGS).trials)


def figure(found: Found) -> Chapter:
    """Curves."""
    settings = found.settings(SETTINGS)
    groups = {group.method: group for group in found.groups(settings.trials)}
    late, chance = settings.numbers["late"], 1 / settings.numbers["classes"]
    net, plain, maps = (_at(groups, name, late) for name in ("contrastive", "fine-tuning", "dcl"))
    why = ""
    learns = mean(groups["contrastive"], "learning_accuracy") if "contrastive" in groups else None
    if learns is not None:
        why = (
            f"of a task that has just come the contrastive net names {learns:.2f} among all classes"
        )
    verdicts = [
        statement(
            f"After {late} tasks the contrastive net is above fine-tuning",
            listed({"contrastive": net, "fine-tuning": plain}), _over(net, plain), why,
        ),
        statement(
            f"It is above chance then, {chance:.4f}, five times and more", listed({"contrastive": net}),
            _over(net, 5 * chance), why,
        ),
        statement(
            "DCL is far above the contrastive net", listed({"DCL": maps, "contrastive": net}),
            _over(maps, None if net is None else net + 0.1),
        ),
    ]  # fmt: skip
    every = list(groups.values())
    figures = curves(every, "fig7", "Accuracy on all tasks so far.")
    return Chapter(figures, [], [], verdicts, runs_of(every), found.missing(settings.trials))


def _at(groups: dict[str, Group], method: str, tasks: int) -> float | None:
    return accuracy_at(groups[method], tasks) if method in groups else None


def _over(one: float | None, other: float | None) -> bool | None:
    return None if one is None or other is None else one > other
