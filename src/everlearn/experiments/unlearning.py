"""Memory edits: a class is unlearned by taking its exemplar away, and learned again by putting it back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.learners import DCL_PLUS
from everlearn.experiments.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.verdicts import own
from everlearn.metrics import share
from everlearn.report import Group, Table
from everlearn.report.chapter import Chapter
from everlearn.results import Row

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "Memory edits and unlearning", "ours"
CLAIM = "To forget a class DCL deletes one exemplar: at once, and no weight changes."


def _settings(tasks: int) -> Settings:
    """The last task is to be forgotten: whoever has never met it is the measure."""
    once, whole, less = {"every": tasks}, {"tasks": tasks}, {"tasks": tasks - 1}
    exams = {"every": tasks, "one_shot": (), "open_set": False, "finals": ()}
    trials = (
        DCL_PLUS._replace(name="unlearn-dcl-plus", stream=whole, plan=exams),
        Trial("unlearn-joint", "joint", once, whole, exams, label="joint, all tasks"),
        Trial("unlearn-retrain", "joint", once, less, exams, label="joint, anew without the last"),
    )
    return Settings(trials, {"tasks": tasks})


SETTINGS = {SMALL: _settings(2), PAPER: _settings(10)}
COST = {SMALL: "1 minute", PAPER: "1 minute"}
PART = "unlearning"
PARTS = (PART,)


def run(lab: Lab) -> None:
    """Learn, then take the exemplars of the last task away and put them back."""
    settings = lab.settings(SETTINGS)
    lab.learn(settings.trials)
    lab.measure(PART, dict(settings.numbers), lambda: _edit(lab, settings), settings.trials[:1])


def figure(found: Found) -> Chapter:
    """Accuracies on what is forgotten and on what is kept, and what it took."""
    settings, rows = found.settings(SETTINGS), found.rows(PART)
    groups = found.groups(settings.trials)
    edits = {row["state"]: row for row in rows}
    ours = ""
    if "deleted" in edits:
        gone = edits["deleted"]
        ours = (
            f"accuracy on the forgotten {_share(gone, 'forgotten'):.3f}, weights the same: "
            f"{gone['weights'] == edits['before']['weights']}, {1000 * gone['seconds']:.1f} ms"
        )
    verdicts = [
        own(
            "Deleting the classes of a task",
            ours,
            "no value was published; the paper says it is possible",
        )
    ]
    tables = [_table(rows, groups)] if rows or groups else []
    missing = [*found.missing(settings.trials), *([] if rows else [PART])]
    origins = found.origins(PART)
    return Chapter([], tables, [], verdicts, runs_of(groups), missing, "", origins)


def _table(rows: list[Row], groups: list[Group]) -> Table:
    head = ["state", "forgotten classes", "others, or all", "seconds"]
    body = [
        [
            f"DCL+, {row['state']}",
            f"{_share(row, 'forgotten'):.3f}",
            f"{_share(row, 'others'):.3f}",
            f"{row['seconds']:.4f}",
        ]
        for row in rows
    ]
    body += [
        [
            group.label,
            "",
            f"{group.runs[0].summary['average_accuracy']:.3f}",
            f"{group.runs[0].summary['seconds']:.1f}",
        ]
        for group in groups
        if group.method == "joint"
    ]
    note = (
        "Accuracy on test images. The weights have learned from images of the forgotten classes and stay "
        "as they are; no answer names these classes again. A net with an output for each class is trained "
        "anew: joint rows, on all of their tasks."
    )
    return Table("Forgetting the last task", head, body, note)


def _share(row: Row, what: str) -> float:
    return float(share(*row[what]))


def _edit(lab: Lab, settings: Settings) -> Iterator[Row]:
    trial = settings.trials[0]
    learner, stream = lab.learner(trial), lab.stream(trial)
    gone = list(stream[len(stream) - 1].classes)
    kept = learner.memory.images(gone)
    yield _state("before", lab, learner, stream, 0.0)
    seconds = _time(lab, lambda: learner.memory.remove(gone))
    yield _state("deleted", lab, learner, stream, seconds)
    seconds = _time(lab, lambda: learner.memory.add(gone, kept))
    yield _state("put back", lab, learner, stream, seconds)


def _time(lab: Lab, edit: Any) -> float:
    from everlearn.exam.costs import settled

    began = settled(lab.device)
    edit()
    return settled(lab.device) - began


def _state(state: str, lab: Lab, learner: Any, stream: Any, seconds: float) -> Row:
    """What the learner knows in one state of its memory."""
    last = len(stream) - 1
    counts = [_count(learner, stream[index], lab.device) for index in range(len(stream))]
    others = [sum(column) for column in zip(*counts[:last], strict=True)]
    return {
        "kind": "edit", "state": state, "seconds": seconds, "exemplars": len(learner.memory),
        "forgotten": list(counts[last]), "others": others, "weights": _digest(learner),
    }  # fmt: skip


def _count(learner: Any, task: Any, device: str) -> tuple[int, int]:
    batch = task.test.batch(slice(None), device)
    return int((learner.predict(batch.images) == batch.labels).sum()), len(batch.labels)


def _digest(learner: Any) -> str:
    """Sum up all weights."""
    from everlearn.results import flatten
    from everlearn.runs import to_arrays

    state = {name: part for name, part in learner.state().items() if name != "memory"}
    arrays, _ = flatten(to_arrays(state))
    parts = [name.encode() + arrays[name].tobytes() for name in sorted(arrays)]
    return hashlib.sha256(b"".join(parts)).hexdigest()
