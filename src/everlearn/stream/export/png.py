"""One folder of PNG images per task, with a CSV table of their labels and factors."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from io import StringIO

import numpy as np
from numpy.typing import NDArray

from everlearn.factors import FACTOR_NAMES
from everlearn.stream.export.png_codec import decode, encode
from everlearn.stream.export.task_arrays import (
    Table,
    TableLayout,
    TaskArrays,
    TaskHeader,
    make_table,
)
from everlearn.stream.export.task_files import TaskFile, task_stem

_TABLE = "rows.csv"
_COLUMNS = ("split", "row", "file", "label")
_THETA = tuple(f"theta_{i}{j}" for i in range(2) for j in range(3))


def pack(arrays: TaskArrays) -> Iterator[TaskFile]:
    """Write every image, then the table."""
    folder = task_stem(arrays.header.index)
    for name, table in arrays.tables.items():
        for row, image in enumerate(table.images):
            yield TaskFile(f"{folder}/{_path(name, row)}", 1, encode(image))
    rows = [row for name, table in arrays.tables.items() for row in _rows(name, table)]
    yield TaskFile(f"{folder}/{_TABLE}", len(rows), _write(rows))


def unpack(header: TaskHeader, files: Mapping[str, bytes]) -> dict[str, Table]:
    """Read the tables back."""
    folder = task_stem(header.index)
    rows = list(csv.DictReader(StringIO(files[f"{folder}/{_TABLE}"].decode())))

    def table(name: str, layout: TableLayout) -> Table:
        mine = [row for row in rows if row["split"] == name]
        images = [decode(files[f"{folder}/{row['file']}"]) for row in mine]
        labels = [int(row["label"]) for row in mine]
        return make_table(
            layout, images, labels, _numbers(mine, FACTOR_NAMES), _numbers(mine, _THETA)
        )

    return {name: table(name, layout) for name, layout in header.layouts.items()}


def _path(split: str, row: int) -> str:
    return f"{split}/{row:06d}.png"


def _rows(name: str, table: Table) -> list[dict[str, object]]:
    """Return one dictionary per row, without the columns that the data lack."""
    count = len(table.labels)
    columns: dict[str, list[object]] = {
        "split": [name] * count,
        "row": list(range(count)),
        "file": [_path(name, row) for row in range(count)],
        "label": table.labels.tolist(),
    }
    if table.factors is not None:
        columns |= {key: c.tolist() for key, c in zip(FACTOR_NAMES, table.factors, strict=True)}
    if table.theta is not None:
        flat = table.theta.reshape(count, 6).T
        columns |= {key: c.tolist() for key, c in zip(_THETA, flat, strict=True)}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _write(rows: list[dict[str, object]]) -> bytes:
    """Encode the table as CSV; floats are written so that they read back to the same bits."""
    known = {key for row in rows for key in row}
    out = StringIO()
    header = [key for key in (*_COLUMNS, *FACTOR_NAMES, *_THETA) if key in known]
    writer = csv.DictWriter(out, header, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def _numbers(rows: list[dict[str, str]], names: tuple[str, ...]) -> NDArray[np.float64]:
    if not rows or not rows[0].get(names[0]):
        return np.zeros((0, len(names)))
    return np.array([[float(row[name]) for name in names] for row in rows])
