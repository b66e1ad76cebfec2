"""A million classes: one exemplar each, found by an exact search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.learners import DCL_PLUS
from everlearn.experiments.trial import PAPER, SMALL, Settings
from everlearn.experiments.verdicts import own
from everlearn.metrics import share, wilson
from everlearn.report import Table
from everlearn.report.chapter import Chapter
from everlearn.report.numbers import size
from everlearn.results import Row

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "A million classes", "ours"
CLAIM = "The memory of exemplars grows with the classes, nothing else does: no class costs a step."
SETTINGS = {
    SMALL: Settings((DCL_PLUS,), {"classes": 1000, "questions": 200}),
    PAPER: Settings((DCL_PLUS,), {"classes": 1_000_000, "questions": 10_000}),
}
COST = {SMALL: "seconds after the run", PAPER: "2 minutes after the run"}
PART = "million"
PARTS = (PART,)


def run(lab: Lab) -> None:
    """Fill a memory with new classes, and ask."""
    settings = lab.settings(SETTINGS)
    lab.learn(settings.trials)
    lab.measure(
        PART, dict(settings.numbers), lambda: _measure(lab, **settings.numbers), settings.trials
    )


def figure(found: Found) -> Chapter:
    """A table: accuracy, that of the true map, speed, bytes."""
    rows = found.rows(PART)
    ours = ", ".join(f"{row['factors']} {row['right'] / row['total']:.3f}" for row in rows)
    settings = found.settings(SETTINGS)
    classes = settings.numbers["classes"]
    verdicts = [own(f"One shot among {classes:,} classes", ours)]
    tables, part = ([_table(rows)], []) if rows else ([], [PART])
    missing = [*found.missing(settings.trials), *part]
    runs = runs_of(found.groups(settings.trials))
    return Chapter([], tables, [], verdicts, runs, missing, "", found.origins(PART))


def _table(rows: list[Row]) -> Table:
    head = [
        "factors",
        "classes",
        "accuracy",
        "interval",
        "with the true map",
        "questions a second",
        "memory",
    ]
    body = []
    for row in rows:
        low, high = wilson(row["right"], row["total"])
        body.append([
            row["factors"], f"{row['classes']:,}", f"{share(row['right'], row['total']):.4f}",
            f"{low:.4f} to {high:.4f}", f"{share(row['nearest'], row['total']):.4f}",
            f"{row['total'] / row['seconds']:,.0f}", size(row["memory_bytes"]),
        ])  # fmt: skip
    note = (
        "With the true map: the nearest exemplar when the pose is known; DCL+ fits the nearest ones, which "
        "can be better."
    )
    return Table("One shot", head, body, note)


def _measure(lab: Lab, classes: int, questions: int) -> Iterator[Row]:
    from everlearn.exam.one_shot import FACTORS, fill, new_classes

    trial = lab.settings(SETTINGS).trials[0]
    learner, stream = lab.learner(trial), lab.stream(trial)
    new, memory = new_classes(stream, learner), learner.memory.empty()
    fill(memory, new, range(new.first_class, new.first_class + classes), lab.device)
    common = {"kind": "million", "classes": classes, "memory_bytes": memory.bytes}
    for factors in FACTORS:
        shown = new_classes(stream, learner, factors)
        yield common | {"factors": factors} | _ask(lab, shown, learner, memory, classes, questions)


def _ask(lab: Lab, stream: Any, learner: Any, memory: Any, classes: int, questions: int) -> Row:
    """Count right answers, and those of the nearest exemplar through the true map, which nothing fits."""
    from everlearn.exam.costs import settled
    from everlearn.exam.one_shot import questions_of
    from everlearn.warp import normalise

    asked = list(questions_of(stream, classes, questions, lab.device))
    began = settled(lab.device)
    answers = [learner.match(part.images, memory, 1).labels[:, 0] for part in asked]
    right = sum(
        int((found == part.labels).sum()) for found, part in zip(answers, asked, strict=True)
    )
    seconds = settled(lab.device) - began
    true = [memory.search(normalise(part.images, part.theta), 1).labels[:, 0] for part in asked]
    nearest = sum(
        int((found == part.labels).sum()) for found, part in zip(true, asked, strict=True)
    )
    total = sum(len(part.labels) for part in asked)
    return {"right": right, "nearest": nearest, "total": total, "seconds": seconds}
