"""A published statement beside our number, and how they compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

VERDICTS = ("better", "equal", "worse", "undecided", "not comparable")


class Verdict(NamedTuple):
    """How our number compares with a published one.

    Attributes:
        statement: what was published, in words.
        published: the published number.
        ours: our number.
        verdict: one of VERDICTS.
        why: the reason for the verdict, or what prevents a comparison.
        measured: whether there are rows behind our number; `ours` says what is missing where not.
    """

    statement: str
    published: str
    ours: str
    verdict: str
    why: str
    measured: bool = True


def check_verdict(verdict: Verdict) -> Verdict:
    """Return the verdict; raise ValueError if it is not valid."""
    if verdict.verdict not in VERDICTS:
        raise ValueError(f"unknown verdict {verdict.verdict!r}; known: {', '.join(VERDICTS)}")
    if not verdict.statement:
        raise ValueError("a verdict needs the statement that it is about, found none; write it")
    return verdict


def count_verdicts(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """Count the verdicts of each kind, in the order of VERDICTS, without zeros."""
    found = [check_verdict(verdict).verdict for verdict in verdicts]
    return {name: found.count(name) for name in VERDICTS if name in found}
