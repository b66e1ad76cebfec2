"""Tables of trials, groups of experiments and parts of the report: functions of committed rows."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import cache
from pathlib import Path

from cells import by_method, name_seeds, table
from committed import Committed, check_known

from everlearn.experiments import EXPERIMENTS
from everlearn.experiments.framework.groups import accuracy_after, format_number
from everlearn.experiments.framework.shared_trials import TABLE_TASKS
from everlearn.experiments.framework.trial import PAPER, Trial
from everlearn.metrics import MIN_SEEDS
from everlearn.report import Group, summary_table
from everlearn.report.tables import numbers
from everlearn.report.tables.protocol import format_over_seeds
from everlearn.report.verdict import Verdict

_MILESTONES = (10, 50, 100, 200)
_ALL_TASKS = 500
_NEW_SHAPES = {
    "average_accuracy": "accuracy on all tasks",
    "one_shot_standard_grid_{}": "{} new classes",
    "one_shot_generalised_grid_{}": "generalised",
    "one_shot_standard_continuous_{}": "continuous poses",
    "open_set_average_precision": "open set, average precision",
}


@cache
def _trials() -> Mapping[str, Trial]:
    """Return all trials of scale `paper` by name, with the seeds of all experiments that name them."""
    found: dict[str, Trial] = {}
    for module in EXPERIMENTS.values():
        for trial in module.SETTINGS[PAPER].trials:
            known = found.get(trial.name, trial).seeds
            found[trial.name] = trial._replace(seeds=tuple(sorted({*known, *trial.seeds})))
    return found


def _trial(name: str) -> Trial:
    if name not in _trials():
        raise ValueError(f"no experiment has a trial {name}")
    return _trials()[name]


def _longest(rows: Committed, names: Sequence[str]) -> dict[str, Group]:
    """Return the longest runs of the trials that have rows, by name: two trials may have one label."""
    found = {name: rows.paper.groups([_trial(name)]) for name in names}
    return {name: group for name, groups in found.items() for group in groups}


def _compared(rows: Committed, names: Sequence[str]) -> dict[str, Group]:
    """Return the same after the tasks of the main table; shorter runs whole."""
    cut = {name: rows.paper.groups([_trial(name)], TABLE_TASKS) for name in names}
    longest = _longest(rows, names)
    return {name: next(iter(cut[name]), group) for name, group in longest.items()}


def toy(rows: Committed, names: Sequence[str]) -> str:
    """Return the accuracy at the end of the toy stream, and what was learned and lost on the way."""
    lines = [
        [
            f"`{group.label}`",
            format_over_seeds(group, "average_accuracy"),
            format_over_seeds(group, "learning_accuracy"),
            _signed(group.mean("backward_transfer")),
        ]
        for group in _longest(rows, names).values()
    ]
    return table(["", "accuracy on all tasks", "learning accuracy", "backward transfer"], *lines)


def paper(rows: Committed, names: Sequence[str]) -> str:
    """Return accuracies on all tasks so far, and those on each task right after it."""
    longest = _longest(rows, names)
    lines = [_paper_line(group, longest[name]) for name, group in _compared(rows, names).items()]
    head = [
        *("", "seeds"), *(f"after {tasks}" for tasks in _MILESTONES), "interval",
        *(f"after {_ALL_TASKS}", "learning accuracy", "forgetting"),
    ]  # fmt: skip
    return _with_awaited(table(head, *lines) if lines else "", longest, names)


def _paper_line(group: Group, longest: Group) -> list[str]:
    """Return the cells of a group, as its summary has them, and the accuracy after all tasks."""
    (cells,) = by_method(summary_table([group])).values()
    whole = accuracy_after(longest, _ALL_TASKS)
    return [
        group.label,
        group.listed_seeds,
        *(cells.get(f"after {tasks} tasks", numbers.MISSING) for tasks in _MILESTONES),
        cells["interval"] if len(group.runs) >= MIN_SEEDS else numbers.MISSING,
        numbers.MISSING if whole is None else f"{whole:.3f} ({name_seeds(longest.seeds)})",
        *(format_number(group.mean(name)) for name in ("learning_accuracy", "forgetting")),
    ]


def new_shapes(rows: Committed, names: Sequence[str]) -> str:
    """Return what was measured on new shapes after the tasks of the main table."""
    groups = _compared(rows, names)
    return _with_awaited(_shapes_table([*groups.values()], "1000"), groups, names)


def small(rows: Committed, names: Sequence[str]) -> str:
    """Return the same of twelve tasks on a CPU."""
    known = [path.name.rpartition("-seed")[0] for path in _folders(rows)]
    check_known(names, known, "trial of results/small")
    runs = {
        name: [rows.run(f"small/{path.name}") for path in _folders(rows, name)] for name in names
    }
    return _shapes_table([Group(name, name, found) for name, found in runs.items()], "100")


def _folders(rows: Committed, name: str = "*") -> list[Path]:
    return sorted((rows.folder / "small").glob(f"{name}-seed*"))


def _shapes_table(groups: Sequence[Group], classes: str) -> str:
    columns = {name.format(classes): title.format(classes) for name, title in _NEW_SHAPES.items()}
    lines = [
        [group.label, group.listed_seeds, *(format_over_seeds(group, name) for name in columns)]
        for group in groups
    ]
    return table(["", "seeds", *columns.values()], *lines) if lines else ""


def _with_awaited(found: str, measured: Container[str], names: Sequence[str]) -> str:
    """Return a table and, below it, the names of the trials without rows."""
    missing = [f"`{name}`" for name in names if name not in measured]
    awaited = f"No rows so far: {', '.join(missing)}." if missing else ""
    return "\n\n".join(part for part in (found, awaited) if part)


def findings(rows: Committed, names: Sequence[str]) -> str:
    """Return the verdicts of the experiments of a group that have rows, and name the others."""
    groups = {name: module.__name__.split(".")[-2] for name, module in EXPERIMENTS.items()}
    check_known(names, groups.values(), "group of experiments")
    measured = {
        name: [verdict for verdict in rows.result(name).verdicts if verdict.measured]
        for name, group in groups.items()
        if group in names
    }
    lines = [
        [f"`{name}`" if number == 0 else "", *_finding(verdict)]
        for name, verdicts in measured.items()
        for number, verdict in enumerate(verdicts)
    ]
    found = table(["name", "statement", "published", "ours", "verdict"], *lines)
    missing = [f"`{name}`" for name, verdicts in measured.items() if not verdicts]
    return f"{found}\n\nNo rows so far: {', '.join(missing)}." if missing else found


def _finding(verdict: Verdict) -> Sequence[str]:
    published = {"none": numbers.MISSING}.get(verdict.published, verdict.published)
    word = {"not comparable": numbers.MISSING}.get(verdict.verdict, verdict.verdict)
    return verdict.statement, published, verdict.ours, word


def report(rows: Committed, names: Sequence[str]) -> str:
    """Return a table of the report with its note, by the name of its experiment and its title."""
    experiment, *words = names
    found = {shown.title: shown for shown in rows.result(experiment).tables}
    title = " ".join(words)
    if title not in found:
        raise ValueError(f"{experiment} has no table {title!r}; tables: {', '.join(found)}")
    shown = found[title]
    return f"{table(shown.head, *shown.rows)}\n\n{shown.note}"


def _signed(value: float | None) -> str:
    return numbers.MISSING if value is None else numbers.signed(value)
