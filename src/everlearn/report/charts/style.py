"""The style of figures: sizes, fonts, colours for light and dark pages, and line styles of methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from zlib import crc32

from everlearn.methods.registry import METHODS

# Pixels. Figures are narrow enough for their text to be readable on a phone.
WIDTH, PLOT_HEIGHT, PANEL_HEIGHT = 560, 320, 176
TEXT, SMALL = 14, 12  # font sizes
FONT = "DejaVu Sans"  # comes with matplotlib, which measures text with it
FONTS = "system-ui, -apple-system, 'Segoe UI', sans-serif"


# A name, or an offset and the lengths of dashes and gaps.
Dashes = str | tuple[int, tuple[int, ...]]


class ThemeColor(NamedTuple):
    """One colour on a light and on a dark page."""

    light: str
    dark: str


class LineStyle(NamedTuple):
    """How the line of one label is drawn."""

    color: str
    marker: str
    dashes: Dashes


COLORS = {
    "text": ThemeColor("#1f2328", "#e6edf3"),
    "muted": ThemeColor("#59636e", "#9198a1"),
    "grid": ThemeColor("#d1d9e0", "#3d444d"),
    "background": ThemeColor("#ffffff", "#0d1117"),
    "blue": ThemeColor("#0072b2", "#3b9be0"),
    "vermilion": ThemeColor("#d55e00", "#f07a30"),
    "green": ThemeColor("#009e73", "#2fc295"),
    "violet": ThemeColor("#4a2fbd", "#8f55ff"),
    "brown": ThemeColor("#6b2c0a", "#f3e08a"),
    "pink": ThemeColor("#c2448f", "#f7a8d8"),
    "crimson": ThemeColor("#e40c48", "#f02454"),
    "iris": ThemeColor("#9078fc", "#6c84ac"),
}
TEXT_COLOR = COLORS["text"].light
MUTED = COLORS["muted"].light
GRID = COLORS["grid"].light
BACKGROUND = COLORS["background"].light
LINE_COLORS = ("blue", "vermilion", "green", "violet", "brown", "pink", "crimson", "iris")
_MARKERS = "osD^vP*X<>ph"
_DASHES: tuple[Dashes, ...] = (
    "-", "--", "-.", ":", (0, (8, 2)), (0, (5, 1, 1, 1, 1, 1)), (0, (12, 3, 3, 3)),
)  # fmt: skip
# The index of a line style. That of a method is in its record; neighbours differ in colour. The modes of
# GNR and the contexts of VASE are drawn like methods.
_MODES = ("none", "pr-od", "nr-od", "pr-gd", "nr-gd", "pr-rd", "nr-rd")
_STYLES = {
    **{name: method.style for name, method in METHODS.items() if method.style is not None},
    **{f"gnr {mode}": 35 + number for number, mode in enumerate(_MODES)},
    **{f"context {number}": 45 + number for number in range(5)},
}
_NUM_STYLES = len(LINE_COLORS) * len(_DASHES)


def stride(count: int, maximum: int) -> int:
    """Return the step among 1, 2, 5, 10, 20 .. that leaves at most `maximum` of `count` items."""
    steps = (digit * int(10**power) for power in range(20) for digit in (1, 2, 5))
    return next(step for step in steps if count <= step * maximum)


def text_width(text: str, size: float) -> float:
    """Return an upper bound of the width of a line of text in pixels."""
    return sum(_letter_width(letter) for letter in text) * size


def _letter_width(letter: str) -> float:
    """Return a width relative to the font size, for DejaVu Sans, the widest of the fonts in use."""
    if letter in "ijl.,:;'|! ":
        return 0.34
    if letter in "ftr-()[]":
        return 0.42
    return 1.02 if letter in "mwMW%@+" or not letter.isascii() else 0.66


def line_styles(methods: Mapping[str, str]) -> dict[str, LineStyle]:
    """Return a style per label: the method sets colour and dashes, its labels differ in markers.

    The style of an unknown method follows from its name, unless another method has it already.

    Args:
        methods: label -> method; the order does not matter.
    """
    styles: dict[str, LineStyle] = {}
    for method, index in _style_indices(set(methods.values())).items():
        labels = sorted(label for label in methods if methods[label] == method)
        styles.update({label: _line_style(index, n) for n, label in enumerate(labels)})
    return styles


def _style_indices(methods: set[str]) -> dict[str, int]:
    indices = {method: _STYLES[method] for method in methods if method in _STYLES}
    for method in sorted(methods - indices.keys()):
        indices[method] = _free_index(method, set(indices.values()))
    return indices


def _free_index(method: str, taken: set[int]) -> int:
    """Return the index of a spare style, else of any free one; beyond 56 methods styles repeat."""
    owned = sorted(_STYLES.values())
    spare = [index for index in range(_NUM_STYLES) if index not in owned]
    start = crc32(method.encode()) % len(spare)
    order = [*spare[start:], *spare[:start], *owned]
    return next((index for index in order if index not in taken), start)


def _line_style(index: int, label_number: int) -> LineStyle:
    color = index % len(LINE_COLORS)
    marker = _MARKERS[(color + label_number) % len(_MARKERS)]
    dashes = _DASHES[index // len(LINE_COLORS) % len(_DASHES)]
    return LineStyle(COLORS[LINE_COLORS[color]].light, marker, dashes)
