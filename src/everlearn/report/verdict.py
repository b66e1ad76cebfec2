"""A published statement beside our number, and what one says of the other."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

VERDICTS = ("better", "equal", "worse", "not comparable")


class Verdict(NamedTuple):
    """How our number stands to a published one.

    Attributes:
        statement: what was published, in words.
        published: the number there.
        ours: the number here.
        verdict: one of VERDICTS.
        why: how that follows, or what stands in the way.
    """

    statement: str
    published: str
    ours: str
    verdict: str
    why: str


def check_verdict(verdict: Verdict) -> Verdict:
    """Return a verdict, or say what is wrong with it."""
    if verdict.verdict not in VERDICTS:
        raise ValueError(f"unknown verdict {verdict.verdict!r}; known: {', '.join(VERDICTS)}")
    if not verdict.statement:
        raise ValueError("a verdict needs the statement that it is about, found none; write it")
    return verdict


def badge(verdict: str) -> str:
    """Show a verdict as HTML: a word, and a colour for those who see it."""
    return f'<span class="badge {verdict.replace(" ", "-")}">{escape(verdict)}</span>'


def verdict_list(verdicts: Sequence[Verdict]) -> str:
    """Show verdicts as HTML that fits a phone: one block each, numbers under the statement."""
    return "\n".join(_block(check_verdict(verdict)) for verdict in verdicts)


def _block(verdict: Verdict) -> str:
    facts = {"published": verdict.published, "ours": verdict.ours, "why": verdict.why}
    pairs = (f"<dt>{name}</dt><dd>{escape(words)}</dd>" for name, words in facts.items() if words)
    return (
        f'<div class="verdict"><p>{badge(verdict.verdict)} {escape(verdict.statement)}</p>\n'
        f"<dl>{''.join(pairs)}</dl></div>"
    )
