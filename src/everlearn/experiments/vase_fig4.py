"""Codes taken from one environment to another, and images that could be of two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.pictures import pictures
from everlearn.experiments.read import lines
from everlearn.experiments.trial import PAPER, SMALL, Settings, at_scale
from everlearn.experiments.vase import PAIR, VASE, A, B, note_data
from everlearn.experiments.verdicts import listed, statement
from everlearn.metrics.rows import Floats, of_kind
from everlearn.report import Table
from everlearn.report.chapter import Chapter, Figure
from everlearn.report.lines import Line
from everlearn.report.spread import over_seeds
from everlearn.report.verdict import Verdict
from everlearn.results import Row

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "VASE across environments", "Achille et al. 2018, Figure 4"
CLAIM = (
    "Shared latents mean the same in two environments, and an image that could be of either is read by "
    "what is around it."
)
COST = {SMALL: "seconds after vase-fig3", PAPER: "4 minutes after vase-table1 and vase-fig3"}
CROSSING, AMBIGUITY = "vase-fig4-crossing", "vase-fig4-ambiguity"
PARTS = (CROSSING, AMBIGUITY)
# Shares of a batch that are images of the first environment or, below 0, of the second.
CONTEXTS = (-0.5, -0.25, 0.0, 0.25, 0.5)
_KEPT = 0.5  # of the distance to the place of any image
_LOW, _HIGH, _STEEP = 0.1, 0.9, 0.3
_BY = {"errors": "errors of reconstruction", "classifier": "the classifier"}
_NOTE = (
    "Root of the mean squared distance between the centre of mass of what is drawn and that of the image, "
    "as a share of the canvas. Any: to the place of another image, which is what nothing kept would give."
)


# Where codes are taken across, between which two environments; and where mixtures are asked about.
CROSSED = {
    SMALL: ((PAIR[SMALL], ("moving-sprites", "moving-sprites-1")),),
    PAPER: (
        (PAIR[PAPER], ("moving-fashion-mnist", "inverse-moving-mnist")),
        (A[PAPER], ("moving-fashion-mnist", "moving-mnist")),
    ),
}
MIXED = {
    SMALL: ("scaled-turned-sprites", "moving-sprites"),
    PAPER: ("mnist", "inverse-fashion-mnist"),
}


def _settings(scale: str, **numbers: object) -> Settings:
    courses = [*(course for course, _ in CROSSED[scale]), B[scale]]
    every = {trial.name: trial for trial in (course.ablation(VASE) for course in courses)}
    return Settings(tuple(every.values()), numbers)


SETTINGS = {
    SMALL: _settings(SMALL, images=128, weights=11),
    PAPER: _settings(PAPER, images=2048, weights=41),
}


def run(lab: Lab) -> None:
    """Let VASE learn, where its data are; take codes across, and ask about mixtures."""
    settings = lab.settings(SETTINGS)
    if lab.lacks_data(settings.trials):
        return
    lab.learn(settings.trials)
    from everlearn.experiments.vase_across import cross, mix

    told = settings.numbers
    crossed = [(course.ablation(VASE), pair) for course, pair in at_scale(CROSSED, lab.scale)]
    trials, pairs = [trial for trial, _ in crossed], [pair for _, pair in crossed]
    asked = {"pairs": pairs, "images": told["images"]}
    lab.measure(CROSSING, asked, lambda: cross(lab, trials, **asked), trials)
    mixing = {**told, "mixed": at_scale(MIXED, lab.scale), "contexts": CONTEXTS}
    trial = at_scale(B, lab.scale).ablation(VASE)
    lab.measure(AMBIGUITY, mixing, lambda: mix(lab, trial, **mixing), [trial])


def figure(found: Found) -> Chapter:
    """Distances of what is taken across, and curves of mixtures."""
    settings = found.settings(SETTINGS)
    rows = {part: found.rows(part) for part in PARTS}
    crossed, mixed = of_kind(rows[CROSSING], "crossing"), of_kind(rows[AMBIGUITY], "mixture")
    curves = {by: probabilities(mixed, by) for by in _BY}
    figures = [one for by in _BY for one in _figures(curves[by], by, at_scale(MIXED, found.scale))]
    groups = found.groups(settings.trials)
    missing = [*found.missing(settings.trials), *(part for part in PARTS if not rows[part])]
    shown = [picture for part in PARTS for picture in pictures(rows[part])]
    pairs = [pair for _, pair in at_scale(CROSSED, found.scale)]
    verdicts = [*(judge_crossing(crossed, pair) for pair in pairs), *judge_mixing(curves["errors"])]
    return Chapter(
        figures, [_table(crossed)] if crossed else [], shown, verdicts, runs_of(groups), missing,
        note_data(missing, found.scale), found.origins(*PARTS),
    )  # fmt: skip


def distance(rows: Iterable[Row], name: str) -> float | None:
    """Root of the mean squared distance, over all images of some rows."""
    some = list(rows)
    total = sum(row["total"] for row in some)
    return float(np.sqrt(sum(row[name] for row in some) / total)) if total else None


def judge_crossing(rows: Sequence[Row], pair: Sequence[str]) -> Verdict:
    """Whether what is taken across stays where it was, by half of the distance between any two images."""
    some = [row for row in rows if {row["source"], row["target"]} == set(pair)]
    told = {name: distance(some, name) for name in ("within", "across", "any")}
    across, free = told["across"], told["any"]
    return statement(
        f"An item drawn in the other environment stays where it was ({', '.join(pair)})", listed(told),
        None if across is None or free is None else across <= _KEPT * free,
        "root of the mean squared distance, share of the canvas; half of that to any image at most",
    )  # fmt: skip


def _table(rows: Sequence[Row]) -> Table:
    body = [
        [
            str(row["seed"]), f"{row['source']} to {row['target']}",
            *(f"{distance([row], name):.3f}" for name in ("within", "across", "any")),
        ]
        for row in rows
    ]  # fmt: skip
    head = ["seed", "environments", "drawn where it was", "drawn in the other", "any"]
    return Table("Distances of items", head, body, _NOTE)


Curves = dict[float, tuple[Floats, Floats]]


def probabilities(rows: Iterable[Row], by: str) -> Curves:
    """Weights (W,) and, seed by seed, how likely the first of the two is (S, W), by context."""
    found: dict[float, list[Row]] = {}
    for row in rows:
        if row["by"] == by:
            found.setdefault(row["context"], []).append(row)
    return {
        context: (np.array(some[0]["weights"]), np.stack([_share(row) for row in some]))
        for context, some in sorted(found.items())
    }


def _share(row: Row) -> Floats:
    first, second = np.array(row["first"], float), np.array(row["second"], float)
    both = first + second
    return np.where(both > 0, first / np.where(both > 0, both, 1), 0.5)


def _figures(curves: Curves, by: str, names: Sequence[str]) -> list[Figure]:
    first, second = names
    drawn = [
        Line(_context(context, first, second), f"context {number}", weights, *over_seeds(values))
        for number, (context, (weights, values)) in enumerate(curves.items())
    ]
    drawn = [line._replace(low=line.low.clip(0, 1), high=line.high.clip(0, 1)) for line in drawn]
    caption = (
        f"How likely it is, by {_BY[by]}, that a batch is of {first} and not of {second}: its images are "
        f"mixtures of both, but for the part that is said."
    )
    x, y = f"weight of {first} in a mixture", f"of {first}, not of {second}"
    return lines(drawn, f"vase-fig4-{by}", x, y, caption)


def _context(context: float, first: str, second: str) -> str:
    return (
        "mixtures alone"
        if not context
        else f"{abs(context):.0%} {first if context > 0 else second}"
    )


def crossing(weights: Floats, chances: Floats, level: float = 0.5) -> float:
    """The weight from which on chances (W,) are over a level: 0 if always, 1 if never."""
    below = np.flatnonzero(chances < level)
    if not len(below):
        return 0.0
    last = int(below[-1])
    if last == len(weights) - 1:
        return 1.0
    part = (level - chances[last]) / (chances[last + 1] - chances[last])
    return float(weights[last] + part * (weights[last + 1] - weights[last]))


def judge_mixing(curves: Mapping[float, tuple[Floats, Floats]]) -> list[Verdict]:
    """Whether mixtures are taken for one or the other, and sooner for what is around them."""
    means = {context: (weights, values.mean(0)) for context, (weights, values) in curves.items()}
    steps = {context: crossing(*pair) for context, pair in means.items()}
    shifts = list(steps.values())
    wide = width(*means[0.0]) if 0.0 in means else None
    return [
        statement(
            "Mixtures are taken for one or the other",
            "" if wide is None else f"from 0.1 to 0.9 within {wide:.2f} of the weight",
            None if wide is None else wide <= _STEEP, "by errors, mixtures alone; within 0.3 at most",
        ),
        statement(
            "They are taken for what is around them sooner",
            listed({f"{context:+.2f}": step for context, step in steps.items()}, 2),
            None if len(steps) < 2 else shifts == sorted(shifts, reverse=True) and shifts[0] > shifts[-1],
            "weight at which both are as likely, by the share of a batch that is of the first, or of the "
            "second if below 0",
        ),
    ]  # fmt: skip


def width(weights: Floats, chances: Floats) -> float:
    """How far the weights are apart from which on chances are over a tenth and over nine; 1 if never."""
    if chances[0] > _LOW or chances[-1] < _HIGH:
        return 1.0
    return crossing(weights, chances, _HIGH) - crossing(weights, chances, _LOW)
