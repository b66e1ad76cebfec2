"""Probes of VASE and of CCI-VAE through three environments, and the latents that they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.found import Found
from everlearn.experiments.learners import SEEDS
from everlearn.experiments.trial import PAPER, SMALL, Settings
from everlearn.experiments.vase import MORE_SEEDS, PLAIN, VASE, A, of_paper
from everlearn.experiments.vase_course import draw_chapter, learn_and_traverse
from everlearn.experiments.vase_verdicts import judge_change, judge_sharing
from everlearn.report.chapter import Chapter

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "VASE through three environments", "Achille et al. 2018, Figure 2"
CLAIM = (
    "VASE keeps what it has learned, and lends latents of position from one moving set to another."
)
COST = {SMALL: "seconds after vase-table1", PAPER: "seconds after vase-table1"}
PART = "vase-fig2-latents"
PARTS = (PART,)


def _settings(scale: str) -> Settings:
    ours = A[scale].ablation(VASE, seeds=of_paper(scale, MORE_SEEDS))
    plain = A[scale].ablation(PLAIN, seeds=of_paper(scale, SEEDS))
    return Settings((ours, plain))


SETTINGS = {scale: _settings(scale) for scale in (SMALL, PAPER)}


def run(lab: Lab) -> None:
    """Let both learn, where their data are, and draw what latents do."""
    learn_and_traverse(lab, lab.settings(SETTINGS).trials, PART)


def figure(found: Found) -> Chapter:
    """Curves, latents by environment, and traversals."""
    return draw_chapter(found, SETTINGS, PART, (judge_sharing, judge_change))
