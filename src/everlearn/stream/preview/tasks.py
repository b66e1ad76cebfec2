"""Select tasks of a stream for a picture, and draw their images as tiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from everlearn.stream import ArrayStream, Environments, Split, Stream, Task
from everlearn.stream.preview.page import TILE, tiles

ImageStream = Stream | ArrayStream | Environments
_AT_ONCE = 32


def check_count(count: int, what: str, limit: int = 1000) -> None:
    """Raise where a picture would show too many or none of something."""
    if not 1 <= count <= limit:
        raise ValueError(f"a picture shows 1 .. {limit} {what}, found {count}")


def take_tasks(stream: ImageStream, start: int, count: int, limit: int) -> list[Task]:
    """Return `count` tasks from `start` on; fewer where the stream ends."""
    check_count(count, "tasks", limit)
    if start < 0:
        raise ValueError(f"the first task shown must be 0 or more, found {start}")
    end = start + count if stream.tasks is None else min(start + count, stream.tasks)
    return [stream[index] for index in range(start, max(end, start + 1))]


def draw_rows(
    split: Split, rows: Sequence[int] | NDArray[np.int64], side: int = TILE
) -> list[Image.Image]:
    """Draw rows of a split as tiles, in small batches, so that large images are never all in memory."""
    batches = [rows[low : low + _AT_ONCE] for low in range(0, len(rows), _AT_ONCE)]
    return [tile for batch in batches for tile in tiles(split.batch(batch).images, side)]


def count_classes(task: Task) -> dict[int, int]:
    """Count the training images of each class that has any."""
    labels, counts = np.unique(task.train.labels, return_counts=True)
    return dict(zip(labels.tolist(), counts.tolist(), strict=True))
