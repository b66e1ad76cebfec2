"""Where numbers come from: commit, command, machine, date and versions of every run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from everlearn.report.loaded_run import LoadedRun
from everlearn.rows import OriginRow

_MACHINE = ("gpu", "cpu", "platform")
_PACKAGES = ("everlearn", "python", "torch", "numpy", "numba", "triton")


class Session(NamedTuple):
    """One start of a run: facts by name, and its command line."""

    facts: dict[str, str]
    command: str


class Origin(NamedTuple):
    """The provenance of one run or measurement; `settings` is JSON."""

    title: str
    folder: str
    sessions: list[Session]
    settings: str


def run_origin(run: LoadedRun) -> Origin:
    """Describe how a run was made."""
    title = f"{run.label}, seed {run.seed}" + ("" if run.finished else ", unfinished")
    sessions = [_session(session) for session in run.sessions]
    return Origin(title, str(run.folder), sessions, to_json(run.settings))


def measurement_origin(name: str, origin: OriginRow) -> Origin:
    """Describe how a measurement was made."""
    return Origin(name, "", [_session(origin)], to_json(origin.get("settings")))


def to_json(value: object) -> str:
    """Format plain values as indented JSON."""
    return json.dumps(value, indent=1, sort_keys=True)


def _session(session: Mapping[str, object]) -> Session:
    facts = {
        "date": session.get("date"),
        "commit": _commit(session),
        "machine": ", ".join(str(session[name]) for name in _MACHINE if session.get(name)),
        "versions": ", ".join(f"{n} {session[n]}" for n in _PACKAGES if session.get(n)),
    }
    known = {name: str(value) if value else "not known" for name, value in facts.items()}
    return Session(known, str(session.get("command") or ""))


def _commit(session: Mapping[str, object]) -> str:
    commit = str(session.get("commit") or "")
    return f"{commit}, with uncommitted changes" if commit and session.get("dirty") else commit
