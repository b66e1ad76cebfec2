"""How figures look: measures, and colours in a light and a dark shade."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from zlib import crc32

WIDTH, TALL, LOW = 640, 336, 176  # pixels: the width of figures, heights of plots
TEXT, SMALL = 14, 12
FONT = "DejaVu Sans"  # comes with matplotlib, which measures texts with it
FONTS = "system-ui, -apple-system, 'Segoe UI', sans-serif"


# A name, or the lengths of strokes and gaps behind an offset.
Dashes = str | tuple[int, tuple[int, ...]]


class Shade(NamedTuple):
    """One colour on white paper and on dark."""

    light: str
    dark: str


class Ink(NamedTuple):
    """How the line of one label is drawn."""

    color: str
    marker: str
    dashes: Dashes


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
    "crimson": Shade("#e40c48", "#f02454"),
    "iris": Shade("#9078fc", "#6c84ac"),
}
INK, FAINT, RULE, PAPER = (SHADES[name].light for name in ("ink", "faint", "rule", "paper"))
HUES = ("blue", "vermilion", "green", "violet", "brown", "pink", "crimson", "iris")
_MARKERS = "osD^vP*X<>ph"
_DASHES: tuple[Dashes, ...] = (
    "-", "--", "-.", ":", (0, (8, 2)), (0, (5, 1, 1, 1, 1, 1)), (0, (12, 3, 3, 3)),
)  # fmt: skip
# A method's place is its look on every page; neighbours are compared most and differ in colour.
_METHODS = (
    "dcl", "fine-tuning", "joint", "er", "ewc", "lwf", "dcl-plus", "der++",
    "si", "l2p-lite", "contrastive", "agem", "icarl", "gdumb", "nearest-mean", "der",
    "online-ewc", "l2", "cumulative", "er-balanced", "gem", "pcr", "hpcr", "rehearsal-free", "l2p",
    "gnr", "ar1-star", "ar1-free", "cwr-star", "latent-replay", "bir", "negative-replay", "ar1",
    "cwr-plus", "cwr",
)  # fmt: skip
# Modes of one method that are compared as methods are, each in a colour of its own.
_MODES = tuple(
    f"gnr {mode}" for mode in ("none", "pr-od", "nr-od", "pr-gd", "nr-gd", "pr-rd", "nr-rd")
)
# Methods that came when modes had their looks.
_CODERS = ("vase", "cci-vae", "beta-vae")
# Lines of one learner that are compared as methods are.
_CONTEXTS = tuple(f"context {number}" for number in range(5))
_KNOWN = (*_METHODS, *_MODES, *_CODERS, *_CONTEXTS)
_LOOKS = len(HUES) * len(_DASHES)


def stride(count: int, most: int) -> int:
    """Step over so many things that at most `most` are left: 1, 2, 5, 10, 20 ..."""
    steps = (digit * int(10**power) for power in range(20) for digit in (1, 2, 5))
    return next(step for step in steps if count <= step * most)


def text_width(words: str, size: float) -> float:
    """Bound the pixels that a line of words takes in the font of figures."""
    return sum(_letter_width(letter) for letter in words) * size


def _letter_width(letter: str) -> float:
    """A letter's share of the font's size, of DejaVu Sans, the widest of the fonts in use."""
    if letter in "ijl.,:;'|! ":
        return 0.34
    if letter in "ftr-()[]":
        return 0.42
    return 1.02 if letter in "mwMW%@+" or not letter.isascii() else 0.66


def choose_inks(methods: Mapping[str, str]) -> dict[str, Ink]:
    """Draw a method in its own colour and dashes, and its labels with different markers.

    An unknown method looks alike on every page, too, but where two of them meet in one look.

    Args:
        methods: label -> method; their order does not matter.
    """
    places = _places(set(methods.values()))
    inks: dict[str, Ink] = {}
    for method, place in places.items():
        labels = sorted(label for label in methods if methods[label] == method)
        inks.update({label: _ink(place, number) for number, label in enumerate(labels)})
    return inks


def _places(methods: set[str]) -> dict[str, int]:
    places = {method: _KNOWN.index(method) for method in methods if method in _KNOWN}
    for method in sorted(methods - places.keys()):
        places[method] = _free_place(method, set(places.values()))
    return places


def _free_place(method: str, taken: set[int]) -> int:
    """Take a place that no method owns, else any free one; past 56 methods two look alike."""
    spare, owned = range(len(_KNOWN), _LOOKS), range(len(_KNOWN))
    start = crc32(method.encode()) % len(spare)
    order = [*spare[start:], *spare[:start], *owned]
    return next((place for place in order if place not in taken), start)


def _ink(place: int, number: int) -> Ink:
    hue, turn = place % len(HUES), place // len(HUES)
    marker = _MARKERS[(hue + number) % len(_MARKERS)]
    return Ink(SHADES[HUES[hue]].light, marker, _DASHES[turn % len(_DASHES)])
