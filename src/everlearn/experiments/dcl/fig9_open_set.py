"""Figure 9: open-set recognition. Is the shape of an image known?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from everlearn.experiments.dcl.ablations import MEASUREMENT as CEILING
from everlearn.experiments.dcl.ablations import open_set_ceilings
from everlearn.experiments.framework.groups import line_figures
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import DCL, DCL_PLUS, TABLE_TASKS
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings
from everlearn.experiments.framework.verdicts import compare_number, format_values, unpublished
from everlearn.metrics import paper_curve
from everlearn.report import Group, LoadedRun
from everlearn.report.charts.accuracy_lines import Line
from everlearn.report.experiment import ExperimentResult, Figure
from everlearn.report.tables.numbers import decimal
from everlearn.report.verdict import Verdict
from everlearn.rows import OpenSetRow, of_kind

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "Open set"
SOURCE = "Figure 9"
CLAIM = "The area under the curve of correct rates on seen and unseen shapes is 0.92."
PUBLISHED_AREA = 0.92
SETTINGS = dict.fromkeys((SMALL, PAPER), Settings((DCL_PLUS, DCL)))
COST = {SMALL: "1 minute", PAPER: "15 minutes"}
_SCORES = ("open_set_auroc", "open_set_average_precision", "open_set_oscr")
_WHY = {
    DCL.title: "the paper's method, on images of 64 pixels with soft edges",
    DCL_PLUS.title: "ours, with exemplar replay, weight averaging and fitted maps, on the same images",
}
_NOTE = (
    "The paper calls the two rates precision and recall. They are the fractions of seen shapes called seen "
    "and of unseen shapes called unseen, for all thresholds on the ratio of the two smallest distances, "
    f"after {TABLE_TASKS} tasks."
)


def run(runner: Runner) -> None:
    """Run both trials; open-set evaluation is part of their plan."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw the curve, and report its area and standard scores."""
    trials = results.settings(SETTINGS).trials
    groups = results.groups(trials, TABLE_TASKS)
    found = {group.label: group for group in groups}
    ceilings = open_set_ceilings(results)
    verdicts = [_judge_area(label, found.get(label), ceilings) for label in _WHY]
    verdicts += [
        unpublished(
            f"{group.label}: standard scores, unseen shapes as positives",
            format_values(_scores(group)),
        )
        for group in groups
    ]
    return ExperimentResult(
        _figures(groups),
        verdicts=verdicts,
        runs=runs_of(groups),
        missing=results.missing(trials),
        note=_NOTE,
        measurements=results.origins(CEILING),
    )


def _judge_area(label: str, group: Group | None, ceilings: Mapping[int, float]) -> Verdict:
    """Compare the area with the published one, beside what true maps reach on images of this size."""
    areas = group.values("open_set_paper_area") if group else {}
    ceiling = ceilings.get(group.runs[0].stream["canvas"]["size"]) if group else None
    limit = "" if ceiling is None else f"; true maps reach {decimal(ceiling, 4)} on them"
    statement = f"{label}: area under the published curve"
    return compare_number(statement, PUBLISHED_AREA, areas, f"{_WHY[label]}{limit}")


def _scores(group: Group) -> dict[str, float | None]:
    return {name.removeprefix("open_set_").replace("_", " "): group.mean(name) for name in _SCORES}


def _figures(groups: Sequence[Group]) -> list[Figure]:
    """Draw the curve of each group that has open-set rows, of the first seed with any."""
    found = [(group, run) for group in groups if (run := _first_tested(group))]
    seeds = "; ".join(f"{group.label}: seed {run.seed}" for group, run in found)
    return line_figures(
        [_line(group, run) for group, run in found],
        "fig9",
        "unseen shapes called unseen",
        "seen shapes called seen",
        f"The two rates over all thresholds. {seeds}.",
    )


def _first_tested(group: Group) -> LoadedRun | None:
    return next((run for run in group.runs if of_kind(run.rows, OpenSetRow)), None)


def _line(group: Group, run: LoadedRun) -> Line:
    row = of_kind(run.rows, OpenSetRow)[-1]
    found = paper_curve(row["known"], row["unknown"])
    seen = found.seen_rate
    return Line(group.label, group.method, found.unseen_rate, seen, seen, seen)
