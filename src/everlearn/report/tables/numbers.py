"""Numbers as text, as tables show them."""

from __future__ import annotations

MISSING = "–"  # the cell of a value that was not measured
_BYTE_UNITS = ("B", "kB", "MB", "GB", "TB")


def decimal(value: float, digits: int) -> str:
    """Format a number to so many places."""
    return _minus(f"{value:.{digits}f}")


def fraction(value: float) -> str:
    """Format a fraction to three places."""
    return decimal(value, 3)


def signed(value: float, digits: int = 3) -> str:
    """Format a difference, with its sign; one that is rounded to zero has none."""
    return _minus(f"{value:+.{digits}f}")


def integer(value: float) -> str:
    """Format a large number without decimals, in groups of three digits."""
    return _minus(f"{value:,.0f}")


def count(number: int, noun: str) -> str:
    """Format a count with its noun: 1 run, 2 runs."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def three_digits(value: float) -> str:
    """Format any number to three significant digits, large ones to the integer."""
    return integer(value) if abs(value) >= 100 else _minus(f"{value:.3g}")


def duration(value: float) -> str:
    """Format seconds in the unit that fits: s, min or h."""
    if value < 99.95:
        return f"{value:.1f} s"
    minutes = round(value / 60)
    return f"{value / 60:.1f} min" if minutes < 100 else f"{value / 3600:.1f} h"


def byte_size(value: float) -> str:
    """Format bytes in the decimal unit that leaves up to three digits."""
    unit = 0
    while round(value, 0 if unit == 0 else 1) >= 1000 and unit < len(_BYTE_UNITS) - 1:
        value /= 1000
        unit += 1
    return f"{value:.0f} B" if unit == 0 else f"{value:.1f} {_BYTE_UNITS[unit]}"


def p_value(value: float) -> str:
    """Format a p value; small ones as a bound."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _minus(text: str) -> str:
    """Use a real minus sign, and no sign before a number that was rounded to zero."""
    is_zero = not text.strip("+-0.,")
    return text.lstrip("+-") if is_zero else text.replace("-", "−")
