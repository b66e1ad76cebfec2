"""How figures look: measures, and colours in a light and a dark shade."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, count
from typing import NamedTuple

WIDTH, TALL, LOW = 640, 336, 176  # pixels: the width of figures, heights of plots
TEXT, SMALL = 14, 12
FONT = "DejaVu Sans"  # comes with matplotlib, which measures texts with it
FONTS = "system-ui, -apple-system, 'Segoe UI', sans-serif"


class Shade(NamedTuple):
    """One colour on white paper and on dark."""

    light: str
    dark: str


class Ink(NamedTuple):
    """How the line of one label is drawn."""

    color: str
    marker: str
    dashes: str


SHADES = {
    "ink": Shade("#1f2328", "#e6edf3"),
    "faint": Shade("#59636e", "#9198a1"),
    "rule": Shade("#d1d9e0", "#3d444d"),
    "paper": Shade("#ffffff", "#0d1117"),
    "blue": Shade("#0072b2", "#3b9be0"),
    "vermilion": Shade("#d55e00", "#f07a30"),
    "green": Shade("#009e73", "#2fc295"),
    "violet": Shade("#4a2fbd", "#8f55ff"),
    "brown": Shade("#6b2c0a", "#f3e08a"),
    "pink": Shade("#c2448f", "#f7a8d8"),
}
INK, FAINT, RULE, PAPER = (SHADES[name].light for name in ("ink", "faint", "rule", "paper"))
HUES = ("blue", "vermilion", "green", "violet", "brown", "pink")
_OWN = {"dcl": "blue", "fine-tuning": "vermilion", "joint": "green"}
_MARKERS = "osD^vP"
_DASHES = ("-", "--", "-.", ":")


def stride(count: int, most: int) -> int:
    """Step over so many things that at most `most` are left: 1, 2, 5, 10, 20 ..."""
    steps = (digit * int(10**power) for power in range(20) for digit in (1, 2, 5))
    return next(step for step in steps if count <= step * most)


def choose_inks(methods: Mapping[str, str]) -> dict[str, Ink]:
    """Draw a label in its method's own colour where that is free, else in the next free one.

    Args:
        methods: label -> method; their order does not matter.
    """
    places: dict[str, int] = {}
    for label in sorted(methods):
        own = _OWN.get(methods[label])
        if own and HUES.index(own) not in places.values():
            places[label] = HUES.index(own)
    # Colours that no method owns come first: an unknown method seldom looks like a known one.
    order = sorted(range(len(HUES)), key=lambda place: HUES[place] in _OWN.values())
    unused = [place for place in order if place not in places.values()]
    rest = sorted(methods.keys() - places.keys())
    places.update(zip(rest, chain(unused, count(len(HUES))), strict=False))
    return {label: _ink(place) for label, place in places.items()}


def _ink(place: int) -> Ink:
    hue, turn = place % len(HUES), place // len(HUES)
    return Ink(SHADES[HUES[hue]].light, _MARKERS[hue], _DASHES[turn % len(_DASHES)])
