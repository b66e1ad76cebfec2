"""The comparison of replay modes on one stream, which gnr-nc and gnr-nic share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from everlearn.experiments.framework.groups import format_mean_std, line_figures
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.rule import Values, lead_over
from everlearn.experiments.framework.trial import Trial
from everlearn.experiments.framework.verdicts import format_means, judge_statement
from everlearn.experiments.gnr.trials import AR1, NO_REPLAY
from everlearn.report import Group, LoadedRun, Table
from everlearn.report.charts.accuracy_lines import all_classes_lines
from everlearn.report.experiment import ExperimentResult, Figure
from everlearn.report.tables.numbers import MISSING
from everlearn.report.verdict import Verdict

FINAL = "all_classes_accuracy"
AVERAGE = "all_classes_average"
_COLUMNS = {
    FINAL: "all classes, at the end",
    AVERAGE: "all classes, mean",
    "seen_classes_accuracy": "classes seen, at the end",
    "seen_classes_average": "classes seen, mean",
}
_WHY = "accuracy on all classes at the end, mean over seeds"
_NOTE = (
    "Mean and standard deviation over seeds, where there are several. PR: positive, NR: negative replay of "
    "original (OD), generated (GD) and random (RD) data. The published numbers are for CORe50 with a net "
    "pre-trained on ImageNet; the paper's 'no replay' is AR1* with its own learning rates."
)

_EXPLANATION = (
    "Two things decide which mode is ahead: whether the weights of new and old classes have the same norm "
    "('The balance of class weights'), and how much of the replayed data the classifier recognises "
    "('When negative replay pays')."
)


def describe_mean_shift(runs: Iterable[LoadedRun]) -> str:
    """Return a sentence on which mean the heads of runs subtract, which decides what replay gains."""
    shifts = (run.method_settings.get("mean_shift") for run in runs)
    found = {str(shift) for shift in shifts if shift is not None}
    if not found:
        return ""
    return f"Runs have the mean shift {' and '.join(sorted(found))}; the paper's is per_class."


def style_by_mode(groups: Sequence[Group]) -> list[Group]:
    """Give every replay mode its own style in figures: all are settings of one method."""
    return [
        group._replace(method=f"gnr {_mode(group)}") if group.method == "gnr" else group
        for group in groups
    ]


def _mode(group: Group) -> str:
    return str(group.runs[0].method_settings.get("replay_mode", group.label))


def mean_std_cell(group: Group, name: str) -> str:
    """Format a number of the summary: mean and standard deviation over seeds."""
    return format_mean_std(list(group.values(name).values()), 3)


def final_accuracies(groups: Sequence[Group]) -> dict[str, Values]:
    """Return the accuracy on all classes at the end, by label and seed, where it was measured."""
    return {group.label: values for group in groups if (values := group.values(FINAL))}


def judge_ordering(
    claim: str, accuracies: Mapping[str, Values], first: str, second: str, by: float
) -> Verdict:
    """Judge whether one mode ends above another by so much."""
    values = {label: accuracies.get(label, {}) for label in (first, second)}
    lead = lead_over(values[first], values[second], by)
    return judge_statement(claim, format_means(values), [lead], _WHY)


def judge_orderings(accuracies: Mapping[str, Values]) -> list[Verdict]:
    """Judge the orderings of modes that the paper's claims rest on."""
    orderings = [
        ("NR-GD ends above PR-GD by 0.05", "NR-GD", "PR-GD", 0.05),
        ("NR-GD ends above no replay with the same learning rates", "NR-GD", NO_REPLAY, 0.0),
        ("NR-GD ends above AR1* with its own learning rates", "NR-GD", AR1, 0.0),
        ("PR-OD ends at most 0.02 below NR-GD", "PR-OD", "NR-GD", -0.02),
        ("PR-GD ends at most 0.02 above no replay", NO_REPLAY, "PR-GD", -0.02),
        ("NR-RD ends above PR-RD", "NR-RD", "PR-RD", 0.0),
    ]
    return [
        judge_ordering(claim, accuracies, first, second, by)
        for claim, first, second, by in orderings
    ]


def compare_modes(
    results: ResultsFolder,
    trials: Sequence[Trial],
    name: str,
    published: Mapping[str, tuple[str, str]],
) -> ExperimentResult:
    """Draw, tabulate and judge all modes on one stream.

    Args:
        name: start of the names of the figures.
        published: published accuracy at the end and mean over experiences, by label.
    """
    groups = results.groups(trials)
    return ExperimentResult(
        [*_curves(groups, name), *_curves(groups, name, seen_only=True)],
        tables=[_table(groups, published)] if groups else [],
        verdicts=judge_orderings(final_accuracies(groups)),
        runs=runs_of(groups),
        missing=results.missing(trials),
        note=f"{_EXPLANATION} {describe_mean_shift(runs_of(groups))}".strip(),
    )


def _curves(groups: Sequence[Group], name: str, seen_only: bool = False) -> list[Figure]:
    classes = "the classes seen so far" if seen_only else "all classes of the stream, seen or not"
    lines = all_classes_lines(style_by_mode(groups), seen_only)
    caption = f"Accuracy on the tests of {classes}, after each experience."
    figure = f"{name}-seen" if seen_only else name
    return line_figures(lines, figure, "experiences", "accuracy", caption)


def _table(groups: Sequence[Group], published: Mapping[str, tuple[str, str]]) -> Table:
    rows = [
        [
            group.label,
            *(mean_std_cell(group, name) for name in _COLUMNS),
            *published.get(group.label, (MISSING, MISSING)),
        ]
        for group in groups
    ]
    head = ["mode", *_COLUMNS.values(), "CORe50, at the end", "CORe50, mean"]
    return Table("Accuracy of every mode", head, rows, _NOTE)
