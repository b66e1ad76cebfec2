"""A folder of PNG images a task, with one CSV table of what they show."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from io import StringIO

import numpy as np
from numpy.typing import NDArray

from everlearn.factors import NAMES
from everlearn.stream.export.content import Content, Header, Layout, Table, tabulate
from everlearn.stream.export.pixels import decode, encode
from everlearn.stream.export.unit import File, stem

_TABLE = "rows.csv"
_FIRST = ("split", "row", "file", "label")
_THETA = tuple(f"theta_{i}{j}" for i in range(2) for j in range(3))


def pack(content: Content) -> Iterator[File]:
    """Write every image, then the table."""
    folder = stem(content.header.index)
    for name, table in content.tables.items():
        for row, image in enumerate(table.images):
            yield File(f"{folder}/{_path(name, row)}", 1, encode(image))
    rows = [row for name, table in content.tables.items() for row in _rows(name, table)]
    yield File(f"{folder}/{_TABLE}", len(rows), _write(rows))


def unpack(header: Header, files: Mapping[str, bytes]) -> dict[str, Table]:
    """Read the tables back."""
    folder = stem(header.index)
    rows = list(csv.DictReader(StringIO(files[f"{folder}/{_TABLE}"].decode())))

    def table(name: str, layout: Layout) -> Table:
        mine = [row for row in rows if row["split"] == name]
        images = [decode(files[f"{folder}/{row['file']}"]) for row in mine]
        labels = [int(row["label"]) for row in mine]
        return tabulate(layout, images, labels, _numbers(mine, NAMES), _numbers(mine, _THETA))

    return {name: table(name, layout) for name, layout in header.layouts.items()}


def _path(split: str, row: int) -> str:
    return f"{split}/{row:06d}.png"


def _rows(name: str, table: Table) -> list[dict[str, object]]:
    """One dictionary a row, without the columns that the data do not have."""
    count = len(table.labels)
    columns: dict[str, list[object]] = {
        "split": [name] * count,
        "row": list(range(count)),
        "file": [_path(name, row) for row in range(count)],
        "label": table.labels.tolist(),
    }
    if table.factors is not None:
        columns |= {key: c.tolist() for key, c in zip(NAMES, table.factors, strict=True)}
    if table.theta is not None:
        flat = table.theta.reshape(count, 6).T
        columns |= {key: c.tolist() for key, c in zip(_THETA, flat, strict=True)}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _write(rows: list[dict[str, object]]) -> bytes:
    """Write the table; Python writes a float so that it reads back to the same bits."""
    known = {key for row in rows for key in row}
    out = StringIO()
    header = [key for key in (*_FIRST, *NAMES, *_THETA) if key in known]
    writer = csv.DictWriter(out, header, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def _numbers(rows: list[dict[str, str]], names: tuple[str, ...]) -> NDArray[np.float64]:
    if not rows or not rows[0].get(names[0]):
        return np.zeros((0, len(names)))
    return np.array([[float(row[name]) for name in names] for row in rows])
