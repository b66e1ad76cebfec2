"""Verdicts: our result beside the published one, summed up in one word by `framework.rule`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from everlearn.experiments.framework.rule import (
    EQUIVALENCE,
    Lead,
    Values,
    judge_leads,
    judge_number,
    lead_above,
    widen_by_draws,
)
from everlearn.metrics import MIN_SEEDS, mean_or_none
from everlearn.report.tables.numbers import count, decimal, three_digits
from everlearn.report.verdict import Verdict

_NO_ROWS = "no rows yet"


def judge_statement(
    statement: str,
    ours: str,
    leads: Sequence[Lead | None],
    why: str = "",
    names: Sequence[str] = (),
) -> Verdict:
    """Judge a statement that a paper makes in words.

    Args:
        leads: the statement holds if all of them are above 0; None stands for a lead without rows. One
            lead below 0 decides; else nothing is decided while there are leads without rows.
        names: what each lead is of, so that those without rows can be named.
    """
    known = [lead for lead in leads if lead is not None]
    if not known:
        return _unmeasured(statement, "as stated")
    word = judge_leads(known)
    absent = _describe_absent(leads, names)
    if absent and word != "worse":
        word = "undecided"
    return Verdict(
        statement, "as stated", ours, word, _join(why, _describe_leads(known, word), absent)
    )


def compare_number(
    statement: str,
    published: float,
    values: Values,
    why: str = "",
    digits: int = 2,
    margin: float = EQUIVALENCE,
    draws: int = 0,
) -> Verdict:
    """Compare a fraction, of which more is better, with a published one.

    Args:
        values: our numbers, by seed.
        digits: digits after the point that the paper prints.
        margin: see `rule.judge_number`.
        draws: independent draws behind the fraction, of all seeds together, whose own uncertainty is the
            least there is; 0 if they are unknown.
    """
    printed = f"{published:.{digits}f}"
    lead = lead_above(values, published)
    if lead is None:
        return _unmeasured(statement, printed)
    mean = sum(values.values()) / len(values)
    if draws:
        lead = widen_by_draws(lead, mean, published, draws)
    word = judge_number(lead, digits, margin)
    return Verdict(statement, printed, _format_lead(mean, lead, published), word, why)


def unpublished(statement: str, ours: str, why: str = "no value was published") -> Verdict:
    """Report a result of ours that has no published counterpart; `ours` is empty without rows."""
    if not ours:
        return _unmeasured(statement, "none")
    return Verdict(statement, "none", ours, "not comparable", why)


def format_values(values: Mapping[str, float | None], digits: int = 3) -> str:
    """Format named numbers as "a: 0.123; b: 0.456", leaving out those that are None."""
    known = {name: value for name, value in values.items() if value is not None}
    return "; ".join(f"{name}: {decimal(value, digits)}" for name, value in known.items())


def format_means(values: Mapping[str, Values], digits: int = 3) -> str:
    """Format the means over seeds of named numbers, leaving out those without any."""
    return format_values(
        {name: mean_or_none(found.values()) for name, found in values.items()}, digits
    )


def _unmeasured(statement: str, published: str) -> Verdict:
    return Verdict(statement, published, "not measured", "not comparable", _NO_ROWS, measured=False)


def _format_lead(mean: float, lead: Lead, published: float) -> str:
    """Format a fraction with its interval, which is that of its lead over the published one."""
    if lead.seeds < MIN_SEEDS:
        return f"{decimal(mean, 4)} ({count(lead.seeds, 'seed')})"
    low = max(lead.low + published, 0.0)
    high = min(lead.high + published, 1.0)
    return f"{decimal(mean, 4)} ({decimal(low, 4)} to {decimal(high, 4)})"


def _describe_leads(leads: Sequence[Lead], word: str) -> str:
    """Describe the interval that decides: for "worse" that with the lowest upper end, else lower end."""
    if word == "worse":
        weakest = min(leads, key=lambda lead: lead.high)
    else:
        weakest = min(leads, key=lambda lead: (lead.low, lead.seeds))
    if not np.isfinite(weakest.low):
        return f"{count(weakest.seeds, 'seed')}, too few to decide"
    name = "lead" if len(leads) == 1 else "smallest lead"
    ends = f"{three_digits(weakest.low)} to {three_digits(weakest.high)}"
    return f"{name} {ends}, {count(weakest.seeds, 'seed')}"


def _describe_absent(leads: Sequence[Lead | None], names: Sequence[str]) -> str:
    """Name the leads without rows, or count them where they have no names; empty if all have rows."""
    if None not in leads:
        return ""
    if not names:
        return f"{_NO_ROWS} of {leads.count(None)} of {len(leads)} comparisons"
    absent = [name for name, lead in zip(names, leads, strict=True) if lead is None]
    return f"{_NO_ROWS} of: {'; '.join(absent)}"


def _join(*sentences: str) -> str:
    return "; ".join(sentence for sentence in sentences if sentence)
