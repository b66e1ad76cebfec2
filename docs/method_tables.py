"""Tables of the pages of methods, from committed rows.

A page names trials or a method in a comment, such as `<!-- toy: toy-er toy-er-buffer-size-50 -->`,
`<!-- paper: er-5k er-20k -->` or `<!-- avalanche: er -->`. The table below it, down to a comment such as
`<!-- end of toy -->`, is written anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from published_rows import Committed, name_seeds, table

from everlearn.experiments import EXPERIMENTS
from everlearn.experiments.framework.groups import accuracy_after, summary_cell
from everlearn.experiments.framework.shared_trials import TABLE_TASKS
from everlearn.experiments.framework.trial import PAPER, Trial
from everlearn.metrics import aggregate
from everlearn.report import Group
from everlearn.report.tables import numbers
from everlearn.report.tables.protocol import format_seeds

_BLOCK = re.compile(
    r"(<!-- (toy|paper|avalanche): ([^>]*?) -->\n)(.*?)(<!-- end of \2 -->)", re.DOTALL
)
_MILESTONES = (10, 50, 100, 200)
_ALL_TASKS = 500


def fill(text: str, rows: Committed) -> str:
    """Return the text of a page with its tables as the rows have them."""

    def replace(found: re.Match[str]) -> str:
        content = _TABLES[found[2]](rows, found[3].split())
        return f"{found[1]}\n{content}\n\n{found[5]}"

    return _BLOCK.sub(replace, text)


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
            *(
                format_seeds(list(group.values(name).values()))
                for name in ("average_accuracy", "learning_accuracy")
            ),
            *_signed(group, "backward_transfer"),
        ]
        for group in _groups(rows, names)
    ]
    return table(
        ["", "accuracy on all five tasks", "learning accuracy", "backward transfer"], *lines
    )


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
    missing = [name for name in names if _trials()[name].title not in longest]
    awaited = f"No rows so far: {', '.join(f'`{name}`' for name in missing)}." if missing else ""
    return "\n\n".join(part for part in (found, awaited) if part)


def _paper_line(group: Group, longest: Group) -> list[str]:
    last = format_seeds(list(group.values("average_accuracy").values()))
    _, _, interval = last.partition(" (")
    whole = accuracy_after(longest, _ALL_TASKS)
    return [
        group.label.replace("*", r"\*"),
        ", ".join(map(str, group.seeds)),
        *(_number(accuracy_after(group, tasks)) for tasks in _MILESTONES),
        interval.rstrip(")") if len(group.runs) > 2 else numbers.MISSING,
        numbers.MISSING if whole is None else f"{whole:.3f} ({name_seeds(longest.seeds)})",
        summary_cell(group, "learning_accuracy"),
        summary_cell(group, "forgetting"),
    ]


def _avalanche(rows: Committed, names: Sequence[str]) -> str:
    """Return the accuracies of both packages, and how far weights differ from the same batches."""
    pairs: dict[str, list[Mapping[str, object]]] = {}
    for row in rows.records("avalanche"):
        if row["method"] in names:
            pairs.setdefault(f"{row['settings']} {row['copying']} {row['batch_size']}", []).append(
                row
            )
    lines = [
        [_settings(found[0]), _accuracy(found), _accuracy(found, "avalanche_"), _difference(found)]
        for found in pairs.values()
    ]
    return table(["settings", "Everlearn", "Avalanche", "weights differ by"], *lines)


def _settings(row: Mapping[str, object]) -> str:
    settings = row["settings"]
    assert isinstance(settings, dict)
    text = ", ".join(f"{name} {value}" for name, value in settings.items()) or "defaults"
    text += f", batches of {row['batch_size']}" if row["batch_size"] == 1 else ""
    return text + (", Avalanche patched" if row["copying"] else "")


def _accuracy(rows: Sequence[Mapping[str, object]], side: str = "") -> str:
    if not all(row[f"{side}finite"] for row in rows):
        return "diverges"
    found = aggregate([row[f"{side}correct"] / row["total"] for row in rows])
    text = f"{found.mean:.3f} ({found.low:.3f} to {min(found.high, 1.0):.3f})"
    equal = side and all(row["avalanche_equals_naive"] for row in rows)
    return f"{text}, `Naive` bit for bit" if equal and rows[0]["settings"] else text


def _difference(rows: Sequence[Mapping[str, object]]) -> str:
    differences = [row["weight_difference"] for row in rows]
    return numbers.MISSING if None in differences else f"{max(differences):.0e}"


def _signed(group: Group, name: str) -> list[str]:
    values = list(group.values(name).values())
    return [numbers.signed(sum(values) / len(values)) if values else numbers.MISSING]


def _number(value: float | None) -> str:
    return numbers.MISSING if value is None else numbers.fraction(value)


_TABLES: dict[str, Callable[[Committed, Sequence[str]], str]] = {
    "toy": _toy,
    "paper": _paper,
    "avalanche": _avalanche,
}
