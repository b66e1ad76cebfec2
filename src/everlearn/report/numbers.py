"""Numbers in words, as tables show them."""

from __future__ import annotations

NONE = "–"
_BYTES = ("B", "kB", "MB", "GB", "TB")


def share(value: float) -> str:
    """A share, to three places."""
    return _minus(f"{value:.3f}")


def change(value: float) -> str:
    """A difference of shares, with its sign."""
    return _minus(f"{value:+.3f}")


def whole(value: float) -> str:
    """A large number, in groups of three digits."""
    return _minus(f"{value:,.0f}")


def count(number: int, thing: str) -> str:
    """So many things: 1 run, 2 runs."""
    return f"{number} {thing}" + ("" if number == 1 else "s")


def plain(value: float) -> str:
    """Any number, to three digits."""
    return whole(value) if abs(value) >= 100 else _minus(f"{value:.3g}")


def seconds(value: float) -> str:
    """A time: seconds with their tenths, then minutes, then hours."""
    if value < 99.95:
        return f"{value:.1f} s"
    minutes = round(value / 60)
    return f"{value / 60:.1f} min" if minutes < 100 else f"{value / 3600:.1f} h"


def size(value: float) -> str:
    """Bytes in the unit that leaves up to three digits, in steps of a thousand."""
    unit = 0
    while round(value, 0 if unit == 0 else 1) >= 1000 and unit < len(_BYTES) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.0f} B" if unit == 0 else f"{value:.1f} {_BYTES[unit]}"


def chance(value: float) -> str:
    """A p value; small ones by a bound."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _minus(words: str) -> str:
    # Rounding leaves a minus before nothing.
    bare = words if words.strip("+-0.,") else words.replace("-", "")
    return bare.replace("-", "−")
