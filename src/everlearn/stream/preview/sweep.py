"""A sheet that sweeps each factor of one shape from its lowest to its highest value."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image

from everlearn.core.random import Floats
from everlearn.factors import Factors, canonical_factors
from everlearn.render import render
from everlearn.shapes import outlines
from everlearn.stream import Stream
from everlearn.stream.preview.page import (
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
from everlearn.stream.preview.tasks import check_count

_TOP = MARGIN + TITLE + 2 * GAP


def sweep_sheet(stream: Stream, shape: int = 0, steps: int = 9) -> Image.Image:
    """Draw one shape with one row per factor."""
    check_count(steps, "steps")
    curve = outlines(stream.seed, [shape], stream.style)
    rows = _values(steps, len(stream.canvas.colors))
    side = tile_side(stream.canvas.size)
    left = text_width("orientation", LABEL) + 3 * GAP
    across = max(side, text_width("0.000", SMALL)) + GAP
    down = side + SMALL + 3 * GAP
    page = Page(2 * MARGIN + left + steps * across - GAP, _TOP + len(rows) * down + MARGIN - GAP)
    page.text(MARGIN, MARGIN - GAP, f"Shape {shape} of seed {stream.seed}, factor by factor", TITLE)
    for row, (name, values) in enumerate(rows.items()):
        y = _TOP + row * down
        page.text(MARGIN, y + side / 2, name, LABEL, INK, "lm")
        shown = tiles(render(curve, _vary(name, values), stream.canvas))
        for step, (tile, value) in enumerate(zip(shown, values.tolist(), strict=True)):
            x = MARGIN + left + step * across
            page.paste(tile, x, y)
            page.text(x + side / 2, y + side + 4, _format(name, value), SMALL, FAINT, "ma")
    return page.image


def _values(steps: int, colors: int) -> dict[str, Floats]:
    """Return the values of every factor; orientation stops before 2 pi, which equals 0."""
    return {
        "scale": np.linspace(0.5, 1.0, steps),
        "orientation": np.arange(steps, dtype=float) * (2 * math.pi / steps),
        "x": np.linspace(0.0, 1.0, steps),
        "y": np.linspace(0.0, 1.0, steps),
        "colour": np.arange(min(steps, colors), dtype=float),
    }


def _vary(name: str, values: Floats) -> Factors:
    """Return canonical factors with one replaced."""
    return canonical_factors(len(values))._replace(
        **{"color" if name == "colour" else name: values}
    )


def _format(name: str, value: float) -> str:
    return f"{math.degrees(value):.0f}°" if name == "orientation" else f"{value:.3g}"
