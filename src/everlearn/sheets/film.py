"""A walk through a stream: training images of task after task, over the classes met so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from PIL import Image

from everlearn.sheets.contact import CLOSE_UP
from everlearn.sheets.page import FAINT, GAP, INK, LABEL, NEW, SMALL, Page, tile_side
from everlearn.sheets.walk import AnyStream, check_count, count_classes, draw_rows, walk
from everlearn.stream import Task

_MOST_CLASSES = 10
_ACROSS = 5
_THUMB = 26
_EDGE = 24
_HEAD = _EDGE + LABEL + 2 * GAP


class Scene(NamedTuple):
    """Measures of all frames: the side of a tile, rows of tiles, thumbnails a row, rows of these."""

    side: int
    rows: int
    thumbs: int
    thumb_rows: int

    @property
    def middle(self) -> int:
        """Where the tiles end."""
        return _HEAD + self.rows * (self.side + SMALL + 2 * GAP) + GAP

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of a frame."""
        below = SMALL + 2 * GAP + self.thumb_rows * (_THUMB + 4) + _EDGE
        return 2 * _EDGE + _ACROSS * (self.side + GAP) - GAP, self.middle + below


def stream_film(
    stream: AnyStream, tasks: int = 8, views: int = 6, start: int = 0, side: int = 128
) -> list[Image.Image]:
    """Frames of a film: every task shows each of its classes in `views` training images.

    Args:
        tasks: how many, from task `start` on; fewer where the stream ends.
        side: tiles are this large at most.
    """
    check_count(views, "views", 100)
    shown = walk(stream, start, tasks, 100)
    chosen = [_choose(task) for task in shown]
    scene = _scene(stream.canvas.size, chosen, side)
    frames: list[Image.Image] = []
    met: dict[int, Image.Image] = {}
    for task, labels in zip(shown, chosen, strict=True):
        met |= _thumbs(task, [label for label in labels if label not in met])
        below = _strip(scene, met, labels)
        for rows in _views(task, labels, views):
            frames.append(_frame(task, scene, labels, rows, below))
    return frames


def _choose(task: Task) -> list[int]:
    """The classes of a task that have room on a frame."""
    present = count_classes(task)
    return [label for label in task.classes if label in present][:_MOST_CLASSES]


def _scene(size: int, chosen: Sequence[Sequence[int]], side: int) -> Scene:
    shown = tile_side(size, side)
    thumbs = (_ACROSS * (shown + GAP) - GAP) // (_THUMB + 4)
    most = max(len(labels) for labels in chosen)
    met = len({label for labels in chosen for label in labels})
    return Scene(shown, max(1, -(-most // _ACROSS)), thumbs, max(1, -(-met // thumbs)))


def _views(task: Task, labels: Sequence[int], views: int) -> Iterator[list[int]]:
    """Rows to show: view v has the v-th row of every class in the order of training."""
    order = task.order()
    mine = [order[task.train.labels[order] == label] for label in labels]
    for view in range(views):
        yield [int(rows[view % len(rows)]) for rows in mine]


def _frame(
    task: Task, scene: Scene, labels: Sequence[int], rows: list[int], below: Image.Image
) -> Image.Image:
    """One frame: a line of text, one image a class, the classes met so far."""
    page = Page(*scene.size)
    page.text(_EDGE, _EDGE - 6, f"task {task.index}", LABEL)
    page.text(scene.size[0] - _EDGE, _EDGE - 2, _count(task), SMALL, FAINT, "ra")
    for place, tile in enumerate(draw_rows(task.train, rows, scene.side)):
        x = _EDGE + place % _ACROSS * (scene.side + GAP)
        y = _HEAD + place // _ACROSS * (scene.side + SMALL + 2 * GAP)
        page.paste(tile, x, y)
        page.text(x + scene.side / 2, y + scene.side + 4, str(labels[place]), SMALL, INK, "ma")
    page.paste(below, 0, scene.middle)
    return page.image


def _count(task: Task) -> str:
    classes = len(task.classes)
    return f"{classes} class{'es' if classes != 1 else ''}, {len(task.train)} training images"


def _thumbs(task: Task, labels: Sequence[int]) -> dict[int, Image.Image]:
    """Small canonical images of some classes; those of sprites close up."""
    rows = [task.classes.index(label) for label in labels]
    small = []
    for tile in draw_rows(task.canonical, rows):
        inset = 0.0 if task.canonical.theta is None else tile.width * (1 - 1 / CLOSE_UP) / 2
        box = (inset, inset, tile.width - inset, tile.height - inset)
        small.append(tile.resize((_THUMB, _THUMB), Image.Resampling.LANCZOS, box))
    return dict(zip(labels, small, strict=True))


def _strip(scene: Scene, met: Mapping[int, Image.Image], now: Sequence[int]) -> Image.Image:
    """The classes met so far; those of this task are underlined."""
    page = Page(scene.size[0], scene.size[1] - scene.middle)
    page.text(_EDGE, 0, f"classes met so far: {len(met)}", SMALL, FAINT)
    for place, (label, thumb) in enumerate(met.items()):
        x = _EDGE + place % scene.thumbs * (_THUMB + 4)
        y = SMALL + 2 * GAP + place // scene.thumbs * (_THUMB + 4)
        page.paste(thumb, x, y)
        if label in now:
            page.box(x, y + _THUMB, _THUMB, 3, NEW)
    return page.image
