"""Verdicts: our result beside the published one, summed up in one word."""

from __future__ import annotations

from collections.abc import Mapping

from everlearn.report.verdict import Verdict

_MARGIN = 0.005  # half of the last digit that the papers print
_NOT_MEASURED = "not measured"
_NO_ROWS = "no rows yet"


def judge_claim(claim: str, ours: str, holds: bool | None, why: str = "") -> Verdict:
    """Judge a claim that a paper makes in words; `holds` is None where there are no rows."""
    if holds is None:
        return Verdict(claim, "as stated", _NOT_MEASURED, "not comparable", _NO_ROWS)
    return Verdict(claim, "as stated", ours, "equal" if holds else "worse", why)


def compare_number(claim: str, published: float, ours: float | None, why: str = "") -> Verdict:
    """Compare a number for which higher is better; equal means within half of the last digit."""
    if ours is None:
        return Verdict(claim, f"{published:.2f}", _NOT_MEASURED, "not comparable", _NO_ROWS)
    difference = round(ours - published, 9)  # 1.0 - 0.995 is slightly more than 0.005
    word = "better" if difference > _MARGIN else "worse" if difference < -_MARGIN else "equal"
    return Verdict(claim, f"{published:.2f}", f"{ours:.4f}", word, why)


def unpublished(claim: str, ours: str, why: str = "no value was published") -> Verdict:
    """Report a result of ours that has no published counterpart; `ours` is empty without rows."""
    if not ours:
        return Verdict(claim, "none", _NOT_MEASURED, "not comparable", _NO_ROWS)
    return Verdict(claim, "none", ours, "not comparable", why)


def format_values(values: Mapping[str, float | None], digits: int = 3) -> str:
    """Format named numbers as "a: 0.123; b: 0.456", leaving out those that are None."""
    known = {name: value for name, value in values.items() if value is not None}
    return "; ".join(f"{name}: {value:.{digits}f}" for name, value in known.items())
