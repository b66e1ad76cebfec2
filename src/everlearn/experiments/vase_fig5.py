"""Imagination: digits that have only been seen standing still are read where they move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.learners import SEEDS
from everlearn.experiments.pictures import pictures
from everlearn.experiments.trial import PAPER, SMALL, Settings
from everlearn.experiments.vase import TWO, VASE, each_seed, note_data, of_paper
from everlearn.experiments.verdicts import listed, own, statement
from everlearn.metrics import share
from everlearn.metrics.rows import of_kind
from everlearn.report import Bar, draw_bars
from everlearn.report.chapter import Chapter, Figure
from everlearn.report.verdict import Verdict
from everlearn.results import Row

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "Imagination of VASE", "Achille et al. 2018, Figure 5"
CLAIM = (
    "What varied in a past environment can be imagined of items of another: probes learn from that what "
    "has not been seen."
)
COST = {SMALL: "half a minute", PAPER: "3 minutes, with MNIST and Fashion-MNIST"}
PART = "vase-fig5"
PARTS = (PART,)
# What probes learn from.
STILL, MOVING = "items that stand still", "items that move"
CODES, HERE, PAST = "imagined codes", "imagined images", "imagined images, drawn as in the past"
_IMAGINED = (CODES, HERE, PAST)
_LEAST = 15.0  # percent points
_WHY = "accuracy on items that move, percent, mean over seeds"


def _settings(scale: str, items: int, tests: int, still: str, moving: str) -> Settings:
    trial = TWO[scale].ablation(VASE, seeds=of_paper(scale, SEEDS))
    return Settings((trial,), {"items": items, "tests": tests, "pair": (still, moving)})


SETTINGS = {
    SMALL: _settings(SMALL, 500, 500, "turned-sprites-1", "moving-sprites-1"),
    PAPER: _settings(PAPER, 10_000, 10_000, "mnist", "moving-mnist"),
}


def run(lab: Lab) -> None:
    """Let VASE learn two environments, where their data are, and probe what it imagines."""
    settings = lab.settings(SETTINGS)
    if lab.lacks_data(settings.trials):
        return
    lab.learn(settings.trials)
    from everlearn.experiments.vase_imagination import probe

    each, asked = each_seed(settings.trials[0]), dict(settings.numbers)
    lab.measure(PART, asked, lambda: probe(lab, each, **asked), each)


def figure(found: Found) -> Chapter:
    """A bar a kind of lesson, and some of what was imagined."""
    trials, rows = found.settings(SETTINGS).trials, found.rows(PART)
    told = accuracies(of_kind(rows, "lesson"))
    drawn = of_kind(rows, "latents")
    missing = [*found.missing(trials), *([] if rows else [PART])]
    free = "; ".join(f"seed {row['seed']}: {len(row['latents'])}" for row in drawn)
    return Chapter(
        _bars(told), [], pictures(rows), [*judge(told), own("Latents that are drawn", free)],
        runs_of(found.groups(trials)), missing, note_data(missing, found.scale), found.origins(PART),
    )  # fmt: skip


def accuracies(rows: Sequence[Row]) -> dict[str, list[float]]:
    """Percent of items that move whose class is read right, seed by seed, by lesson."""
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row["lesson"], []).append(100 * float(share(row["right"], row["total"])))
    return found


def judge(told: Mapping[str, Sequence[float]]) -> list[Verdict]:
    """Whether each kind of imagination gives probes 15 points over items that stand still."""
    means = {lesson: float(np.mean(values)) for lesson, values in told.items()}
    verdicts = []
    for lesson in _IMAGINED:
        some = {name: means.get(name) for name in (lesson, STILL, MOVING)}
        holds = means[lesson] - means[STILL] >= _LEAST if {lesson, STILL} <= means.keys() else None
        words = f"Probes learn 15 points more from {lesson} than from {STILL}"
        verdicts.append(statement(words, listed(some, 1), holds, _WHY))
    return verdicts


def _bars(told: Mapping[str, Sequence[float]]) -> list[Figure]:
    bars = [
        Bar(lesson, f"context {number}", float(np.mean(values)), min(values), max(values))
        for number, (lesson, values) in enumerate(told.items())
    ]
    x = "% of items that move are read right"
    caption = (
        "What a probe learns from, and how well it reads items that move; it has seen none of them, but "
        "for the last bar. Lines go from seed to seed. Imagined: latents that were used in the past and "
        "are masked now are drawn at random; images are drawn as in the present environment, whose decoder "
        "has learned to heed no masked latent, or as in the past one, and encoded again."
    )
    return [Figure(draw_bars(bars, "vase-fig5", x, f"{x}, by lesson"), caption)] if bars else []
