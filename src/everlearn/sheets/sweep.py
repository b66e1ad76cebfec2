"""One shape under one factor after another, each swept from its lowest value to its highest."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image

from everlearn.factors import Factors, canonical
from everlearn.philox import Floats
from everlearn.render import render
from everlearn.shapes import outlines
from everlearn.sheets.page import (
    FAINT,
    GAP,
    INK,
    LABEL,
    MARGIN,
    SMALL,
    TITLE,
    Page,
    text_width,
    tile_side,
    tiles,
)
from everlearn.sheets.walk import check_count
from everlearn.stream import Stream

_TOP = MARGIN + TITLE + 2 * GAP


def sweep_sheet(stream: Stream, shape: int = 0, steps: int = 9) -> Image.Image:
    """One shape; a row for each factor."""
    check_count(steps, "steps")
    curve = outlines(stream.seed, [shape], stream.style)
    rows = _rows(steps, len(stream.canvas.colors))
    side = tile_side(stream.canvas.size)
    left = text_width("orientation", LABEL) + 3 * GAP
    across, down = max(side, text_width("0.000", SMALL)) + GAP, side + SMALL + 3 * GAP
    page = Page(2 * MARGIN + left + steps * across - GAP, _TOP + len(rows) * down + MARGIN - GAP)
    page.text(MARGIN, MARGIN - GAP, f"Shape {shape} of seed {stream.seed}, factor by factor", TITLE)
    for row, (name, values) in enumerate(rows.items()):
        y = _TOP + row * down
        page.text(MARGIN, y + side / 2, name, LABEL, INK, "lm")
        shown = tiles(render(curve, _vary(name, values), stream.canvas))
        for step, (tile, value) in enumerate(zip(shown, values.tolist(), strict=True)):
            x = MARGIN + left + step * across
            page.paste(tile, x, y)
            page.text(x + side / 2, y + side + 4, _in_words(name, value), SMALL, FAINT, "ma")
    return page.image


def _rows(steps: int, colors: int) -> dict[str, Floats]:
    """The values of every factor; a whole turn without its end, which is its start."""
    return {
        "scale": np.linspace(0.5, 1.0, steps),
        "orientation": np.arange(steps, dtype=float) * (2 * math.pi / steps),
        "x": np.linspace(0.0, 1.0, steps),
        "y": np.linspace(0.0, 1.0, steps),
        "colour": np.arange(min(steps, colors), dtype=float),
    }


def _vary(name: str, values: Floats) -> Factors:
    """Canonical factors but for one."""
    return canonical(len(values))._replace(**{"color" if name == "colour" else name: values})


def _in_words(name: str, value: float) -> str:
    return f"{math.degrees(value):.0f}°" if name == "orientation" else f"{value:.3g}"
