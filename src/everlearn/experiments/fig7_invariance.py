"""Equivariant against invariant: DCL, which tells what was done to a shape, and a contrastive net."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.found import Found, label_runs
from everlearn.experiments.learners import CONTRASTIVE, DCL, DCL_PLUS, FINE_TUNING
from everlearn.experiments.read import accuracy_at, curves
from everlearn.experiments.trial import PAPER, SMALL, Settings
from everlearn.experiments.verdicts import listed, statement
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
    groups, late = found.groups(settings.trials), settings.numbers["late"]
    at = {group.method: accuracy_at(group, late) for group in groups}
    net, plain, maps = (at.get(name) for name in ("contrastive", "fine-tuning", "dcl"))
    chance = 1 / settings.numbers["classes"]
    slower = None if net is None or plain is None else net > plain
    verdicts = [
        statement(
            f"After {late} tasks the contrastive net is above fine-tuning",
            listed({"contrastive": net, "fine-tuning": plain}), slower,
        ),
        statement(
            "The contrastive net stays well above chance",
            f"{net:.3f}, chance {chance:.4f}" if net is not None else "",
            None if net is None else net > 5 * chance,
        ),
        statement(
            "DCL is far above the contrastive net", listed({"DCL": maps, "contrastive": net}),
            None if net is None or maps is None else maps > net + 0.1,
        ),
    ]  # fmt: skip
    figures = curves(groups, "fig7", "Accuracy on all tasks so far.")
    return Chapter(figures, [], [], verdicts, label_runs(groups), found.missing(settings.trials))
