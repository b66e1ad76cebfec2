"""Memory edits: a class is unlearned by deleting its exemplar, and restored by adding it again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import DCL_PLUS, NEW_SEEDS, SEEDS
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.framework.verdicts import unpublished
from everlearn.metrics import share
from everlearn.report import Group, Table
from everlearn.report.experiment import ExperimentResult
from everlearn.rows import EditRow, of_kind

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner
    from everlearn.methods.dcl import DCL
    from everlearn.stream import Task, TaskStream

TITLE = "Memory edits and unlearning"
SOURCE = "ours"
CLAIM = "DCL unlearns a class by deleting one exemplar, at once and without changing a weight."


def _settings(tasks: int) -> Settings:
    """Return trials that unlearn the last task, beside joint training that never saw it."""
    plan = {"every": tasks, "one_shot": (), "open_set": False, "final_after": ()}
    plus = DCL_PLUS._replace(name="unlearn-dcl-plus", stream={"tasks": tasks}, plan=plan)
    # The learning rate that was chosen for twenty tasks does not learn ten (decision 18).
    settings = {"retrain_every": tasks, "learning_rate": 3e-4}
    joint = Trial("unlearn-joint", "joint", settings, {"tasks": tasks}, plan, seeds=NEW_SEEDS[:1])
    return Settings(
        (
            plus._replace(seeds=SEEDS[:1]),
            joint._replace(label="joint, all tasks"),
            joint._replace(
                name="unlearn-retrain",
                label="joint, all but the last",
                stream={"tasks": tasks - 1},
            ),
        ),
        {"tasks": tasks},
    )


SETTINGS = {SMALL: _settings(2), PAPER: _settings(10)}
COST = {SMALL: "1 minute", PAPER: "1 minute"}
MEASUREMENT = "unlearning"
MEASUREMENTS = (MEASUREMENT,)


def run(runner: Runner) -> None:
    """Run all trials, then delete the exemplars of the last task and add them again."""
    settings = runner.settings(SETTINGS)
    runner.run_trials(settings.trials)
    runner.measure(
        MEASUREMENT, settings.options, lambda: _measure(runner, settings), settings.trials[:1]
    )


def figure(results: ResultsFolder) -> ExperimentResult:
    """Tabulate accuracy on the deleted and on the other classes, and the time of each edit."""
    settings = results.settings(SETTINGS)
    rows = of_kind(results.rows(MEASUREMENT), EditRow)
    groups = results.groups(settings.trials)
    verdict = unpublished(
        "Deleting the classes of a task",
        _describe_deletion({row["state"]: row for row in rows}),
        "no value was published; the paper says it is possible",
    )
    return ExperimentResult(
        tables=[_table(rows, groups)] if rows or groups else [],
        verdicts=[verdict],
        runs=runs_of(groups),
        missing=[*results.missing(settings.trials), *results.unmeasured(MEASUREMENT)],
        measurements=results.origins(MEASUREMENT),
    )


def _describe_deletion(edits: dict[str, EditRow]) -> str:
    if "deleted" not in edits:
        return ""
    deleted = edits["deleted"]
    unchanged = deleted["weights"] == edits["before"]["weights"]
    return (
        f"accuracy on the deleted classes {_accuracy(deleted['forgotten']):.3f}, weights unchanged: "
        f"{unchanged}, {1000 * deleted['seconds']:.1f} ms"
    )


def _table(rows: list[EditRow], groups: list[Group]) -> Table:
    head = ["state", "deleted classes", "other classes, or all", "seconds"]
    body = [
        [
            f"DCL+, {row['state']}",
            f"{_accuracy(row['forgotten']):.3f}",
            f"{_accuracy(row['others']):.3f}",
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
        "Accuracy on test images. The weights were trained on images of the deleted classes and do not "
        "change; these classes are never predicted again. A net with one output per class must be "
        "retrained."
    )
    if len(groups) > 1:
        note += f" So is joint training here, on all of its tasks, with seed {NEW_SEEDS[0]}."
    return Table("Unlearning the last task", head, body, note)


def _accuracy(counts: list[int]) -> float:
    correct, total = counts
    return float(share(correct, total))


def _measure(runner: Runner, settings: Settings) -> Iterator[EditRow]:
    from everlearn.methods.dcl import DCL

    trial = settings.trials[0]
    learner = runner.learner(trial)
    assert isinstance(learner, DCL)
    memory = learner.memory
    stream = runner.stream(trial)
    deleted = list(stream[len(stream) - 1].classes)
    exemplars = memory.images(deleted)
    yield _edit_row("before", learner, stream, 0.0)
    seconds = _time(lambda: memory.remove(deleted), runner.device)
    yield _edit_row("deleted", learner, stream, seconds)
    seconds = _time(lambda: memory.add(deleted, exemplars), runner.device)
    yield _edit_row("put back", learner, stream, seconds)


def _time(edit: Callable[[], object], device: str) -> float:
    from everlearn.training.device import synchronized_time

    start = synchronized_time(device)
    edit()
    return synchronized_time(device) - start


def _edit_row(state: str, learner: DCL, stream: TaskStream, seconds: float) -> EditRow:
    """Test the learner on all tasks."""
    *others, last = [_count_correct(learner, task) for task in stream]
    return {
        "kind": "edit",
        "state": state,
        "seconds": seconds,
        "exemplars": len(learner.memory),
        "forgotten": list(last),
        "others": [sum(column) for column in zip(*others, strict=True)],
        "weights": _hash_weights(learner),
    }


def _count_correct(learner: DCL, task: Task) -> tuple[int, int]:
    batch = task.test.batch(slice(None), learner.device)
    return int((learner.predict(batch.images) == batch.labels).sum()), len(batch.labels)


def _hash_weights(learner: DCL) -> str:
    """Return the SHA-256 of the state without the memory."""
    from everlearn.core.state import flatten, to_arrays

    state = {name: value for name, value in learner.state().items() if name != "memory"}
    arrays, _ = flatten(to_arrays(state))
    contents = [name.encode() + arrays[name].tobytes() for name in sorted(arrays)]
    return hashlib.sha256(b"".join(contents)).hexdigest()
