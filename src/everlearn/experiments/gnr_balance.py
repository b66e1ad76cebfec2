"""Balance: rows of new classes that are longer than old ones win, whatever is replayed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.gnr import LABELS, MODES, NC, RATED, RATES, once, with_rate
from everlearn.experiments.gnr_modes import FINAL, apart
from everlearn.experiments.read import lines, mean, shown
from everlearn.experiments.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.verdicts import own
from everlearn.report import Finished, Group, Table
from everlearn.report.chapter import Chapter
from everlearn.report.lines import Line
from everlearn.report.spread import over_seeds

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "The balance of rows", "ours"
CLAIM = (
    "CWR* levels the means of rows, not their lengths: the rate of the head, more than the kind of replay, "
    "says which mode is best."
)


def _sweep(scale: str) -> list[Trial]:
    """Some modes by rate, the rate of the other experiments among them."""
    return [
        trial
        for mode in RATED[scale]
        for trial in (
            once(NC[scale].trial(mode)),
            *(with_rate(scale, mode, rate) for rate in RATES[scale]),
        )
    ]


def _trials(scale: str) -> tuple[Trial, ...]:
    usual = {trial.name: trial for trial in (NC[scale].trial(mode) for mode in MODES)}
    return tuple({**{trial.name: trial for trial in _sweep(scale)}, **usual}.values())


SETTINGS = {scale: Settings(_trials(scale)) for scale in (SMALL, PAPER)}
COST = {SMALL: "seconds after gnr-nc", PAPER: "3 minutes after gnr-nc"}
_NOTE = (
    "Ratio: mean length of the rows of an experience's classes over that of all others, mean over the "
    "experiences after the first. One seed."
)


def run(lab: Lab) -> None:
    """Let all learn."""
    lab.learn(lab.settings(SETTINGS).trials)


def figure(found: Found) -> Chapter:
    """The ratio of lengths after every experience, and what rates make of it and of accuracy."""
    trials = found.settings(SETTINGS).trials
    usual = {f"gnr-nc-{mode}" for mode in MODES}
    groups = apart(found.groups(trial for trial in trials if trial.name in usual))
    drawn = [line for group in groups for line in _lines(group)]
    caption = (
        "Length of the rows of new classes over that of old ones, after experience by experience."
    )
    figures = lines(drawn, "gnr-balance", "experiences", "ratio of lengths", caption, top=None)
    swept = [(trial, group) for trial in _of_rates(trials) for group in found.groups([once(trial)])]
    tables = [_table(swept)] if swept else []
    verdicts = [own("The best mode at each rate of the head", _best(swept))]
    runs = runs_of(found.groups(trials))
    return Chapter(figures, tables, [], verdicts, runs, found.missing(trials))


def _of_rates(trials: Sequence[Trial]) -> list[Trial]:
    """The trials of the sweep, by rate."""
    modes = {trial.settings["mode"] for trial in trials if trial.name.startswith("gnr-rate-")}
    some = [trial for trial in trials if trial.settings["mode"] in modes]
    return sorted(some, key=lambda trial: float(trial.settings["later_head_rate"]))


def ratios(run: Finished) -> NDArray[np.float64]:
    """New over old, after every experience but the first, (K,); nan where it was not told."""
    notes = [row.get("notes", {}) for row in run.costs if row["kind"] == "task" and row["learned"]]
    pairs = [(note.get("new_norm"), note.get("old_norm")) for note in notes]
    return np.array([new / old if new is not None and old else np.nan for new, old in pairs])


def _lines(group: Group) -> list[Line]:
    """A line, where all seeds tell all of it."""
    seeds = [ratios(run) for run in group.runs]
    if not len(seeds[0]) or len({len(values) for values in seeds}) > 1:
        return []
    values = np.stack(seeds)
    if np.isnan(values).any():
        return []
    x = np.arange(2, values.shape[1] + 2)
    return [Line(group.label, group.method, x, *over_seeds(values))]


def _table(swept: Sequence[tuple[Trial, Group]]) -> Table:
    rows = [
        [
            LABELS[trial.settings["mode"]],
            f"{trial.settings['later_head_rate']:g}",
            shown(mean(group, FINAL)),
            shown(_ratio(group)),
        ]
        for trial, group in swept
    ]
    head = ["mode", "later rate of the head", "accuracy at the end", "ratio of lengths"]
    return Table("Rates of the head", head, rows, _NOTE)


def _ratio(group: Group) -> float | None:
    values = ratios(group.runs[0])
    told = values[~np.isnan(values)]
    return float(told.mean()) if len(told) else None


def _best(swept: Sequence[tuple[Trial, Group]]) -> str:
    """Of every rate the mode that ends highest."""
    by_rate: dict[float, dict[str, float]] = {}
    for trial, group in swept:
        end = mean(group, FINAL)
        if end is not None:
            rate = by_rate.setdefault(trial.settings["later_head_rate"], {})
            rate[LABELS[trial.settings["mode"]]] = end
    best = {rate: max(ends, key=lambda mode: ends[mode]) for rate, ends in by_rate.items()}
    return "; ".join(f"{rate:g}: {mode}, {by_rate[rate][mode]:.3f}" for rate, mode in best.items())
