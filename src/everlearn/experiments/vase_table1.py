"""Ablations of VASE: what environments, dreams and masks are worth, disentangled and entangled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.learners import SEEDS
from everlearn.experiments.read import shown
from everlearn.experiments.trial import PAPER, SMALL, Settings
from everlearn.experiments.vase import ABLATIONS, MORE_SEEDS, PLAIN, VASE, A, label_of, note_data
from everlearn.experiments.vase_read import average, detected, spread, used, values
from everlearn.experiments.vase_verdicts import (
    judge_ablations,
    judge_environments,
    judge_errors,
    judge_latents,
    tell_lowest,
)
from everlearn.report import Group, Table
from everlearn.report.chapter import Chapter, Figure
from everlearn.report.chart import Bar, draw_bars
from everlearn.report.numbers import NONE

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "VASE and its ablations", "Achille et al. 2018, Table 1"
CLAIM = (
    "Environments, dreams and masks together forget least; masks alone do harm, and a capacity that grows "
    "helps."
)
COST = {SMALL: "1 minute", PAPER: "40 minutes, with MNIST and Fashion-MNIST"}
# Accuracy at its best and its change, percent; least squared error of position and its change, in 1e-4.
_DISENTANGLED = {
    "none": (88.6, -15.2, 3.5, 24.8), "S": (88.9, -13.9, 3.4, 22.5), "D": (88.6, -14.4, 3.3, 21.4),
    "A": (86.7, -24.5, 3.3, 67.6), "SA": (87.1, -28.1, 3.3, 78.9), "DA": (86.3, -25.2, 3.3, 72.2),
    "SD": (88.3, -12.9, 3.4, 20.0), "SDA": (88.6, -5.4, 3.2, 3.0),
}  # fmt: skip
_ENTANGLED = {
    "none": (91.8, -12.1, 4.2, 10.5), "S": (91.7, -12.2, 4.5, 10.9), "D": (91.8, -12.4, 4.3, 11.7),
    "A": (88.6, -19.7, 4.5, 47.1), "SA": (89.9, -18.3, 4.8, 41.8), "DA": (88.8, -19.4, 4.6, 40.2),
    "SD": (91.4, -11.7, 4.3, 11.6), "SD-[41]": (91.9, -11.6, 4.7, 10.2), "SDA": (91.5, -6.5, 4.2, 3.9),
}  # fmt: skip
PUBLISHED = {
    **{label_of(name): numbers for name, numbers in _DISENTANGLED.items()},
    **{label_of(name, True): numbers for name, numbers in _ENTANGLED.items()},
}
_TOLD = ("best", "change", "place", "place_change")  # in the paper's table
_COLUMNS = {
    "best": "accuracy at its best, %",
    "change": "its change",
    "lowest": "at its lowest",
    "place": "position, 1e-4",
    "place_change": "its change",
}
_SEVERAL = (PLAIN, "SD", VASE)
_NOTE = (
    "Probes are trained anew each time. Change: from the end of the stage in which an environment was "
    "learned to the end of all, or to where it was lowest on the way, mean over those before the last; "
    "position: mean squared error, from 0 to 1 across. VASE has S (environments), D (dreams) and A "
    "(masks), CCI-VAE none of them; [41] holds codes of dreams alone. Mean and standard deviation over "
    "seeds, where there are several."
)
_NOTE_FOUND = (
    "Error: nats of an image of the first environment, when it was left and in the end. Exact: seeds in "
    "which one environment was opened in each stage and none elsewhere."
)


def _seeds(name: str, entangled: bool) -> tuple[int, ...]:
    if name == VASE and not entangled:
        return MORE_SEEDS
    return SEEDS if name in _SEVERAL else (0,)


SETTINGS = {
    SMALL: Settings(tuple(A[SMALL].ablation(name) for name in (PLAIN, VASE))),
    PAPER: Settings(
        tuple(
            A[PAPER].ablation(name, entangled, _seeds(name, entangled))
            for entangled in (False, True)
            for name in ABLATIONS
        )
    ),
}


def run(lab: Lab) -> None:
    """Let all learn, where their data are."""
    trials = lab.settings(SETTINGS).trials
    if not lab.lacks_data(trials):
        lab.learn(trials)


def figure(found: Found) -> Chapter:
    """The paper's table, ours beside it, and what was found of environments."""
    trials = found.settings(SETTINGS).trials
    groups = found.groups(trials)
    tables = [_scores(groups), _found(groups)] if groups else []
    missing = found.missing(trials)
    verdicts = [
        *judge_ablations(_by_label(groups, "change"), _by_label(groups, "best")),
        judge_environments(groups),
        judge_errors(groups),
        judge_latents(groups),
        tell_lowest(_by_label(groups, "lowest")),
    ]
    note = note_data(missing, found.scale)
    return Chapter(_bars(groups), tables, [], verdicts, runs_of(groups), missing, note)


def _by_label(groups: Sequence[Group], name: str) -> dict[str, float]:
    found = {group.label: average(group, name) for group in groups}
    return {label: value for label, value in found.items() if value is not None}


def _bars(groups: Sequence[Group]) -> list[Figure]:
    """How accuracy changes, a bar an ablation."""
    bars = [
        Bar(
            group.label, "beta-vae" if "entangled" in group.label else "vase", float(mean),
            min(values(group, "change")), max(values(group, "change")),
        )
        for group in groups
        if (mean := average(group, "change")) is not None
    ]  # fmt: skip
    if not bars:
        return []
    x = "change of accuracy, percent points"
    caption = (
        "What probes lose of an environment after it was left; the line goes from seed to seed."
    )
    return [Figure(draw_bars(bars, "vase-table1", x, f"{x}, by ablation"), caption)]


def _scores(groups: Sequence[Group]) -> Table:
    rows = [[group.label, str(len(group.runs)), *_beside(group)] for group in groups]
    head = ["ablation", "seeds"]
    for name, title in _COLUMNS.items():
        head += [title, "paper"] if name in _TOLD else [title]
    return Table("Probes of codes", head, rows, _NOTE)


def _beside(group: Group) -> list[str]:
    """Each number of ours, and the paper's after it where there is one."""
    told = PUBLISHED.get(group.label)
    theirs = dict.fromkeys(_TOLD, NONE)
    if told is not None:
        theirs = {name: _signed(value) for name, value in zip(_TOLD, told, strict=True)}
    cells = []
    for name in _COLUMNS:
        cells += [spread(group, name), *([theirs[name]] if name in theirs else [])]
    return cells


def _signed(value: float) -> str:
    return f"{value:.1f}".replace("-", "−")


def _found(groups: Sequence[Group]) -> Table:
    rows = [
        [group.label, *_detected(group), spread(group, "own"), spread(group, "end"), _used(group)]
        for group in groups
    ]
    head = ["ablation", "environments", "exact", "error, when left", "in the end", "latents"]
    return Table("Environments, errors and latents", head, rows, _NOTE_FOUND)


def _detected(group: Group) -> list[str]:
    found = [one for run in group.runs if (one := detected(run)) is not None]
    if not found:
        return [NONE, NONE]
    opened = ", ".join(str(one.opened) for one in found)
    return [opened, f"{sum(one.exact for one in found)} of {len(found)}"]


def _used(group: Group) -> str:
    counts = [count for run in group.runs if (count := used(run)) is not None]
    return shown(sum(counts) / len(counts), 1) if counts else NONE
