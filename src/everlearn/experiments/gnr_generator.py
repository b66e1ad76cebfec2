"""How good what is replayed must be before it can teach, not only warn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.gnr import BETAS, NC, NIC, with_beta
from everlearn.experiments.gnr_modes import FINAL
from everlearn.experiments.trial import PAPER, SMALL, Settings, Trial, at_scale
from everlearn.experiments.verdicts import own
from everlearn.report import Finished, Table
from everlearn.report.chapter import Chapter, Figure
from everlearn.report.chart import Dot, draw_dots

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "When negative replay pays", "ours"
CLAIM = (
    "Negative replay is for data that the classifier itself would not recognise; what it recognises "
    "teaches more as positives."
)
_NOTE = (
    "Recognised: of what is replayed, named as it is labelled by the classifier as it was before the "
    "experience, mean over experiences after the first and over both runs. Beta: the weight of the "
    "generator's divergence from its prior; where it is small, codes tell the class and the label is not "
    "heeded."
)


class _Kind(NamedTuple):
    """Two trials that differ in how they replay alone.

    Attributes:
        look: tells kinds of dots apart.
    """

    label: str
    look: str
    positive: Trial
    negative: Trial


class _Pair(NamedTuple):
    """What a seed of both came to."""

    label: str
    look: str
    seed: int
    recognised: float
    positive: float
    negative: float

    @property
    def gain(self) -> float:
        """How much negative replay is ahead."""
        return self.negative - self.positive


def _kinds(scale: str) -> list[_Kind]:
    new, both = NC[scale], NIC[scale]
    out = [
        _Kind(
            f"NC, {data.upper()}",
            f"gnr nr-{data}",
            new.trial(f"pr-{data}"),
            new.trial(f"nr-{data}"),
        )
        for data in ("gd", "rd", "od")
    ]
    out.append(_Kind("NIC, GD", "gnr pr-gd", both.trial("pr-gd"), both.trial("nr-gd")))
    return out + [
        _Kind(
            f"NC, beta {beta}", "gnr pr-od", with_beta(scale, "pr-gd", beta),
            with_beta(scale, "nr-gd", beta),
        )
        for beta in BETAS[scale]
    ]  # fmt: skip


_KINDS = {scale: _kinds(scale) for scale in (SMALL, PAPER)}
SETTINGS = {
    scale: Settings(tuple(trial for kind in kinds for trial in (kind.positive, kind.negative)))
    for scale, kinds in _KINDS.items()
}
COST = {SMALL: "1 minute", PAPER: "3 minutes after gnr-nc and gnr-nic"}


def run(lab: Lab) -> None:
    """Let all learn."""
    lab.learn(lab.settings(SETTINGS).trials)


def figure(found: Found) -> Chapter:
    """How far negative replay is ahead against what is recognised, a dot a seed."""
    pairs = [pair for kind in at_scale(_KINDS, found.scale) for pair in _pairs(found, kind)]
    trials = found.settings(SETTINGS).trials
    tables = [_table(pairs)] if pairs else []
    verdicts = [own("Negative less positive replay, by the share recognised", _words(pairs))]
    runs = runs_of(found.groups(trials))
    return Chapter(_dots(pairs), tables, [], verdicts, runs, found.missing(trials))


def _pairs(found: Found, kind: _Kind) -> Iterator[_Pair]:
    """A pair a seed that both have, where both tell what was recognised."""
    positive, negative = (_by_seed(found, trial) for trial in (kind.positive, kind.negative))
    for seed in sorted(positive.keys() & negative.keys()):
        runs = positive[seed], negative[seed]
        shares = [share for run in runs if (share := recognised(run)) is not None]
        ends = [end for run in runs if (end := run.summary[FINAL]) is not None]
        if len(shares) == len(ends) == len(runs):
            yield _Pair(kind.label, kind.look, seed, sum(shares) / len(shares), *ends)


def _by_seed(found: Found, trial: Trial) -> dict[int, Finished]:
    return {run.seed: run for group in found.groups([trial]) for run in group.runs}


def recognised(run: Finished) -> float | None:
    """The share of replayed patterns that the classifier named as labelled, mean over experiences."""
    told = [row.get("notes", {}).get("recognised") for row in run.costs]
    known = [share for share in told if share is not None]
    return sum(known) / len(known) if known else None


def _dots(pairs: Sequence[_Pair]) -> list[Figure]:
    if not pairs:
        return []
    dots = [Dot(f"{p.label}, {p.seed}", p.look, 100 * p.recognised, 100 * p.gain) for p in pairs]
    x, y = "% of what is replayed is recognised", "points that negatives are ahead"
    svg = draw_dots(dots, "gnr-generator", x, y, f"{y}, against what is recognised", log=False)
    caption = (
        "How far negative replay ends above positive replay, accuracy on all classes; the number is the "
        "seed's. Above 0 negatives are better."
    )
    return [Figure(svg, caption)]


def _table(pairs: Sequence[_Pair]) -> Table:
    rows = [
        [
            pair.label,
            str(pair.seed),
            *(f"{value:.3f}" for value in (pair.recognised, pair.positive, pair.negative)),
            f"{pair.gain:+.3f}",
        ]
        for pair in sorted(pairs, key=lambda pair: pair.recognised)
    ]
    head = ["stream and data", "seed", "recognised", "positive", "negative", "difference"]
    return Table("Pairs of runs", head, rows, _NOTE)


def _words(pairs: Sequence[_Pair]) -> str:
    """The mean difference of pairs below and above a quarter."""
    low = [pair.gain for pair in pairs if pair.recognised < 0.25]
    high = [pair.gain for pair in pairs if pair.recognised >= 0.25]
    parts = {"below a quarter": low, "above": high}
    told = {name: sum(gains) / len(gains) for name, gains in parts.items() if gains}
    return "; ".join(
        f"{name}: {value:+.3f} ({len(parts[name])} pairs)" for name, value in told.items()
    )
