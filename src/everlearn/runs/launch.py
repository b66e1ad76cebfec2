"""Start, resume and load runs: a method learns a stream and writes its rows to a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from time import monotonic
from typing import Any

from everlearn import evaluate
from everlearn.core.json_values import to_json_value
from everlearn.core.settings import change_settings, list_settings
from everlearn.core.state import flatten, to_arrays, to_tensors, unflatten
from everlearn.evaluation import Plan, check_plan, read_plan
from everlearn.evaluation.costs import check_weights, reset_peak_memory
from everlearn.learner import Learner
from everlearn.methods import build, find_method
from everlearn.metrics import summarise
from everlearn.rows import Row
from everlearn.runs import Checkpoint, Run, read_costs, read_rows
from everlearn.runs.folder import SETTINGS, is_finished
from everlearn.stream import TaskStream, read_stream
from everlearn.training.device import find_device, gpu_name

Folder = str | PathLike[str]
_SETTINGS_KEYS = ("method", "settings", "plan", "device", "save_seconds")


def start(
    folder: Folder,
    method: str,
    stream: TaskStream,
    plan: Plan | None = None,
    device: str = "auto",
    save_seconds: float = 30.0,
    **changes: Any,
) -> Iterator[Row]:
    """Start a run in a new folder and yield its rows as they are written.

    Args:
        save_seconds: write a checkpoint at the end of a task if the last one is at least this old.
        changes: settings of the method, by name.
    """
    plan = plan or Plan()
    device = find_device(device)
    settings = change_settings(find_method(method).settings(), changes, method)
    learner = build(method, stream, device, **changes)
    check_plan(stream, plan)
    run_settings = {
        "method": method,
        "settings": list_settings(settings),
        "plan": asdict(plan),
        "device": device,
        "save_seconds": save_seconds,
    }
    run = Run.create(folder, stream.to_json(), run_settings, gpu_name(device))
    return _run_tasks(run, stream, learner, plan, save_seconds)


def ensure(
    folder: Folder,
    method: str,
    stream: TaskStream,
    plan: Plan | None = None,
    device: str = "auto",
    save_seconds: float = 30.0,
    data: str | Path | None = None,
    **changes: Any,
) -> Iterator[Row] | None:
    """Start a run or resume it; return None if it is finished, on whichever device."""
    try:
        return start(folder, method, stream, plan, device, save_seconds, **changes)
    except FileExistsError:  # the same run; a different one raises ValueError
        return None if Run.open(folder).finished else resume(folder, data)
    except ValueError:
        if _is_finished_equivalent(Path(folder), method, stream, plan or Plan(), changes):
            return None
        raise


def _is_finished_equivalent(
    folder: Path, method: str, stream: TaskStream, plan: Plan, changes: dict[str, Any]
) -> bool:
    """Return whether the folder holds this run, finished on another device or with moved weights.

    A setting or evaluation that the run does not name was added later: the run was made without it.
    """
    if not is_finished(folder):
        return False
    run = Run.open(folder)
    defaults = find_method(method).settings()
    requested = to_json_value(list_settings(change_settings(defaults, changes, method)), "settings")
    recorded = recorded_settings(method, run.settings["settings"])
    return (
        run.settings["method"] == method
        and json.loads(run.stream) == json.loads(stream.to_json())
        and _covers_plan(run.settings["plan"], to_json_value(asdict(plan), "plan"))
        and all(
            requested.get(name) == value for name, value in recorded.items() if name != "weights"
        )
    )


def recorded_settings(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run; one that was added later has the default of its settings class."""
    # Of the class, not of the method: dcl-plus turns on options that older runs lack.
    defaults = type(find_method(method).settings())()
    return {**to_json_value(list_settings(defaults), "settings"), **settings}


def _covers_plan(recorded: dict[str, Any], requested: dict[str, Any]) -> bool:
    """Return whether a run was evaluated as requested, or more often but otherwise alike.

    Runs made before `diagonal_images` existed have no such rows; what these show is left blank.
    """
    recorded = {"diagonal_images": requested["diagonal_images"], **recorded}
    recorded = to_json_value(asdict(read_plan(recorded)), "plan")
    every = requested["every"]
    return every % recorded["every"] == 0 and {**recorded, "every": every} == requested


def resume(folder: Folder, data: str | Path | None = None) -> Iterator[Row]:
    """Resume a run from its last checkpoint, on the device it was started on.

    Args:
        data: folder of the data sets, for a stream of recorded images.
    """
    run = open_run(folder)
    device = find_device(run.settings["device"])
    run.gpu = gpu_name(device)
    stream = read_stream(run.stream, data)
    learner = build(run.settings["method"], stream, device, **run.settings["settings"])
    plan = read_plan(run.settings["plan"])
    return _run_tasks(run, stream, learner, plan, run.settings["save_seconds"])


def load_learner(folder: Folder, device: str = "auto", data: str | Path | None = None) -> Learner:
    """Return the learner of a run as of its last checkpoint, on any device."""
    run = open_run(folder)
    learner = build(
        run.settings["method"], read_stream(run.stream, data), device, **run.settings["settings"]
    )
    checkpoint = run.checkpoint()
    if checkpoint is None:
        advice = (
            "it is finished, and its checkpoint was not kept; repeat the run in another folder"
            if run.finished
            else "let the run complete its first tasks"
        )
        raise ValueError(f"{folder} has no checkpoint: {advice}")
    _restore(learner, checkpoint)
    return learner


def _restore(learner: Learner, checkpoint: Checkpoint) -> None:
    learner.load_state(to_tensors(unflatten(checkpoint.arrays, checkpoint.values)))


def open_run(folder: Folder) -> Run:
    """Open the run of a method; refuse a folder that something else wrote."""
    run = Run.open(folder)
    missing = [name for name in _SETTINGS_KEYS if name not in run.settings]
    if missing:
        raise ValueError(
            f"{run.folder / SETTINGS} lacks {', '.join(missing)}: it is not the run of a method; name a "
            "folder that `everlearn run` wrote"
        )
    return run


def _run_tasks(
    run: Run, stream: TaskStream, learner: Learner, plan: Plan, save_seconds: float
) -> Iterator[Row]:
    with run.writing():
        checkpoint = run.checkpoint()
        last_save = monotonic()
        first_task = 0
        step = 0
        reset_peak_memory(learner.device)
        if checkpoint is not None:
            _restore(learner, checkpoint)
            first_task = checkpoint.task + 1
            step = checkpoint.step
        for row in evaluate.run(stream, learner, plan, start=first_task, step=step):
            run.append(row)
            if row["kind"] == "task" and _is_save_due(row, stream, last_save, save_seconds):
                state = learner.state()
                check_weights(state, row["learned"])
                run.save(row["learned"], row["step"], *flatten(to_arrays(state)))
                last_save = monotonic()
            yield row
        run.finish(summarise(read_rows(run.folder), read_costs(run.folder)))


def _is_save_due(row: Row, stream: TaskStream, last_save: float, save_seconds: float) -> bool:
    return row["learned"] + 1 == stream.tasks or monotonic() - last_save >= save_seconds
