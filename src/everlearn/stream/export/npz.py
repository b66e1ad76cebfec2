"""One compressed npz file per task, readable with numpy alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everlearn.stream.export.task_arrays import Table, TaskArrays, TaskHeader, make_table
from everlearn.stream.export.task_files import TaskFile, task_stem


def pack(task: TaskArrays) -> Iterator[TaskFile]:
    """Write images_train, labels_train, factors_train (N, 5), theta_train, and so on."""
    header = task.header
    arrays: dict[str, Any] = {
        "index": np.int64(header.index),
        "classes": np.array(header.classes, np.int64),
        "seed": np.uint64(header.seed),
        "online": np.bool_(header.online),
        "tells_index": np.bool_(header.tells_index),
    }
    for name, table in task.tables.items():
        arrays |= {f"{column}_{name}": array for column, array in _arrays(table).items()}
    buffer = BytesIO()
    np.savez_compressed(buffer, **arrays)
    rows = sum(len(table.labels) for table in task.tables.values())
    yield TaskFile(f"{task_stem(header.index)}.npz", rows, buffer.getvalue())


def unpack(header: TaskHeader, files: Mapping[str, bytes]) -> dict[str, Table]:
    """Read the tables back."""
    (data,) = files.values()
    with np.load(BytesIO(data), allow_pickle=False) as arrays:
        return {
            name: make_table(
                layout,
                arrays[f"images_{name}"],
                arrays[f"labels_{name}"],
                arrays.get(f"factors_{name}"),
                arrays.get(f"theta_{name}"),
            )
            for name, layout in header.layouts.items()
        }


def _arrays(table: Table) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {"images": table.images, "labels": table.labels}
    if table.factors is not None:
        arrays["factors"] = np.stack([c.astype(np.float64) for c in table.factors], axis=1)
    if table.theta is not None:
        arrays["theta"] = table.theta
    return arrays
