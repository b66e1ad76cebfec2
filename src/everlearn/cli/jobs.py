"""A job: one run with everything it depends on; started, resumed, or left alone when finished."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from everlearn.cli.options import PLAN_FIELDS
from everlearn.cli.progress import show_progress
from everlearn.cli.stream_options import StreamOptions, build_stream
from everlearn.cli.values import list_types, parse_value
from everlearn.rows import Row

if TYPE_CHECKING:
    from everlearn.evaluation import Plan
    from everlearn.stream import TaskStream


class StoppedError(Exception):
    """The user stopped a run; the message says how to resume it."""


class RunRequest(NamedTuple):
    """What was typed about a run, except its method.

    Attributes:
        changes: options that change the preset's stream; None where nothing was typed.
        plan_options: options that change the preset's evaluation plan; None where nothing was typed.
        log: names of trackers.
    """

    preset: str
    changes: StreamOptions
    plan_options: StreamOptions
    device: str
    save_seconds: float
    log: tuple[str, ...] = ()

    def with_seed(self, seed: int) -> RunRequest:
        """Return the same request with another seed."""
        return self._replace(changes={**self.changes, "seed": seed})


class Job(NamedTuple):
    """A method, a stream and the folder of their run."""

    folder: Path
    method: str
    stream: TaskStream
    plan: Plan
    device: str
    save_seconds: float
    settings: dict[str, Any]
    data: Path | None
    log: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the name shown beside the progress bar."""
        return f"{self.method}, seed {self.stream.seed}"


def make_job(
    folder: Path | None, method: str, settings: Mapping[str, Any], request: RunRequest
) -> Job:
    """Combine what was typed with the preset."""
    from everlearn.runs.presets import find_preset

    preset = find_preset(request.preset)
    stream = build_stream(request.changes, preset.stream)
    return Job(
        folder=folder or Path("out", "runs", f"{method}-{request.preset}-seed{stream.seed}"),
        method=method,
        stream=stream,
        plan=change_plan(_fit_plan(preset.plan, stream, request), request.plan_options),
        device=request.device,
        save_seconds=request.save_seconds,
        settings={**preset.settings_of(method), **settings},
        data=request.changes["data"],
        log=request.log,
    )


def _fit_plan(plan: Plan, stream: TaskStream, request: RunRequest) -> Plan:
    """Return a preset's plan without the evaluations of new classes, where there are none to use.

    Only sprites have new classes, and their images are test images.
    """
    from everlearn.stream import Stream

    new_classes = isinstance(stream, Stream) and request.plan_options["eval-split"] != "val"
    return plan if new_classes else replace(plan, one_shot=(), open_set=False)


def change_plan(plan: Plan, options: StreamOptions) -> Plan:
    """Return the plan with the options that were typed."""
    types = list_types(plan)
    changes = {}
    for option, text in options.items():
        if text is not None:
            field = PLAN_FIELDS.get(option, option.replace("-", "_"))
            changes[field] = parse_value(text, types[field], f"--{option}")
    return replace(plan, **changes)


def check(job: Job) -> None:
    """Raise if a method cannot learn a stream with its settings."""
    from everlearn.methods import build

    build(job.method, job.stream, "cpu", **job.settings)


def start(job: Job) -> None:
    """Start a run in a new folder and run it to its end."""
    from everlearn.runs import launch

    rows = launch.start(
        job.folder, job.method, job.stream, job.plan, job.device, job.save_seconds, **job.settings
    )
    run_to_end(rows, job.folder, job.name, job.stream.tasks, job.log)


def ensure(job: Job) -> None:
    """Start a run, resume it, or leave it alone if it is finished."""
    from everlearn.runs import launch

    rows = launch.ensure(
        job.folder, job.method, job.stream, job.plan, job.device, job.save_seconds, job.data,
        **job.settings,
    )  # fmt: skip
    if rows is not None:
        run_to_end(rows, job.folder, job.name, job.stream.tasks, job.log)


def run_to_end(
    rows: Iterable[Row], folder: Path, name: str, tasks: int | None, log: Sequence[str] = ()
) -> None:
    """Show and log a run until it ends; after Ctrl-C say how to resume it."""
    from everlearn.runs.trackers import log_run

    try:
        # Closed at once, even if the interrupt arrives while the bar is drawn.
        with closing(log_run(rows, folder, log)) as logged:
            show_progress(logged, name, tasks)
    except KeyboardInterrupt:
        command = ["everlearn", "resume", str(folder), *(["--log", ",".join(log)] if log else [])]
        raise StoppedError(f"stopped by hand; go on with: {shlex.join(command)}") from None


def parse_trackers(text: str | None) -> tuple[str, ...]:
    """Parse names of trackers separated by commas; check them before any training."""
    from everlearn.runs.trackers import check_trackers

    names = tuple(dict.fromkeys(text.split(","))) if text is not None else ()
    check_trackers(names)
    return names
