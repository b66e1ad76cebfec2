"""A job: one run with all that it follows from; begun, gone on with, or left as it is."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from everlearn.cli.progress import Row, follow
from everlearn.cli.settings import Given, build_stream
from everlearn.cli.values import list_kinds, read_value

if TYPE_CHECKING:
    from everlearn.exam import Plan


class StoppedError(Exception):
    """A run was stopped by hand; its words say how to go on."""


class Asked(NamedTuple):
    """What was typed about how to learn, but the methods.

    Attributes:
        changes: of the preset's stream, by option; None where nothing was typed.
        exams: of the preset's plan, likewise.
        log: names of trackers.
    """

    preset: str
    changes: Given
    exams: Given
    device: str
    save_seconds: float
    log: tuple[str, ...] = ()

    def with_seed(self, seed: int) -> Asked:
        """The same with another seed."""
        return self._replace(changes={**self.changes, "seed": seed})


class Job(NamedTuple):
    """A method that learns a stream in a folder."""

    folder: Path
    method: str
    stream: Any
    plan: Plan
    device: str
    save_seconds: float
    settings: dict[str, Any]
    data: Path | None
    log: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What to call it."""
        return f"{self.method}, seed {self.stream.seed}"


def make_job(folder: Path | None, method: str, settings: Mapping[str, Any], asked: Asked) -> Job:
    """Put together what was typed and what the preset says."""
    from everlearn.presets import find_preset

    preset, data = find_preset(asked.preset), asked.changes["data"]
    stream = build_stream(asked.changes, preset.stream)
    folder = folder or Path("out", "runs", f"{method}-{asked.preset}-seed{stream.seed}")
    own = {**preset.settings_of(method), **settings}
    plan = change_plan(_usual_plan(preset.plan, stream), asked.exams)
    return Job(folder, method, stream, plan, asked.device, asked.save_seconds, own, data, asked.log)


def _usual_plan(plan: Plan, stream: Any) -> Plan:
    """A preset's plan, without the exams that a data set has no new classes for."""
    from everlearn.stream import Stream

    sprites = isinstance(stream, Stream)
    return plan if sprites else replace(plan, one_shot=(), open_set=False)


def change_plan(plan: Plan, exams: Given) -> Plan:
    """The same plan but for what was typed."""
    kinds = list_kinds(plan)
    typed = {name: text for name, text in exams.items() if text is not None}
    fields = {name: name.replace("-", "_") for name in typed}
    new = {fields[n]: read_value(t, kinds[fields[n]], f"--{n}") for n, t in typed.items()}
    return replace(plan, **new)


def check(job: Job) -> None:
    """Raise where a method cannot learn a stream with its settings."""
    from everlearn.methods import build

    build(job.method, job.stream, "cpu", **job.settings)


def begin(job: Job) -> None:
    """Start a run in a new folder and see it through."""
    from everlearn import runs

    rows = runs.start(
        job.folder, job.method, job.stream, job.plan, job.device, job.save_seconds, **job.settings
    )
    see_through(rows, job.folder, job.name, job.stream.tasks, job.log)


def ensure(job: Job) -> None:
    """Have a run finished: begin it, go on with it, or leave it when it is done."""
    from everlearn import runs

    rows = runs.ensure(
        job.folder, job.method, job.stream, job.plan, job.device, job.save_seconds, job.data,
        **job.settings,
    )  # fmt: skip
    if rows is not None:
        see_through(rows, job.folder, job.name, job.stream.tasks, job.log)


def see_through(
    rows: Iterable[Row], folder: Path, name: str, tasks: int | None, log: Sequence[str] = ()
) -> None:
    """Show and log how a run is going until it ends, or say how to go on after a stop by hand."""
    from everlearn.trackers import log_run

    try:
        # Closed at once, also where the stop comes while a bar is drawn.
        with closing(log_run(rows, folder, log)) as logged:
            follow(logged, name, tasks)
    except KeyboardInterrupt:
        again = ["everlearn", "resume", str(folder), *(["--log", ",".join(log)] if log else [])]
        raise StoppedError(f"stopped by hand; go on with: {shlex.join(again)}") from None


def read_log(text: str | None) -> tuple[str, ...]:
    """Read names of trackers with commas between; tell what is wrong before any learning."""
    from everlearn.trackers import check_trackers

    names = tuple(dict.fromkeys(text.split(","))) if text is not None else ()
    check_trackers(names)
    return names
