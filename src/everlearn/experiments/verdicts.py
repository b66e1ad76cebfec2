"""Ours beside what was published, in one of four words."""

from __future__ import annotations

from collections.abc import Mapping

from everlearn.report.verdict import Verdict

_MARGIN = 0.005  # half of the last figure that the papers print
_NO_ROWS = "no rows yet"


def statement(words: str, ours: str, holds: bool | None, why: str = "") -> Verdict:
    """Whether what a paper says in words is what we see; None where there are no rows."""
    if holds is None:
        return Verdict(words, "as stated", "not measured", "not comparable", _NO_ROWS)
    return Verdict(words, "as stated", ours, "equal" if holds else "worse", why)


def number(words: str, published: float, ours: float | None, why: str = "") -> Verdict:
    """Compare a number that should be high; it is equal within half of the last figure printed."""
    if ours is None:
        return Verdict(words, f"{published:.2f}", "not measured", "not comparable", _NO_ROWS)
    more = round(ours - published, 9)  # 1.0 - 0.995 is a little over 0.005
    word = "better" if more > _MARGIN else "worse" if more < -_MARGIN else "equal"
    return Verdict(words, f"{published:.2f}", f"{ours:.4f}", word, why)


def own(words: str, ours: str, why: str = "no value was published") -> Verdict:
    """A number of ours that no paper has."""
    return Verdict(
        words, "none", ours or "not measured", "not comparable", why if ours else _NO_ROWS
    )


def listed(values: Mapping[str, float | None], digits: int = 3) -> str:
    """Numbers by name, those that are known."""
    known = {name: value for name, value in values.items() if value is not None}
    return "; ".join(f"{name}: {value:.{digits}f}" for name, value in known.items())
