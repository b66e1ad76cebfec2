"""New instances and classes: one class in one session at a time, with all kinds of replay and with none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.found import Found
from everlearn.experiments.gnr import AR1, NIC
from everlearn.experiments.gnr_modes import chapter
from everlearn.experiments.trial import PAPER, SMALL, Settings
from everlearn.report.chapter import Chapter
from everlearn.report.numbers import NONE

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "Negative replay, new instances and classes", "Graffieti et al. 2022"
CLAIM = "Where an experience is one class in one session, positive replay of generated latents destroys."
SETTINGS = {scale: Settings(NIC[scale].trials()) for scale in (SMALL, PAPER)}
COST = {SMALL: "1 minute", PAPER: "12 minutes, with the extractor"}
# At the end; means over experiences were not published.
PUBLISHED = {
    AR1: ("0.527 ± 0.010", NONE),
    "PR-OD": ("less than 0.05 over NR-GD", NONE),
    "NR-OD": ("0.679 ± 0.003", NONE),
    "PR-GD": ("about 0.30 below AR1*", NONE),
    "NR-GD": ("0.615 ± 0.007", NONE),
    "NR-RD": ("0.589 ± 0.006", NONE),
}


def run(lab: Lab) -> None:
    """Let all learn."""
    lab.learn(lab.settings(SETTINGS).trials)


def figure(found: Found) -> Chapter:
    """Curves of all modes, and where they end."""
    return chapter(found, found.settings(SETTINGS).trials, "gnr-nic", PUBLISHED)
