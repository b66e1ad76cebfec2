"""Probes of VASE and of CCI-VAE through five environments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.trial import PAPER, SMALL, Settings
from everlearn.experiments.vase import MORE_SEEDS, PLAIN, VASE, B, of_paper
from everlearn.experiments.vase_course import draw_chapter, learn_and_traverse
from everlearn.experiments.vase_read import detected, spread, used
from everlearn.experiments.vase_verdicts import judge_change, judge_environments
from everlearn.metrics.environments import Found as Detected
from everlearn.report import Finished, Group, Table
from everlearn.report.chapter import Chapter
from everlearn.report.numbers import NONE

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "VASE through five environments", "Achille et al. 2018, Figure 3"
CLAIM = "Environments are told apart without labels or announcements, and earlier ones are kept."
COST = {SMALL: "1 minute", PAPER: "12 minutes, with MNIST and Fashion-MNIST"}
PART = "vase-fig3-latents"
PARTS = (PART,)
_NOTE = (
    "Batches: of each environment until a new one was opened, – where none was; of every seed. False: "
    "environments opened where none began."
)


def _settings(scale: str) -> Settings:
    ours = B[scale].ablation(VASE, seeds=of_paper(scale, MORE_SEEDS))
    return Settings((ours, B[scale].ablation(PLAIN)))


SETTINGS = {scale: _settings(scale) for scale in (SMALL, PAPER)}


def run(lab: Lab) -> None:
    """Let both learn, where their data are, and draw what latents do."""
    learn_and_traverse(lab, lab.settings(SETTINGS).trials, PART)


def figure(found: Found) -> Chapter:
    """Curves, environments found, latents by environment, and traversals."""
    return draw_chapter(found, SETTINGS, PART, (judge_environments, judge_change), _table)


def _table(groups: Sequence[Group]) -> Table:
    """What every seed opened, and when."""
    rows = [_cells(run, one) for run in runs_of(groups) if (one := detected(run)) is not None]
    head = ["seed", "environments", "batches", "false", "latents", "change of accuracy, points"]
    return Table("Environments found", head, rows, _NOTE)


def _cells(run: Finished, one: Detected) -> list[str]:
    delays = [NONE if np.isnan(delay) else f"{delay:.0f}" for delay in one.delays]
    count = used(run)
    return [
        str(run.seed),
        f"{one.opened} of {one.true}",
        ", ".join(delays),
        str(one.false),
        NONE if count is None else str(count),
        spread(Group(run.label, run.method, [run]), "change"),
    ]
