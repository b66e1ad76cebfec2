"""A task as plain arrays: what every format writes, and what it reads back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from everlearn.factors import Factors
from everlearn.render.levels import lookup_table
from everlearn.stream.shades import shader
from everlearn.stream.task import Ints, Split, Task

Levels = NDArray[np.uint8]
_ROWS_AT_ONCE = 1024


class Table(NamedTuple):
    """The rows of a split; images are 8-bit levels (N, C, H, W)."""

    images: Levels
    labels: Ints
    factors: Factors | None
    theta: NDArray[np.float64] | None


@dataclass(frozen=True)
class Layout:
    """What a table looks like: the types are those of the stream, whatever a format keeps."""

    rows: int
    shape: tuple[int, int, int]
    dtype: str
    factors: tuple[str, ...] | None
    theta: str | None


@dataclass(frozen=True)
class Header:
    """What a task says of itself besides its tables."""

    index: int
    classes: tuple[int, ...]
    seed: int
    online: bool
    tells_index: bool
    layouts: dict[str, Layout]


class Content(NamedTuple):
    """A whole task; its tables are train, val, test and exemplars."""

    header: Header
    tables: dict[str, Table]


@dataclass(frozen=True, eq=False)
class Stored:
    """Levels as the pictures of a split, of the stream's own type."""

    levels: Levels
    dtype: str

    def drawer(self, device: str) -> Callable[[Tensor], Tensor]:
        """Return a function from rows on the device to images there."""
        levels, shade = torch.from_numpy(self.levels).to(device), shader(self.dtype, device)
        return lambda rows: shade(levels[rows])


def take(task: Task) -> Content:
    """Draw all of a task."""
    splits = {"train": task.train, "val": task.val, "test": task.test, "exemplars": task.canonical}
    layouts = {name: _layout(split) for name, split in splits.items()}
    header = Header(
        task.index, task.classes, task.seed, task.online, task.tells_index, layouts=layouts
    )
    tables = {
        name: Table(_draw(split, layouts[name]), split.labels, split.factors, split.theta)
        for name, split in splits.items()
    }
    return Content(header, tables)


def restore(content: Content) -> Task:
    """Make the task again."""
    header = content.header
    splits = {
        name: Split(
            table.labels,
            Stored(table.images, header.layouts[name].dtype),
            table.factors,
            table.theta,
        )
        for name, table in content.tables.items()
    }
    return Task(
        index=header.index,
        classes=header.classes,
        train=splits["train"],
        val=splits["val"],
        test=splits["test"],
        canonical=splits["exemplars"],
        seed=header.seed,
        online=header.online,
        tells_index=header.tells_index,
    )


def tabulate(
    layout: Layout, images: ArrayLike, labels: ArrayLike, factors: ArrayLike, theta: ArrayLike
) -> Table:
    """Make a table of what a format kept.

    Args:
        factors: (N, 5) in the order of `Factors`; ignored, like theta, where the layout has none.
    """
    rows = layout.rows
    columns = None
    if layout.factors is not None:
        table = np.asarray(factors, np.float64).reshape(rows, len(Factors._fields))
        columns = Factors(
            *(c.astype(kind) for c, kind in zip(table.T, layout.factors, strict=True))
        )
    return Table(
        np.asarray(images, np.uint8).reshape(rows, *layout.shape),
        np.asarray(labels, np.int64).reshape(rows),
        columns,
        None if layout.theta is None else np.asarray(theta, layout.theta).reshape(rows, 2, 3),
    )


def _layout(split: Split) -> Layout:
    images = split.batch(slice(0, 0)).images
    dtype = str(images.dtype).removeprefix("torch.")
    if dtype not in ("uint8", "float32") or images.ndim != 4:
        raise TypeError(
            f"images must be uint8 or float32 (B, C, H, W), found {dtype} {tuple(images.shape)}"
        )
    channels, height, width = images.shape[1:]
    factors = split.factors and tuple(column.dtype.name for column in split.factors)
    theta = None if split.theta is None else split.theta.dtype.name
    return Layout(len(split), (channels, height, width), dtype, factors, theta)


def _draw(split: Split, layout: Layout) -> Levels:
    out = np.empty((layout.rows, *layout.shape), np.uint8)
    for start in range(0, layout.rows, _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        out[rows] = _to_levels(split.batch(rows).images.numpy())
    return out


def _to_levels(images: NDArray[np.uint8 | np.float32]) -> Levels:
    """Turn images into levels, if that loses nothing."""
    if images.dtype == np.uint8:
        return images.astype(np.uint8)
    levels = np.rint(np.clip(np.nan_to_num(images), 0, 1) * 255).astype(np.uint8)
    if not np.array_equal(lookup_table("float32")[levels], images):
        raise ValueError(
            "an export keeps 8-bit levels, and these float images are not levels / 255 exactly; "
            "export the stream before changing its images"
        )
    return levels
