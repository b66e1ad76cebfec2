"""A sheet that shows a scenario: one row per task, with example images and class counts."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from everlearn.core.random import Floats
from everlearn.factors import Mixture
from everlearn.stream import Environments, Stream, Task
from everlearn.stream.preview import bars, factor_plane
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
)
from everlearn.stream.preview.tasks import (
    ImageStream,
    check_count,
    count_classes,
    draw_rows,
    take_tasks,
)

DESCRIPTIONS = {
    "class": "Every task brings new classes",
    "task": "Every task brings new classes, and the task id is given at test time",
    "domain": "The classes stay; every task shows another band of {factor}",
    "nic": "Classes arrive one by one: new ones, and old ones in another band of {factor}",
    "blurry": "Some classes stay in one task; images of the others leak into all tasks",
    "recurring": "Old classes return beside new ones",
}
_TEXT_WIDTH = 190
_TOP = MARGIN + TITLE + 8 * GAP


class TaskRow(NamedTuple):
    """One task of the sheet: lines of text, example images and their classes."""

    lines: list[str]
    pictures: list[Image.Image]
    labels: list[int]


def scenario_sheet(
    stream: ImageStream, tasks: int = 6, images: int = 8, start: int = 0, side: int = 96
) -> Image.Image:
    """Draw some tasks of a stream: example images, and the number of training images of each class.

    Args:
        tasks: the number of tasks, from task `start` on; fewer where the stream ends.
        images: the number of examples per task.
        side: the largest side of a tile, in pixels.
    """
    check_count(images, "images per task", 50)
    shown = take_tasks(stream, start, tasks, 50)
    side = tile_side(stream.canvas.size, side)
    floors = [_TOP + side + row * (side + SMALL + 4 * GAP) for row in range(len(shown))]
    right = MARGIN + _TEXT_WIDTH + images * (side + GAP) + 3 * GAP
    title = describe_stream(stream)
    width, height = _measure(stream, right + bars.WIDTH, floors[-1])
    page = Page(max(width, text_width(title, TITLE) + 2 * MARGIN), height)
    page.text(MARGIN, MARGIN - GAP, title, TITLE)
    for task, floor in zip(shown, floors, strict=True):
        _draw_task(page, _task_row(stream, task, images, side), floor - side, side)
    bars.draw_bars(page, [count_classes(task) for task in shown], right, floors, side)
    if _has_spaces(stream):
        factor_plane.draw_plane(page, shown[0], page.image.width - MARGIN - factor_plane.SIDE, _TOP)
    return page.image


def describe_stream(stream: ImageStream) -> str:
    """Describe the scenario of a stream in one sentence."""
    extras = {"every image is seen only once": stream.online}
    if isinstance(stream, Environments):
        return _join("Every task is an environment", extras)
    name = stream.scenario.name
    description = DESCRIPTIONS.get(name, f"Scenario {name}")
    extras[f"class sizes differ by a factor of {stream.imbalance:g}"] = stream.imbalance > 1
    if isinstance(stream, Stream):
        extras |= {
            "some combinations of factors are held out for testing": stream.held_out is not None,
            "test images have factors of their own": stream.test_factors is not None,
            "factors depend on one another": isinstance(stream.factors, Mixture),
        }
    return _join(description.format(factor=getattr(stream.scenario, "factor", "")), extras)


def _join(description: str, extras: dict[str, bool]) -> str:
    """Append the extras that hold."""
    return "; ".join([description, *(extra for extra, holds in extras.items() if holds)])


def _has_spaces(stream: ImageStream) -> bool:
    if not isinstance(stream, Stream):
        return False
    return not (stream.factors is stream.test_factors is stream.held_out is None)


def _measure(stream: ImageStream, right: int, floor: int) -> tuple[int, int]:
    """Return the width and height of the page."""
    width = right + MARGIN
    height = floor + SMALL + 2 * GAP + MARGIN
    if _has_spaces(stream):
        width += factor_plane.SIDE + 14 * GAP
        height = max(height, _TOP + factor_plane.SIDE + factor_plane.BELOW + MARGIN)
    return width, height


def _task_row(stream: ImageStream, task: Task, images: int, side: int) -> TaskRow:
    focus = getattr(getattr(stream, "scenario", None), "factor", None)
    rows = examples(task, images, focus)
    classes = len(count_classes(task))
    lines = [f"task {task.index + 1}", f"{classes} class{'es' if classes != 1 else ''}"]
    if isinstance(stream, Environments):
        environment = stream.environments[task.index]
        lines[1:] = [" ".join(environment.modifiers) or "centred", environment.source]
    lines.append(f"{len(task.train)} images")
    if focus is not None and len(rows) and task.train.factors is not None:
        lines.append(_band(focus, getattr(task.train.factors, focus)))
    return TaskRow(lines, draw_rows(task.train, rows, side), task.train.labels[rows].tolist())


def _band(name: str, values: NDArray[Any]) -> str:
    low, high = float(values.min()), float(values.max())
    if name == "orientation":
        return f"turned {math.degrees(low):.0f}° to {math.degrees(high):.0f}°"
    return f"{name} {low:.2f} to {high:.2f}"


def _draw_task(page: Page, row: TaskRow, y: int, side: int) -> None:
    page.text(MARGIN, y - 5, row.lines[0], LABEL)
    for number, line in enumerate(row.lines[1:]):
        page.text(MARGIN, y + LABEL + 4 + number * (SMALL + 5), line, SMALL, FAINT)
    for column, (tile, label) in enumerate(zip(row.pictures, row.labels, strict=True)):
        x = MARGIN + _TEXT_WIDTH + column * (side + GAP)
        page.paste(tile, x, y)
        page.text(x + side / 2, y + side + 4, str(label), SMALL, INK, "ma")


def examples(task: Task, count: int, focus: str | None = None) -> NDArray[np.int64]:
    """Choose training rows that represent a task: each class in proportion to its images.

    Args:
        focus: the factor to show; rows that are canonical in the others are preferred.
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
    """Return how far rows are from canonical in all factors but one."""
    if task.train.factors is None:
        return np.zeros(len(task.train))
    canonical = {"scale": 1.0, "orientation": 0.0, "x": 0.5, "y": 0.5}
    found = task.train.factors._asdict()
    others = [np.abs(found[name] - canonical[name]) for name in canonical if name != focus]
    return np.asarray(np.sum(others, axis=0), np.float64)
