"""Contact sheets: the shapes of a stream, and the images of a task with their factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from PIL import Image

from everlearn.factors import Factors, canonical_factors
from everlearn.render import render
from everlearn.shapes import outlines
from everlearn.stream import Stream, Task
from everlearn.stream.preview.page import (
    FAINT,
    GAP,
    INK,
    MARGIN,
    SMALL,
    TITLE,
    Page,
    text_width,
    tiles,
)
from everlearn.stream.preview.tasks import check_count, draw_rows

_LINE = SMALL + 5
# Among 600 canonical shapes, none reached farther from its centre than 0.354 of the canvas side.
MAGNIFICATION = 1.4


def shape_sheet(stream: Stream, count: int = 100, columns: int = 10) -> Image.Image:
    """Draw the first shapes of a stream, magnified, with their class ids."""
    check_count(count, "shapes")
    check_count(columns, "columns")
    ids = stream.first_class + np.arange(count)
    canvas = replace(stream.canvas, size=96)
    pose = canonical_factors()._replace(scale=np.array([MAGNIFICATION]))
    images = render(outlines(stream.seed, ids, stream.style), pose, canvas)
    captions = [[str(label)] for label in ids]
    title = f"Shapes {ids[0]} to {ids[-1]} of seed {stream.seed}"
    return _contact_sheet(title, tiles(images, canvas.size), captions, columns)


def factor_sheet(task: Task, count: int = 24, columns: int = 8) -> Image.Image:
    """Draw the first training images of a task with their class and factors."""
    check_count(count, "images")
    check_count(columns, "columns")
    rows = task.order()[:count]
    if not len(rows):
        raise ValueError(f"task {task.index} has no training images to draw")
    captions = [[f"class {label}"] for label in task.train.labels[rows].tolist()]
    if task.train.factors is not None:
        found = describe(task.train.factors.take(rows))
        captions = [[*label, *lines] for label, lines in zip(captions, found, strict=True)]
    title = f"Task {task.index}: the first {len(rows)} of {len(task.train)} training images"
    return _contact_sheet(title, draw_rows(task.train, rows), captions, columns)


def describe(factors: Factors) -> list[list[str]]:
    """Describe factors in three lines per row."""
    show_color = len(np.unique(factors.color)) > 1
    return [
        [
            f"scale {scale:.3g}" + (f", colour {color}" if show_color else ""),
            f"turned {math.degrees(angle):.0f}°",
            f"x {x:.3g}  y {y:.3g}",
        ]
        for color, scale, angle, x, y in zip(*factors, strict=True)
    ]


def _contact_sheet(
    title: str, pictures: Sequence[Image.Image], captions: Sequence[Sequence[str]], columns: int
) -> Image.Image:
    """Arrange tiles in rows, each above its caption."""
    side = pictures[0].width
    lines = max(len(caption) for caption in captions)
    columns = min(columns, len(pictures))
    step_y = side + lines * _LINE + 2 * GAP
    widest = max(text_width(line, SMALL) for caption in captions for line in caption)
    step_x = max(side, widest) + 2 * GAP
    rows = -(-len(pictures) // columns)
    width = max(columns * step_x, text_width(title, TITLE))
    page = Page(width + 2 * MARGIN - 2 * GAP, rows * step_y + 2 * MARGIN + TITLE + GAP)
    page.text(MARGIN, MARGIN - GAP, title, TITLE)
    for place, (picture, caption) in enumerate(zip(pictures, captions, strict=True)):
        x = MARGIN + place % columns * step_x
        y = MARGIN + TITLE + 2 * GAP + place // columns * step_y
        page.paste(picture, x, y)
        for line, text in enumerate(caption):
            ink = INK if line == 0 else FAINT
            page.text(x + side / 2, y + side + 4 + line * _LINE, text, SMALL, ink, "ma")
    return page.image
