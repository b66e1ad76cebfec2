"""Tasks of a stream as pictures need them: which ones, and their images as tiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from everlearn.sheets.page import TILE, tiles
from everlearn.stream import ArrayStream, Environments, Split, Stream, Task

AnyStream = Stream | ArrayStream | Environments
_AT_ONCE = 32


def check_count(count: int, what: str, most: int = 1000) -> None:
    """Say what fits into a picture where more is asked for."""
    if not 1 <= count <= most:
        raise ValueError(f"a picture shows 1 .. {most} {what}, found {count}")


def walk(stream: AnyStream, start: int, count: int, most: int) -> list[Task]:
    """Tasks from `start` on; fewer than `count` where the stream ends."""
    check_count(count, "tasks", most)
    if start < 0:
        raise ValueError(f"the first task shown must be 0 or more, found {start}")
    end = start + count if stream.tasks is None else min(start + count, stream.tasks)
    return [stream[index] for index in range(start, max(end, start + 1))]


def draw_rows(
    split: Split, rows: Sequence[int] | NDArray[np.int64], side: int = TILE
) -> list[Image.Image]:
    """Some rows of a split as tiles, a few at a time: large images are never all in memory."""
    parts = [rows[low : low + _AT_ONCE] for low in range(0, len(rows), _AT_ONCE)]
    return [tile for part in parts for tile in tiles(split.batch(part).images, side)]


def count_classes(task: Task) -> dict[int, int]:
    """Training images of each class that has some."""
    labels, counts = np.unique(task.train.labels, return_counts=True)
    return dict(zip(labels.tolist(), counts.tolist(), strict=True))
