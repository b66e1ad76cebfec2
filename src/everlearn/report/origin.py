"""Where numbers come from: commit, command, machine, date and versions of every run, as HTML."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from typing import Any

from everlearn.report.load import Finished
from everlearn.report.page import command_box
from everlearn.results import Row

_MACHINE = ("gpu", "cpu", "platform")
_VERSIONS = ("everlearn", "python", "torch", "numpy", "numba", "triton")


def tell_origins(runs: Iterable[Finished]) -> str:
    """Describe each run in a part that opens on a click."""
    return "\n".join(_run(run) for run in runs)


def tell_part(name: str, origin: Row) -> str:
    """Describe a measurement in a part that opens on a click."""
    return (
        f"<details><summary>{escape(name)}</summary>\n{_session(origin)}\n"
        f"{show_json(origin.get('settings'))}</details>"
    )


def show_json(value: Any) -> str:
    """Show plain values as indented JSON."""
    return f"<pre>{escape(json.dumps(value, indent=1, sort_keys=True))}</pre>"


def _run(run: Finished) -> str:
    title = f"{run.label}, seed {run.seed}" + ("" if run.finished else ", unfinished")
    sessions = "\n".join(_session(session) for session in run.sessions)
    return (
        f"<details><summary>{escape(title)}</summary>\n{_list({'folder': str(run.folder)})}\n"
        f"{sessions or '<p>Nothing is known of how it was made.</p>'}\n"
        f"{show_json(run.settings)}</details>"
    )


def _session(session: Row) -> str:
    facts = {
        "date": session.get("date"),
        "commit": _commit(session),
        "machine": ", ".join(str(session[name]) for name in _MACHINE if session.get(name)),
        "versions": ", ".join(f"{n} {session[n]}" for n in _VERSIONS if session.get(n)),
    }
    command = session.get("command")
    return _list(facts) + command_box(str(command) if command else "")


def _commit(session: Row) -> str | None:
    commit = session.get("commit")
    return f"{commit}, with changes not committed" if commit and session.get("dirty") else commit


def _list(facts: dict[str, Any]) -> str:
    known = {name: str(value) if value else "not known" for name, value in facts.items()}
    pairs = (f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in known.items())
    return f"<dl>{''.join(pairs)}</dl>"
