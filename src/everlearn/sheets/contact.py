"""Contact sheets: the shapes of a stream, and the images of a task with their factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from PIL import Image

from everlearn.factors import Factors, canonical
from everlearn.render import render
from everlearn.shapes import outlines
from everlearn.sheets.page import (
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
from everlearn.sheets.walk import check_count, draw_rows
from everlearn.stream import Stream, Task

_LINE = SMALL + 5
# Of 600 canonical shapes none reached farther from its centre than 0.354 of the canvas side.
CLOSE_UP = 1.4


def shape_sheet(stream: Stream, count: int = 100, columns: int = 10) -> Image.Image:
    """The first shapes of a stream, close up, with their class ids."""
    check_count(count, "shapes")
    check_count(columns, "columns")
    ids = stream.first_class + np.arange(count)
    canvas = replace(stream.canvas, size=96)
    pose = canonical()._replace(scale=np.array([CLOSE_UP]))
    images = render(outlines(stream.seed, ids, stream.style), pose, canvas)
    captions = [[str(label)] for label in ids]
    title = f"Shapes {ids[0]} to {ids[-1]} of seed {stream.seed}"
    return _contact(title, tiles(images, canvas.size), captions, columns)


def factor_sheet(task: Task, count: int = 24, columns: int = 8) -> Image.Image:
    """The first training images of a task, with their class and factors."""
    check_count(count, "images")
    check_count(columns, "columns")
    rows = task.order()[:count]
    if not len(rows):
        raise ValueError(f"task {task.index} has no training images to draw")
    captions = [[f"class {label}"] for label in task.train.labels[rows].tolist()]
    if task.train.factors is not None:
        found = describe(task.train.factors.take(rows))
        captions = [[*first, *more] for first, more in zip(captions, found, strict=True)]
    title = f"Task {task.index}: the first {len(rows)} of {len(task.train)} training images"
    return _contact(title, draw_rows(task.train, rows), captions, columns)


def describe(factors: Factors) -> list[list[str]]:
    """Factors in words, three lines a row."""
    several = len(np.unique(factors.color)) > 1
    return [
        [
            f"scale {scale:.3g}" + (f", colour {color}" if several else ""),
            f"turned {math.degrees(angle):.0f}°",
            f"x {x:.3g}  y {y:.3g}",
        ]
        for color, scale, angle, x, y in zip(*factors, strict=True)
    ]


def _contact(
    title: str, pictures: Sequence[Image.Image], captions: Sequence[Sequence[str]], columns: int
) -> Image.Image:
    """Lay tiles in rows, each over its caption."""
    side, lines = pictures[0].width, max(len(words) for words in captions)
    columns = min(columns, len(pictures))
    step_y = side + lines * _LINE + 2 * GAP
    widest = max(text_width(line, SMALL) for words in captions for line in words)
    step_x = max(side, widest) + 2 * GAP
    rows = -(-len(pictures) // columns)
    width = max(columns * step_x, text_width(title, TITLE))
    page = Page(width + 2 * MARGIN - 2 * GAP, rows * step_y + 2 * MARGIN + TITLE + GAP)
    page.text(MARGIN, MARGIN - GAP, title, TITLE)
    for place, (picture, words) in enumerate(zip(pictures, captions, strict=True)):
        x = MARGIN + place % columns * step_x
        y = MARGIN + TITLE + 2 * GAP + place // columns * step_y
        page.paste(picture, x, y)
        for line, text in enumerate(words):
            ink = INK if line == 0 else FAINT
            page.text(x + side / 2, y + side + 4 + line * _LINE, text, SMALL, ink, "ma")
    return page.image
