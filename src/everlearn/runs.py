"""Runs that are kept: a method learns a stream in a folder, and goes on there after any stop."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import torch
from torch import Tensor

from everlearn import evaluate
from everlearn.exam import Plan, Row, check_exams
from everlearn.exam.costs import check_weights, forget_peak, gpu_of
from everlearn.learner import Learner, find_device
from everlearn.methods import build, find_method
from everlearn.metrics import summarise
from everlearn.results import Run, flatten, read_costs, read_rows, unflatten
from everlearn.results.folder import SETTINGS, is_finished
from everlearn.results.plain import plain
from everlearn.settings import change_settings, list_settings
from everlearn.stream import read_stream

Folder = str | PathLike[str]
_KEPT = ("method", "settings", "plan", "device", "save_seconds")


def start(
    folder: Folder,
    method: str,
    stream: Any,
    plan: Plan | None = None,
    device: str = "auto",
    save_seconds: float = 30.0,
    **changes: Any,
) -> Iterator[Row]:
    """Begin a run in a new folder; rows come as they are written there.

    Args:
        save_seconds: after the first task that ends so long after the last checkpoint, write one.
        changes: settings of the method, by name.
    """
    plan, device = plan or Plan(), find_device(device)
    settings = change_settings(find_method(method).settings(), changes, method)
    learner = build(method, stream, device, **changes)
    check_exams(stream, plan)
    kept = {
        "method": method,
        "settings": list_settings(settings),
        "plan": asdict(plan),
        "device": device,
        "save_seconds": save_seconds,
    }
    run = Run.create(folder, stream.to_json(), kept, gpu_of(device))
    return _work(run, stream, learner, plan, save_seconds)


def ensure(
    folder: Folder,
    method: str,
    stream: Any,
    plan: Plan | None = None,
    device: str = "auto",
    save_seconds: float = 30.0,
    data: str | Path | None = None,
    **changes: Any,
) -> Iterator[Row] | None:
    """Begin a run, or go on with it; None where it is finished, on whatever device that was."""
    try:
        return start(folder, method, stream, plan, device, save_seconds, **changes)
    except FileExistsError:  # the very same run is there: another one is a ValueError
        return None if Run.open(folder).finished else resume(folder, data)
    except ValueError:
        if _is_done(Path(folder), method, stream, plan or Plan(), changes):
            return None
        raise


def _is_done(folder: Path, method: str, stream: Any, plan: Plan, changes: dict[str, Any]) -> bool:
    """Whether a finished run differs in the device, the times of checkpoints and the place of weights only.

    A setting that the run does not name is younger than the run, which was without it.
    """
    if not is_finished(folder):
        return False
    run, settings = Run.open(folder), find_method(method).settings()
    asked = plain(list_settings(change_settings(settings, changes, method)), "settings")
    before = plain(list_settings(type(settings)()), "settings")  # without what came later
    there = {**before, **run.settings["settings"]}
    return (
        run.settings["method"] == method
        and json.loads(run.stream) == json.loads(stream.to_json())
        and _tests_enough(run.settings["plan"], plain(asdict(plan), "plan"))
        and all(asked.get(name) == value for name, value in there.items() if name != "weights")
    )


def _tests_enough(there: dict[str, Any], asked: dict[str, Any]) -> bool:
    """Whether a run was examined as asked, or in between, too; it was without exams it does not name."""
    there = {**plain(asdict(Plan()), "plan"), **there}
    return asked["every"] % there["every"] == 0 and {**there, "every": asked["every"]} == asked


def resume(folder: Folder, data: str | Path | None = None) -> Iterator[Row]:
    """Go on with a run from its last checkpoint, on the device it began on.

    Args:
        data: folder of the data sets, for a stream of real images.
    """
    run = _open(folder)
    kept = run.settings
    device = find_device(kept["device"])
    run.gpu = gpu_of(device)
    stream, plan = read_stream(run.stream, data), Plan(**kept["plan"])
    learner = build(kept["method"], stream, device, **kept["settings"])
    return _work(run, stream, learner, plan, kept["save_seconds"])


def load_learner(folder: Folder, device: str = "auto", data: str | Path | None = None) -> Learner:
    """The learner of a run as it was at the last checkpoint, on any device."""
    run = _open(folder)
    learner = build(
        run.settings["method"], read_stream(run.stream, data), device, **run.settings["settings"]
    )
    point = run.checkpoint()
    if point is None:
        more = (
            "it is finished, and its checkpoint was not kept; make the run again in another folder"
            if run.finished
            else "let the run get through its first tasks"
        )
        raise ValueError(f"{folder} has no checkpoint: {more}")
    learner.load_state(to_tensors(unflatten(point.arrays, point.values)))
    return learner


def _open(folder: Folder) -> Run:
    run = Run.open(folder)
    missing = [name for name in _KEPT if name not in run.settings]
    if missing:
        raise ValueError(
            f"{run.folder / SETTINGS} is not of a method's run: it lacks {', '.join(missing)}; name a "
            "folder that `everlearn run` wrote"
        )
    return run


def _work(run: Run, stream: Any, learner: Learner, plan: Plan, seconds: float) -> Iterator[Row]:
    with run.writing():
        point, saved = run.checkpoint(), monotonic()
        first, step = 0, 0
        forget_peak(learner.device)
        if point is not None:
            learner.load_state(to_tensors(unflatten(point.arrays, point.values)))
            first, step = point.task + 1, point.step
        for row in evaluate.run(stream, learner, plan, start=first, step=step):
            run.append(row)
            if row["kind"] == "task" and _is_time(row, stream, saved, seconds):
                state = learner.state()
                check_weights(state, row["learned"])
                run.save(row["learned"], row["step"], *flatten(to_arrays(state)))
                saved = monotonic()
            yield row
        run.finish(summarise(read_rows(run.folder), read_costs(run.folder)))


def _is_time(row: Row, stream: Any, saved: float, seconds: float) -> bool:
    return row["learned"] + 1 == stream.tasks or monotonic() - saved >= seconds


def to_arrays(state: Any) -> Any:
    """A state with arrays in the place of tensors."""
    return _exchange(state, Tensor, lambda tensor: tensor.detach().cpu().numpy())


def to_tensors(state: Any) -> Any:
    """A state with tensors in the place of arrays."""
    return _exchange(state, np.ndarray, torch.from_numpy)


def _exchange(state: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """Change all of one kind in nested dicts and lists; leave the rest."""
    if isinstance(state, kind):
        return change(state)
    if isinstance(state, dict):
        return {name: _exchange(part, kind, change) for name, part in state.items()}
    return [_exchange(p, kind, change) for p in state] if isinstance(state, list) else state
