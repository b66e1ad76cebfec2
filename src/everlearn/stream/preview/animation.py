"""An animation of a stream: training images task by task, above the classes seen so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from PIL import Image

from everlearn.stream import Task
from everlearn.stream.preview.contact import MAGNIFICATION
from everlearn.stream.preview.page import FAINT, GAP, INK, LABEL, NEW, SMALL, Page, tile_side
from everlearn.stream.preview.tasks import (
    ImageStream,
    check_count,
    count_classes,
    draw_rows,
    take_tasks,
)

_MAX_CLASSES = 10
_ACROSS = 5
_THUMB = 26
_EDGE = 24
_HEAD = _EDGE + LABEL + 2 * GAP


class FrameLayout(NamedTuple):
    """The layout of all frames: tile side, rows of tiles, thumbnails per row, rows of thumbnails."""

    side: int
    rows: int
    thumbs: int
    thumb_rows: int

    @property
    def middle(self) -> int:
        """The y at which the tiles end."""
        return _HEAD + self.rows * (self.side + SMALL + 2 * GAP) + GAP

    @property
    def size(self) -> tuple[int, int]:
        """The width and height of a frame."""
        below = SMALL + 2 * GAP + self.thumb_rows * (_THUMB + 4) + _EDGE
        return 2 * _EDGE + _ACROSS * (self.side + GAP) - GAP, self.middle + below


def stream_animation(
    stream: ImageStream, tasks: int = 8, views: int = 6, start: int = 0, side: int = 128
) -> list[Image.Image]:
    """Return frames in which every task shows `views` training images of each of its classes.

    Args:
        tasks: the number of tasks, from task `start` on; fewer where the stream ends.
        side: the largest side of a tile, in pixels.
    """
    check_count(views, "views", 100)
    shown = take_tasks(stream, start, tasks, 100)
    chosen = [_choose(task) for task in shown]
    layout = _layout(stream.canvas.size, chosen, side)
    frames: list[Image.Image] = []
    seen: dict[int, Image.Image] = {}
    for task, labels in zip(shown, chosen, strict=True):
        seen |= _thumbs(task, [label for label in labels if label not in seen])
        below = _strip(layout, seen, labels)
        for rows in _views(task, labels, views):
            frames.append(_frame(task, layout, labels, rows, below))
    return frames


def _choose(task: Task) -> list[int]:
    """Return the classes of a task that fit on a frame."""
    present = count_classes(task)
    return [label for label in task.classes if label in present][:_MAX_CLASSES]


def _layout(size: int, chosen: Sequence[Sequence[int]], side: int) -> FrameLayout:
    shown = tile_side(size, side)
    thumbs = (_ACROSS * (shown + GAP) - GAP) // (_THUMB + 4)
    largest = max(len(labels) for labels in chosen)
    seen = len({label for labels in chosen for label in labels})
    return FrameLayout(shown, max(1, -(-largest // _ACROSS)), thumbs, max(1, -(-seen // thumbs)))


def _views(task: Task, labels: Sequence[int], views: int) -> Iterator[list[int]]:
    """Yield the rows of each view: view v has the v-th row of every class in training order."""
    order = task.order()
    rows_of_class = [order[task.train.labels[order] == label] for label in labels]
    for view in range(views):
        yield [int(rows[view % len(rows)]) for rows in rows_of_class]


def _frame(
    task: Task, layout: FrameLayout, labels: Sequence[int], rows: list[int], below: Image.Image
) -> Image.Image:
    """Draw one frame: a line of text, one image per class, the classes seen so far."""
    page = Page(*layout.size)
    page.text(_EDGE, _EDGE - 6, f"task {task.index + 1}", LABEL)
    page.text(layout.size[0] - _EDGE, _EDGE - 2, _count(task), SMALL, FAINT, "ra")
    for place, tile in enumerate(draw_rows(task.train, rows, layout.side)):
        x = _EDGE + place % _ACROSS * (layout.side + GAP)
        y = _HEAD + place // _ACROSS * (layout.side + SMALL + 2 * GAP)
        page.paste(tile, x, y)
        page.text(x + layout.side / 2, y + layout.side + 4, str(labels[place]), SMALL, INK, "ma")
    page.paste(below, 0, layout.middle)
    return page.image


def _count(task: Task) -> str:
    classes = len(task.classes)
    return f"{classes} class{'es' if classes != 1 else ''}, {len(task.train)} training images"


def _thumbs(task: Task, labels: Sequence[int]) -> dict[int, Image.Image]:
    """Draw small canonical images of some classes; sprites are magnified."""
    rows = [task.classes.index(label) for label in labels]
    small = []
    for tile in draw_rows(task.canonical, rows):
        inset = 0.0 if task.canonical.theta is None else tile.width * (1 - 1 / MAGNIFICATION) / 2
        box = (inset, inset, tile.width - inset, tile.height - inset)
        small.append(tile.resize((_THUMB, _THUMB), Image.Resampling.LANCZOS, box))
    return dict(zip(labels, small, strict=True))


def _strip(layout: FrameLayout, seen: Mapping[int, Image.Image], now: Sequence[int]) -> Image.Image:
    """Draw the classes seen so far; those of this task are underlined."""
    page = Page(layout.size[0], layout.size[1] - layout.middle)
    page.text(_EDGE, 0, f"classes seen so far: {len(seen)}", SMALL, FAINT)
    for place, (label, thumb) in enumerate(seen.items()):
        x = _EDGE + place % layout.thumbs * (_THUMB + 4)
        y = SMALL + 2 * GAP + place // layout.thumbs * (_THUMB + 4)
        page.paste(thumb, x, y)
        if label in now:
            page.box(x, y + _THUMB, _THUMB, 3, NEW)
    return page.image
