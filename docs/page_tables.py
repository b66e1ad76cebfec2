"""Tables of the pages of methods and experiments, and of decision 10, from committed rows.

A page names trials, a method or a group in a comment, such as `<!-- toy: toy-er toy-er-buffer-size-50 -->`,
`<!-- paper: er-5k er-20k -->` or `<!-- avalanche: er -->`. What stands below it, down to a comment such as
`<!-- end of toy -->`, is written anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from published_rows import Committed, name_seeds, table

from everlearn.experiments import EXPERIMENTS
from everlearn.experiments.framework.groups import accuracy_after
from everlearn.experiments.framework.shared_trials import TABLE_TASKS
from everlearn.experiments.framework.trial import PAPER, Trial
from everlearn.metrics import aggregate
from everlearn.report import Group
from everlearn.report.tables import numbers
from everlearn.report.tables.protocol import format_seeds
from everlearn.report.verdict import Verdict

Rows = Sequence[Mapping[str, Any]]
_MILESTONES = (10, 50, 100, 200)
_ALL_TASKS = 500
_NEW_SHAPES = {
    "average_accuracy": "accuracy on all tasks",
    "one_shot_standard_grid_{}": "{} new classes",
    "one_shot_generalised_grid_{}": "generalised",
    "one_shot_standard_continuous_{}": "continuous poses",
    "open_set_average_precision": "open set, average precision",
}
_NO_ROWS = ("not measured", "not asked")


def fill(text: str, rows: Committed) -> str:
    """Return the text of a page with its tables as the rows have them."""

    def replace(found: re.Match[str]) -> str:
        content = _TABLES[found[2]](rows, found[3].split())
        return f"{found[1]}\n{content}\n\n{found[5]}"

    return _BLOCK.sub(replace, text)


def blank(text: str) -> str:
    """Return the text of a page without its tables."""
    return _BLOCK.sub("", text)


@cache
def _trials() -> Mapping[str, Trial]:
    """Return all trials of scale `paper` by name."""
    modules = EXPERIMENTS.values()
    return {trial.name: trial for module in modules for trial in module.SETTINGS[PAPER].trials}


def _groups(rows: Committed, names: Sequence[str], tasks: int | None = None) -> list[Group]:
    unknown = [name for name in names if name not in _trials()]
    if unknown:
        raise ValueError(f"no experiment has a trial {', '.join(unknown)}")
    return rows.paper.groups((_trials()[name] for name in names), tasks)


def _toy(rows: Committed, names: Sequence[str]) -> str:
    """Return the accuracy at the end of the toy stream, and what was learned and lost on the way."""
    lines = [
        [
            f"`{group.label}`",
            *(_seeds(group, name) for name in ("average_accuracy", "learning_accuracy")),
            _mean(group, "backward_transfer", numbers.signed),
        ]
        for group in _groups(rows, names)
    ]
    return table(["", "accuracy on all tasks", "learning accuracy", "backward transfer"], *lines)


def _paper(rows: Committed, names: Sequence[str]) -> str:
    """Return accuracies on all tasks so far, and those on each task right after it."""
    longest = {group.label: group for group in _groups(rows, names)}
    lines = [
        _paper_line(group, longest[group.label]) for group in _groups(rows, names, TABLE_TASKS)
    ]
    head = [
        *("", "seeds"), *(f"after {tasks}" for tasks in _MILESTONES), "interval",
        *(f"after {_ALL_TASKS}", "learning accuracy", "forgetting"),
    ]  # fmt: skip
    found = table(head, *lines) if lines else ""
    return "\n\n".join(part for part in (found, _awaited(longest, names)) if part)


def _paper_line(group: Group, longest: Group) -> list[str]:
    interval = _seeds(group, "average_accuracy").partition(" (")[2].rstrip(")")
    whole = accuracy_after(longest, _ALL_TASKS)
    return [
        group.label.replace("*", r"\*"),
        ", ".join(map(str, group.seeds)),
        *(_number(accuracy_after(group, tasks)) for tasks in _MILESTONES),
        interval if len(group.runs) > 2 else numbers.MISSING,
        numbers.MISSING if whole is None else f"{whole:.3f} ({name_seeds(longest.seeds)})",
        _mean(group, "learning_accuracy"),
        _mean(group, "forgetting"),
    ]


def _new_shapes(rows: Committed, names: Sequence[str]) -> str:
    """Return what was measured on new shapes after the tasks of the main table."""
    groups = _groups(rows, names, TABLE_TASKS)
    found = _shapes_table(groups, "1000")
    labels = {group.label: group for group in groups}
    return "\n\n".join(part for part in (found, _awaited(labels, names)) if part)


def _small(rows: Committed, names: Sequence[str]) -> str:
    """Return the same of twelve tasks on a CPU."""
    runs = {
        name: [rows.run(f"small/{path.name}") for path in _folders(rows, name)] for name in names
    }
    return _shapes_table([Group(name, name, found) for name, found in runs.items()], "100")


def _folders(rows: Committed, name: str) -> list[Any]:
    return sorted((rows.folder / "small").glob(f"{name}-seed*"))


def _shapes_table(groups: Sequence[Group], classes: str) -> str:
    columns = {name.format(classes): title.format(classes) for name, title in _NEW_SHAPES.items()}
    lines = [
        [group.label, ", ".join(map(str, group.seeds)), *(_seeds(group, name) for name in columns)]
        for group in groups
    ]
    return table(["", "seeds", *columns.values()], *lines) if lines else ""


def _awaited(found: Mapping[str, object], names: Sequence[str]) -> str:
    """Name the trials without rows."""
    missing = [f"`{name}`" for name in names if _trials()[name].title not in found]
    return f"No rows so far: {', '.join(missing)}." if missing else ""


def _avalanche(rows: Committed, names: Sequence[str]) -> str:
    """Return the accuracies of both packages, and how far weights differ from the same batches."""
    pairs: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows.records("avalanche"):
        if row["method"] in names:
            key = f"{row['settings']} {row['copying']} {row['batch_size']}"
            pairs.setdefault(key, []).append(row)
    lines = [
        [_settings(found[0]), _accuracy(found), _accuracy(found, "avalanche_"), _difference(found)]
        for found in pairs.values()
    ]
    return table(["settings", "Everlearn", "Avalanche", "weights differ by"], *lines)


def _settings(row: Mapping[str, Any]) -> str:
    settings = row["settings"].items()
    text = ", ".join(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
                     for name, value in settings) or "defaults"  # fmt: skip
    text = f"`{text}`, batches of 1" if row["batch_size"] == 1 else f"`{text}`"
    return f"{text}, Avalanche patched" if row["copying"] else text


def _accuracy(rows: Rows, side: str = "") -> str:
    if not all(row[f"{side}finite"] for row in rows):
        return "diverges"
    found = aggregate([row[f"{side}correct"] / row["total"] for row in rows])
    text = f"{found.mean:.3f} ({max(found.low, 0.0):.3f} to {min(found.high, 1.0):.3f})"
    naive = side and rows[0]["settings"] and all(row["avalanche_equals_naive"] for row in rows)
    return f"{text}, `Naive` bit for bit" if naive else text


def _difference(rows: Rows) -> str:
    differences = [row["weight_difference"] for row in rows]
    return numbers.MISSING if None in differences else f"{max(differences):.0e}"


def _avalanche_ar1(rows: Committed, names: Sequence[str]) -> str:
    """Return the largest differences of the parts of AR1."""
    columns = ("outputs", "gradients", "running_statistics", "consolidated", "upper_half")
    lines = []
    for row in rows.records("avalanche_ar1"):
        if any(name in row for name in columns):
            strength = f", strength {row['strength']:g}" if "strength" in row else ""
            cells = [f"{row[name]:.0e}" if name in row else "" for name in columns]
            lines.append([row["what"].replace("*", r"\*") + strength, *cells])
    head = ["", "outputs", "gradients", "running statistics", "consolidated rows", "upper half"]
    return table(head, *lines)


def _fit(rows: Committed, names: Sequence[str]) -> str:
    """Return what the nearest exemplars classify by the error of maps, without and with fitting."""
    found = rows.lines("fit", "error_of_maps", "edges", "fitted")
    errors = dict.fromkeys(error for error, *_ in found)
    lines = [
        [
            f"{error:g}",
            *(
                cell
                for edges in ("soft", "hard")
                for cell in (
                    _fraction(found[error, edges, 0]),
                    _fraction(found[error, edges, 10]),
                    numbers.fraction(found[error, edges, 10]["open_set_average_precision"]),
                )
            ),
        ]
        for error in errors
    ]
    head = [f"{edges}: {what}" for edges in ("soft edges", "hard edges")
            for what in ("nearest", "fitted", "open set, fitted")]  # fmt: skip
    return table(["error of maps", *head], *lines)


def _fit_tuning(rows: Committed, names: Sequence[str]) -> str:
    """Return the accuracy with each edge contrast, of all seeds and images that choose."""
    counts: dict[tuple[Any, ...], list[int]] = {}
    for row in rows.records("tuning/fit"):
        if row["fitted"]:
            key = (row["edge_contrast"], row["edges"], row["error_of_maps"])
            pair = counts.setdefault(key, [0, 0])
            pair[0] += row["correct"]
            pair[1] += row["total"]
    contrasts = dict.fromkeys(contrast for contrast, *_ in counts)
    columns = list(dict.fromkeys((edges, error) for _, edges, error in counts))
    shares = {key: correct / total for key, (correct, total) in counts.items()}
    lines = []
    for contrast in contrasts:
        values = [shares[contrast, *column] for column in columns]
        name = "no weights" if contrast == "inf" else f"{contrast:g}"
        lines.append([name, *map(numbers.fraction, [*values, sum(values) / len(values)])])
    head = [f"{edges}, {error:g}" for edges, error in columns]
    return table(["edge contrast", *head, "mean"], *lines)


def _fraction(row: Mapping[str, Any]) -> str:
    return numbers.fraction(row["correct"] / row["total"])


def _findings(rows: Committed, names: Sequence[str]) -> str:
    """Return the verdicts of the experiments of a group that have rows, and name the others."""
    results = {
        name: rows.result(name).verdicts
        for name, module in EXPERIMENTS.items()
        if module.__name__.split(".")[-2] in names
    }
    measured = {
        name: [v for v in verdicts if v.ours not in _NO_ROWS] for name, verdicts in results.items()
    }
    lines = [
        [
            f"`{name}`" if number == 0 else "",
            *(cell.replace("*", r"\*") for cell in _finding(verdict)),
        ]
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


def _seeds(group: Group, name: str) -> str:
    return format_seeds(list(group.values(name).values()))


def _mean(group: Group, name: str, form: Callable[[float], str] = numbers.fraction) -> str:
    values = list(group.values(name).values())
    return form(sum(values) / len(values)) if values else numbers.MISSING


def _number(value: float | None) -> str:
    return numbers.MISSING if value is None else numbers.fraction(value)


_TABLES: dict[str, Callable[[Committed, Sequence[str]], str]] = {
    "toy": _toy,
    "paper": _paper,
    "new-shapes": _new_shapes,
    "small": _small,
    "avalanche": _avalanche,
    "avalanche-ar1": _avalanche_ar1,
    "fit": _fit,
    "fit-tuning": _fit_tuning,
    "findings": _findings,
}
_BLOCK = re.compile(
    rf"(<!-- ({'|'.join(_TABLES)}): ([^>]*?) -->\n)(.*?)(<!-- end of \2 -->)", re.DOTALL
)
