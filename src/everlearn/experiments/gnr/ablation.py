"""Original, generated and random data, replayed as positives and as negatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.gnr import nc as gnr_nc
from everlearn.experiments.gnr import nic as gnr_nic
from everlearn.experiments.gnr.modes import (
    FINAL,
    final_accuracies,
    judge_ordering,
    mean_std_cell,
    style_by_mode,
)
from everlearn.experiments.gnr.trials import AR1, NC, NIC, NO_REPLAY
from everlearn.report import Group, Table
from everlearn.report.charts import Bar, draw_bars
from everlearn.report.experiment import ExperimentResult, Figure
from everlearn.report.tables.numbers import MISSING
from everlearn.report.tables.protocol import format_difference
from everlearn.report.verdict import Verdict

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "Positive or negative replay, by kind of data"
SOURCE = "Graffieti et al. 2022"
CLAIM = "The poorer the data, the more negative replay gains over positive; with real data it loses little."
SETTINGS = {
    scale: Settings((*NC[scale].trials(), *NIC[scale].trials())) for scale in (SMALL, PAPER)
}
COST = {
    SMALL: "nothing beyond gnr-nc and gnr-nic",
    PAPER: "nothing beyond gnr-nc and gnr-nic",
}
_NOTE = (
    "Accuracy on all classes at the end, mean and standard deviation over seeds where there are several. "
    "Published numbers are for CORe50; where the paper gives only words, so does the table."
)
_COMPARED = (
    ("NR-GD", "PR-GD"),
    ("NR-RD", "PR-RD"),
    ("NR-OD", "PR-OD"),
    ("NR-GD", NO_REPLAY),
    ("NR-GD", AR1),
    ("PR-GD", NO_REPLAY),
    ("PR-GD", AR1),
    ("PR-OD", "NR-GD"),
    ("PR-OD", AR1),
)
_COMPARED_NOTE = (
    "Accuracy on all classes at the end, paired over seeds, with Student's 95 % interval. An interval with "
    "0 in it decides nothing."
)
_STREAMS = {"NC": "new classes", "NIC": "new instances and classes"}


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw one bar per mode on each stream, and tabulate all modes."""
    trials = results.settings(SETTINGS).trials
    streams = {name: results.groups(_on_stream(trials, name)) for name in _STREAMS}
    return ExperimentResult(
        [figure for name, groups in streams.items() for figure in _bars(name, groups)],
        tables=[_table(streams), _differences(streams)] if any(streams.values()) else [],
        verdicts=[verdict for name, groups in streams.items() for verdict in _judge(name, groups)],
        runs=[run for groups in streams.values() for run in runs_of(groups)],
        missing=results.missing(trials),
    )


def _on_stream(trials: tuple[Trial, ...], name: str) -> list[Trial]:
    return [trial for trial in trials if trial.name.startswith(f"gnr-{name.lower()}-")]


def _judge(name: str, groups: list[Group]) -> list[Verdict]:
    accuracies = final_accuracies(groups)
    comparisons = [
        ("GD ends higher as negatives", "NR-GD", "PR-GD", 0.0),
        ("RD ends higher as negatives", "NR-RD", "PR-RD", 0.0),
        ("OD ends at most 0.02 lower as positives", "PR-OD", "NR-OD", -0.02),
    ]
    return [
        judge_ordering(f"{name}: {claim}", accuracies, first, second, by)
        for claim, first, second, by in comparisons
    ]


def _bars(name: str, groups: list[Group]) -> list[Figure]:
    """Draw one bar per mode, with the range over seeds."""
    bars = [
        Bar(group.label, group.method, sum(values) / len(values), min(values), max(values))
        for group in style_by_mode(groups)
        if (values := list(group.values(FINAL).values()))
    ]
    if not bars:
        return []
    x = "accuracy on all classes at the end"
    svg = draw_bars(bars, f"gnr-ablation-{name.lower()}", x, f"{x}, by mode, {_STREAMS[name]}")
    return [Figure(svg, f"{name}, {_STREAMS[name]}. Thin lines: lowest to highest seed.")]


def _table(streams: Mapping[str, list[Group]]) -> Table:
    published = {"NC": gnr_nc.PUBLISHED, "NIC": gnr_nic.PUBLISHED}
    labels = dict.fromkeys(group.label for groups in streams.values() for group in groups)
    rows = [[label] for label in labels]
    for name, groups in streams.items():
        ours = {group.label: mean_std_cell(group, FINAL) for group in groups}
        for row in rows:
            row += [ours.get(row[0], MISSING), published[name].get(row[0], (MISSING, MISSING))[0]]
    head = ["mode", *(f"{name}, {source}" for name in streams for source in ("ours", "CORe50"))]
    return Table("Accuracy at the end", head, rows, _NOTE)


def _differences(streams: Mapping[str, list[Group]]) -> Table:
    """Tabulate the differences between modes, paired over seeds."""
    found = {name: final_accuracies(groups) for name, groups in streams.items()}
    rows = [
        [
            f"{first} minus {second}",
            *(
                format_difference(ends.get(first, {}), ends.get(second, {}))
                for ends in found.values()
            ),
        ]
        for first, second in _COMPARED
    ]
    return Table("Differences between modes", ["difference", *streams], rows, _COMPARED_NOTE)
