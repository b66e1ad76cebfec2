"""TaskArrays: a task as plain arrays, which every format writes and reads back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from everlearn.factors import Factors
from everlearn.render.color_tables import pixel_values
from everlearn.stream.levels import level_decoder
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
class TableLayout:
    """The shape and dtypes of a table, as in the stream; a format may store others."""

    rows: int
    shape: tuple[int, int, int]
    dtype: str
    factors: tuple[str, ...] | None
    theta: str | None


@dataclass(frozen=True)
class TaskHeader:
    """The fields of a task apart from its tables; they are keys of the files."""

    index: int
    classes: tuple[int, ...]
    seed: int
    online: bool
    tells_index: bool
    layouts: dict[str, TableLayout]


class TaskArrays(NamedTuple):
    """A complete task; its tables are train, val, test and exemplars."""

    header: TaskHeader
    tables: dict[str, Table]


@dataclass(frozen=True, eq=False)
class StoredImages:
    """Images stored as 8-bit levels, returned in the dtype of the stream."""

    levels: Levels
    dtype: str

    def loader(self, device: str) -> Callable[[Tensor], Tensor]:
        """Return a function from row numbers to images, both on the device."""
        levels = torch.from_numpy(self.levels).to(device)
        decode = level_decoder(self.dtype, device)
        return lambda rows: decode(levels[rows])


def draw_task(task: Task) -> TaskArrays:
    """Make all images of a task."""
    splits = {"train": task.train, "val": task.val, "test": task.test, "exemplars": task.canonical}
    layouts = {name: _layout(split) for name, split in splits.items()}
    header = TaskHeader(
        task.index, task.classes, task.seed, task.online, task.task_id_given, layouts=layouts
    )
    tables = {
        name: Table(_draw(split, layouts[name]), split.labels, split.factors, split.theta)
        for name, split in splits.items()
    }
    return TaskArrays(header, tables)


def rebuild_task(arrays: TaskArrays) -> Task:
    """Build a task from its arrays."""
    header = arrays.header
    splits = {
        name: Split(
            table.labels,
            StoredImages(table.images, header.layouts[name].dtype),
            table.factors,
            table.theta,
        )
        for name, table in arrays.tables.items()
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
        task_id_given=header.tells_index,
    )


def make_table(
    layout: TableLayout, images: ArrayLike, labels: ArrayLike, factors: ArrayLike, theta: ArrayLike
) -> Table:
    """Build a table from the arrays that a format stored.

    Args:
        factors: (N, 5) in the order of `Factors`; ignored, like theta, where the layout has none.
    """
    rows = layout.rows
    columns = None
    if layout.factors is not None:
        table = np.asarray(factors, np.float64).reshape(rows, len(Factors._fields))
        columns = Factors(
            *(c.astype(dtype) for c, dtype in zip(table.T, layout.factors, strict=True))
        )
    return Table(
        np.asarray(images, np.uint8).reshape(rows, *layout.shape),
        np.asarray(labels, np.int64).reshape(rows),
        columns,
        None if layout.theta is None else np.asarray(theta, layout.theta).reshape(rows, 2, 3),
    )


def _layout(split: Split) -> TableLayout:
    images = split.batch(slice(0, 0)).images
    dtype = str(images.dtype).removeprefix("torch.")
    if dtype not in ("uint8", "float32") or images.ndim != 4:
        raise TypeError(
            f"images must be uint8 or float32 (B, C, H, W), found {dtype} {tuple(images.shape)}"
        )
    channels, height, width = images.shape[1:]
    factors = split.factors and tuple(column.dtype.name for column in split.factors)
    theta = None if split.theta is None else split.theta.dtype.name
    return TableLayout(len(split), (channels, height, width), dtype, factors, theta)


def _draw(split: Split, layout: TableLayout) -> Levels:
    out = np.empty((layout.rows, *layout.shape), np.uint8)
    for start in range(0, layout.rows, _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        out[rows] = _to_levels(split.batch(rows).images.numpy())
    return out


def _to_levels(images: NDArray[np.uint8 | np.float32]) -> Levels:
    """Convert images to 8-bit levels; raise where that would lose anything."""
    if images.dtype == np.uint8:
        return images.astype(np.uint8)
    levels = np.rint(np.clip(np.nan_to_num(images), 0, 1) * 255).astype(np.uint8)
    if not np.array_equal(pixel_values("float32")[levels], images):
        raise ValueError(
            "an export stores 8-bit levels, and these float images are not exactly level / 255; "
            "export the stream before changing its images"
        )
    return levels
