"""What is replayed, and how: original, generated and random data as positives and as negatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from everlearn.experiments import gnr_nc, gnr_nic
from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.gnr import NC, NIC
from everlearn.experiments.gnr_modes import FINAL, apart, compare, ends_of, spread
from everlearn.experiments.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.verdicts import listed, statement
from everlearn.report import Group, Table
from everlearn.report.chapter import Chapter, Figure
from everlearn.report.chart import Bar, draw_bars
from everlearn.report.numbers import NONE
from everlearn.report.verdict import Verdict

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "Positive or negative, and of what", "Graffieti et al. 2022"
CLAIM = "The poorer the data, the more negative replay gains over positive; of real data it loses little."
SETTINGS = {
    scale: Settings((*NC[scale].trials(), *NIC[scale].trials())) for scale in (SMALL, PAPER)
}
COST = {
    SMALL: "nothing beyond gnr-nc and gnr-nic",
    PAPER: "nothing beyond gnr-nc and gnr-nic",
}
_NOTE = (
    "Accuracy on all classes at the end, mean and standard deviation over seeds where there are several. "
    "The paper's are of CORe50; what it says in words stands as words."
)
_WORDS = {"NC": "new classes", "NIC": "new instances and classes"}


def run(lab: Lab) -> None:
    """Let all learn."""
    lab.learn(lab.settings(SETTINGS).trials)


def figure(found: Found) -> Chapter:
    """A bar a mode and stream, and all of them in one table."""
    trials = found.settings(SETTINGS).trials
    streams = {name: found.groups(_of(trials, name)) for name in _WORDS}
    figures = [drawn for name, groups in streams.items() for drawn in _bars(name, groups)]
    tables = [_table(streams)] if any(streams.values()) else []
    verdicts = [verdict for name, groups in streams.items() for verdict in _judge(name, groups)]
    runs = [run for groups in streams.values() for run in runs_of(groups)]
    return Chapter(figures, tables, [], verdicts, runs, found.missing(trials))


def _of(trials: tuple[Trial, ...], name: str) -> list[Trial]:
    return [trial for trial in trials if trial.name.startswith(f"gnr-{name.lower()}-")]


def _judge(name: str, groups: list[Group]) -> list[Verdict]:
    ends = ends_of(groups)
    asked = [(data, f"NR-{data}", f"PR-{data}") for data in ("GD", "RD")]
    verdicts = [
        statement(
            f"{name}: {data} ends higher as negatives",
            listed({label: ends.get(label) for label in (first, second)}),
            compare(ends, first, second),
            "accuracy on all classes at the end",
        )
        for data, first, second in asked
    ]
    real = listed({label: ends.get(label) for label in ("PR-OD", "NR-OD")})
    holds = compare(ends, "PR-OD", "NR-OD", -0.02)
    return [
        *verdicts,
        statement(f"{name}: OD is as good as positives, or better", real, holds, "by 0.02"),
    ]


def _bars(name: str, groups: list[Group]) -> list[Figure]:
    """A bar a mode, from the lowest to the highest seed."""
    bars = [
        Bar(group.label, group.method, sum(values) / len(values), min(values), max(values))
        for group in apart(groups)
        if (values := list(group.values(FINAL).values()))
    ]
    if not bars:
        return []
    x = "accuracy on all classes at the end"
    svg = draw_bars(bars, f"gnr-ablation-{name.lower()}", x, f"{x}, by mode, {_WORDS[name]}")
    return [
        Figure(
            svg, f"{name}, {_WORDS[name]}. The thin lines go from the lowest seed to the highest."
        )
    ]


def _table(streams: Mapping[str, list[Group]]) -> Table:
    published = {"NC": gnr_nc.PUBLISHED, "NIC": gnr_nic.PUBLISHED}
    labels = dict.fromkeys(group.label for groups in streams.values() for group in groups)
    rows = [[label] for label in labels]
    for name, groups in streams.items():
        ours = {group.label: spread(group, FINAL) for group in groups}
        for row in rows:
            row += [ours.get(row[0], NONE), published[name].get(row[0], (NONE, NONE))[0]]
    head = ["mode", *(f"{name}, {whose}" for name in streams for whose in ("ours", "CORe50"))]
    return Table("Accuracy at the end", head, rows, _NOTE)
