"""Probes of VASE and of CCI-VAE through three environments, and the latents that they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.learners import SEEDS
from everlearn.experiments.pictures import pictures
from everlearn.experiments.trial import PAPER, SMALL, Settings
from everlearn.experiments.vase import MORE_SEEDS, PLAIN, VASE, A, note_data, of_paper
from everlearn.experiments.vase_probes import learn_and_traverse, mark_figures, probe_figures
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
    trials, rows = found.settings(SETTINGS).trials, found.rows(PART)
    groups = found.groups(trials)
    ours = [run for group in groups if group.method == "vase" for run in group.runs]
    figures = probe_figures(groups, "vase-fig2") if groups else []
    figures += mark_figures(ours[0], "vase-fig2-masks") if ours else []
    verdicts = [judge_sharing(groups), judge_change(groups)]
    missing = [*found.missing(trials), *([] if rows else [PART])]
    return Chapter(
        figures, [], pictures(rows), verdicts, runs_of(groups), missing,
        note_data(missing, found.scale), found.origins(PART),
    )  # fmt: skip
