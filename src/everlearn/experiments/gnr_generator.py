"""How good a generator must be before what it makes can teach, not only warn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.gnr import BETAS, LABELS, NC, plain, with_beta
from everlearn.experiments.gnr_modes import FINAL
from everlearn.experiments.read import mean
from everlearn.experiments.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.verdicts import own
from everlearn.report import Finished, Group, Table
from everlearn.report.chapter import Chapter
from everlearn.report.numbers import NONE

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "How good the generator is", "ours"
CLAIM = (
    "Negative replay is for poor generators: the better what is replayed is recognised, the better it "
    "teaches."
)
_MODES = ("pr-gd", "nr-gd")
_USUAL = 0.1
_NOTE = (
    "Beta: the weight of the divergence from the prior; where it is small, codes of real latents lie far "
    "from those that are drawn, and tell the class, so that the label is not heeded. Recognised: of what "
    "is replayed, named as it is labelled by the classifier as it was before the experience, mean over "
    "experiences after the first. New classes, one seed."
)


def _trials(scale: str) -> tuple[Trial, ...]:
    poor = [plain(scale, mode) for mode in _MODES]
    usual = [NC[scale].trial(mode) for mode in _MODES]
    better = [with_beta(scale, mode, beta) for beta in BETAS[scale] for mode in _MODES]
    return (*poor, *usual, *better)


SETTINGS = {scale: Settings(_trials(scale)) for scale in (SMALL, PAPER)}
COST = {SMALL: "1 minute", PAPER: "2 minutes after gnr-nc"}


def run(lab: Lab) -> None:
    """Let all learn."""
    lab.learn(lab.settings(SETTINGS).trials)


def figure(found: Found) -> Chapter:
    """A table: what is recognised, and where both modes end."""
    trials = found.settings(SETTINGS).trials
    swept = [(trial, group) for trial in trials for group in found.groups([trial])]
    tables = [_table(swept)] if swept else []
    verdicts = [own("Negative less positive replay, by beta", _gaps(swept))]
    runs = runs_of([group for _, group in swept])
    return Chapter([], tables, [], verdicts, runs, found.missing(trials))


def recognised(run: Finished) -> float | None:
    """The share of replayed patterns that the classifier named as labelled, mean over experiences."""
    told = [row.get("notes", {}).get("recognised") for row in run.costs]
    known = [share for share in told if share is not None]
    return sum(known) / len(known) if known else None


def _beta(trial: Trial) -> float:
    return float(trial.settings.get("beta", _USUAL))


def _table(swept: Sequence[tuple[Trial, Group]]) -> Table:
    rows = [
        [
            f"{_beta(trial):g}",
            LABELS[trial.settings["mode"]],
            _words(recognised(group.runs[0])),
            _words(mean(group, FINAL)),
        ]
        for trial, group in swept
    ]
    head = ["beta", "mode", "recognised", "accuracy at the end"]
    return Table("Generators", head, rows, _NOTE)


def _gaps(swept: Sequence[tuple[Trial, Group]]) -> str:
    ends: dict[float, dict[str, float]] = {}
    for trial, group in swept:
        end = mean(group, FINAL)
        if end is not None:
            ends.setdefault(_beta(trial), {})[trial.settings["mode"]] = end
    both = {beta: of["nr-gd"] - of["pr-gd"] for beta, of in ends.items() if len(of) == len(_MODES)}
    return "; ".join(f"{beta:g}: {gap:+.3f}" for beta, gap in sorted(both.items()))


def _words(value: float | None) -> str:
    return NONE if value is None else f"{value:.3f}"
