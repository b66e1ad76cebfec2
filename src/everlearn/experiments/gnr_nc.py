"""New classes: generated latents as negatives, beside other data, positive replay and none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.found import Found
from everlearn.experiments.gnr import AR1, NC
from everlearn.experiments.gnr_modes import chapter
from everlearn.experiments.trial import PAPER, SMALL, Settings
from everlearn.report.chapter import Chapter
from everlearn.report.numbers import NONE

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "Negative replay, new classes", "Graffieti et al. 2022"
CLAIM = (
    "Generated latents are too poor to teach old classes, but as negatives they keep new classes from "
    "being learned alone."
)
SETTINGS = {scale: Settings(NC[scale].trials()) for scale in (SMALL, PAPER)}
COST = {SMALL: "1 minute", PAPER: "10 minutes, with the extractor"}
# At the end, and mean over experiences.
PUBLISHED = {
    AR1: ("0.610 ± 0.005", "0.417 ± 0.006"),
    "PR-OD": ("above 0.70", "0.470 ± 0.005"),
    "NR-OD": ("0.686 ± 0.014", NONE),
    "PR-GD": ("below AR1*", "0.341 ± 0.003"),
    "NR-GD": ("0.689 ± 0.009", "0.446 ± 0.008"),
    "NR-RD": ("0.641 ± 0.007", NONE),
}


def run(lab: Lab) -> None:
    """Let all learn."""
    lab.learn(lab.settings(SETTINGS).trials)


def figure(found: Found) -> Chapter:
    """Curves of all modes, and where they end."""
    return chapter(found, found.settings(SETTINGS).trials, "gnr-nc", PUBLISHED)
