"""What is read off the modes of replay on one stream: curves, a table, and how they compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.gnr import AR1, NO_REPLAY
from everlearn.experiments.read import lines, mean, with_spread
from everlearn.experiments.trial import Trial
from everlearn.experiments.verdicts import listed, statement
from everlearn.report import Group, Table
from everlearn.report.chapter import Chapter, Figure
from everlearn.report.lines import whole_lines
from everlearn.report.numbers import NONE
from everlearn.report.verdict import Verdict

FINAL, AVERAGE = "whole_accuracy", "whole_average"
_COLUMNS = {
    FINAL: "all classes, at the end",
    AVERAGE: "all classes, mean",
    "met_accuracy": "classes met, at the end",
    "met_average": "classes met, mean",
}
_WHY = "accuracy on all classes at the end, mean over seeds"
_NOTE = (
    "Mean and standard deviation over seeds, where there are several. PR: positive, NR: negative replay of "
    "original (OD), generated (GD) and random (RD) data. The paper's are of CORe50, a net pre-trained on "
    "ImageNet, and its 'no replay' is AR1* at rates of its own."
)

_BEYOND = (
    "Two things decide which mode is ahead: whether rows of new and old classes are of one length ('The "
    "balance of rows'), and how much of what is replayed the classifier recognises ('When negative replay "
    "pays')."
)


def apart(groups: Sequence[Group]) -> list[Group]:
    """Give every mode a look of its own: all are settings of one method."""
    return [
        group._replace(method=f"gnr {_mode(group)}") if group.method == "gnr" else group
        for group in groups
    ]


def _mode(group: Group) -> str:
    return str(group.runs[0].settings["settings"].get("mode", group.label))


def spread(group: Group, name: str) -> str:
    """A number of the summary as a table shows it: its mean, and how far seeds lie apart."""
    return with_spread(list(group.values(name).values()), 3)


def ends_of(groups: Sequence[Group]) -> dict[str, float]:
    """Accuracy on all classes at the end, by label, of those that were tested so."""
    found = {group.label: mean(group, FINAL) for group in groups}
    return {label: value for label, value in found.items() if value is not None}


def compare(ends: Mapping[str, float], first: str, second: str, margin: float = 0.0) -> bool | None:
    """Whether the first ends above the second, or by a margin at least; None where one is not there."""
    if first not in ends or second not in ends:
        return None
    more = round(ends[first] - ends[second] - margin, 9)  # 0.35 - 0.3 is a little under 0.05
    return more >= 0 if margin else more > 0


def judge(ends: Mapping[str, float]) -> list[Verdict]:
    """The orderings that the paper rests on."""
    asked = [
        ("NR-GD ends over PR-GD by 0.05", "NR-GD", "PR-GD", 0.05),
        ("NR-GD ends over no replay at the same rates", "NR-GD", NO_REPLAY, 0.0),
        ("NR-GD ends over AR1* at its own rates", "NR-GD", AR1, 0.0),
        ("PR-OD ends at most 0.02 below NR-GD", "PR-OD", "NR-GD", -0.02),
        ("PR-GD ends at most 0.02 over no replay", NO_REPLAY, "PR-GD", -0.02),
        ("NR-RD ends over PR-RD", "NR-RD", "PR-RD", 0.0),
    ]
    return [
        statement(
            words, listed({name: ends.get(name) for name in (first, second)}),
            compare(ends, first, second, margin), _WHY,
        )
        for words, first, second, margin in asked
    ]  # fmt: skip


def chapter(
    found: Found, trials: Sequence[Trial], name: str, published: Mapping[str, tuple[str, str]]
) -> Chapter:
    """All of one stream.

    Args:
        published: the paper's accuracy at the end and mean over experiences, by label.
    """
    groups = found.groups(trials)
    figures = [*_curves(groups, name), *_curves(groups, name, met=True)]
    tables = [_table(groups, published)] if groups else []
    verdicts = judge(ends_of(groups))
    return Chapter(figures, tables, [], verdicts, runs_of(groups), found.missing(trials), _BEYOND)


def _curves(groups: Sequence[Group], name: str, met: bool = False) -> list[Figure]:
    words = "the classes met so far" if met else "all classes of the stream, met or not"
    drawn = whole_lines(apart(groups), met)
    caption = f"Accuracy on the tests of {words}, after experience by experience."
    return lines(drawn, f"{name}-met" if met else name, "experiences", "accuracy", caption)


def _table(groups: Sequence[Group], published: Mapping[str, tuple[str, str]]) -> Table:
    rows = [
        [
            group.label,
            *(spread(group, name) for name in _COLUMNS),
            *published.get(group.label, (NONE, NONE)),
        ]
        for group in groups
    ]
    head = ["mode", *_COLUMNS.values(), "CORe50, at the end", "CORe50, mean"]
    return Table("Accuracy of every mode", head, rows, _NOTE)
