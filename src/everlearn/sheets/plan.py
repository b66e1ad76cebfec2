"""What a scenario does, at a glance: a row a task, with example images and the classes present."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from everlearn.factors import Mixture
from everlearn.philox import Floats
from everlearn.sheets import bars, plane
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
)
from everlearn.sheets.walk import AnyStream, check_count, count_classes, draw_rows, walk
from everlearn.stream import Environments, Stream, Task

SENTENCES = {
    "class": "Every task brings new classes",
    "task": "Every task brings new classes, and the task is named when testing",
    "domain": "The classes stay; every task shows another band of {factor}",
    "nic": "Classes arrive one by one: new ones, and old ones in another band of {factor}",
    "blurry": "Some classes stay in one task, some images of the others leak into all tasks",
    "recurring": "Old classes come back beside new ones",
}
_WORDS = 190
_TOP = MARGIN + TITLE + 8 * GAP


class Line(NamedTuple):
    """One task of the sheet: words about it, example images and their classes."""

    words: list[str]
    pictures: list[Image.Image]
    labels: list[int]


def scenario_sheet(
    stream: AnyStream, tasks: int = 6, images: int = 8, start: int = 0, side: int = 96
) -> Image.Image:
    """Some tasks of a stream: example images, and how many training images each class has.

    Args:
        tasks: how many, from task `start` on; fewer where the stream ends.
        images: examples a task.
        side: tiles are this large at most.
    """
    check_count(images, "images a task", 50)
    shown = walk(stream, start, tasks, 50)
    side = tile_side(stream.canvas.size, side)
    floors = [_TOP + side + row * (side + SMALL + 4 * GAP) for row in range(len(shown))]
    right = MARGIN + _WORDS + images * (side + GAP) + 3 * GAP
    title = about(stream)
    width, height = _measure(stream, right + bars.WIDTH, floors[-1])
    page = Page(max(width, text_width(title, TITLE) + 2 * MARGIN), height)
    page.text(MARGIN, MARGIN - GAP, title, TITLE)
    for task, floor in zip(shown, floors, strict=True):
        _draw_line(page, _line(stream, task, images, side), floor - side, side)
    bars.draw_bars(page, [count_classes(task) for task in shown], right, floors, side)
    if _has_spaces(stream):
        plane.draw_plane(page, shown[0], page.image.width - MARGIN - plane.SIDE, _TOP)
    return page.image


def about(stream: AnyStream) -> str:
    """Say in a sentence what comes when."""
    extras = {"every image is seen once only": stream.online}
    if isinstance(stream, Environments):
        return _join("Every task is an environment", extras)
    name = stream.scenario.name
    words = SENTENCES.get(name, f"Scenario {name}")
    extras[f"class sizes differ by a factor of {stream.imbalance:g}"] = stream.imbalance > 1
    if isinstance(stream, Stream):
        extras |= {
            "some combinations of factors are kept for the test": stream.held_out is not None,
            "test images have factors of their own": stream.test_factors is not None,
            "factors depend on one another": isinstance(stream.factors, Mixture),
        }
    return _join(words.format(factor=getattr(stream.scenario, "factor", "")), extras)


def _join(words: str, extras: dict[str, bool]) -> str:
    """A sentence and what else holds."""
    return "; ".join([words, *(more for more, holds in extras.items() if holds)])


def _has_spaces(stream: AnyStream) -> bool:
    if not isinstance(stream, Stream):
        return False
    return not (stream.factors is stream.test_factors is stream.held_out is None)


def _measure(stream: AnyStream, right: int, floor: int) -> tuple[int, int]:
    """Width and height of the page."""
    width, height = right + MARGIN, floor + SMALL + 2 * GAP + MARGIN
    if not _has_spaces(stream):
        return width, height
    return width + plane.SIDE + 14 * GAP, max(height, _TOP + plane.SIDE + plane.BELOW + MARGIN)


def _line(stream: AnyStream, task: Task, images: int, side: int) -> Line:
    focus = getattr(getattr(stream, "scenario", None), "factor", None)
    rows = examples(task, images, focus)
    classes = len(count_classes(task))
    words = [f"task {task.index}", f"{classes} class{'es' if classes != 1 else ''}"]
    if isinstance(stream, Environments):
        environment = stream.environments[task.index]
        words[1:] = [" ".join(environment.words) or "standing still", environment.source]
    words.append(f"{len(task.train)} images")
    if focus is not None and len(rows) and task.train.factors is not None:
        words.append(_band(focus, getattr(task.train.factors, focus)))
    return Line(words, draw_rows(task.train, rows, side), task.train.labels[rows].tolist())


def _band(name: str, values: NDArray[Any]) -> str:
    low, high = float(values.min()), float(values.max())
    if name == "orientation":
        return f"turned {math.degrees(low):.0f}° to {math.degrees(high):.0f}°"
    return f"{name} {low:.2f} to {high:.2f}"


def _draw_line(page: Page, line: Line, y: int, side: int) -> None:
    page.text(MARGIN, y - 5, line.words[0], LABEL)
    for number, words in enumerate(line.words[1:]):
        page.text(MARGIN, y + LABEL + 4 + number * (SMALL + 5), words, SMALL, FAINT)
    for place, (tile, label) in enumerate(zip(line.pictures, line.labels, strict=True)):
        x = MARGIN + _WORDS + place * (side + GAP)
        page.paste(tile, x, y)
        page.text(x + side / 2, y + side + 4, str(label), SMALL, INK, "ma")


def examples(task: Task, count: int, focus: str | None = None) -> NDArray[np.int64]:
    """Choose training rows that stand for a task: by class, each as often as its share allows.

    Args:
        focus: a factor to be seen; rows that are canonical in the others are preferred.
    """
    labels = np.sort(task.train.labels)
    if not len(labels):
        return np.zeros(0, np.int64)
    wanted = labels[np.linspace(0, len(labels) - 1, min(count, len(labels))).astype(np.int64)]
    order = task.order() if focus is None else np.argsort(_distances(task, focus), kind="stable")
    ranked = order[np.argsort(task.train.labels[order], kind="stable")]
    first = np.searchsorted(labels, wanted)
    nth = np.arange(len(wanted)) - np.searchsorted(wanted, wanted)
    return ranked[first + nth]


def _distances(task: Task, focus: str) -> Floats:
    """How far rows are from canonical in all factors but one."""
    if task.train.factors is None:
        return np.zeros(len(task.train))
    usual = {"scale": 1.0, "orientation": 0.0, "x": 0.5, "y": 0.5}
    found = task.train.factors._asdict()
    others = [np.abs(found[name] - usual[name]) for name in usual if name != focus]
    return np.asarray(np.sum(others, axis=0), np.float64)
