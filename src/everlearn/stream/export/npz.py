"""One compressed npz file a task, that numpy alone can read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everlearn.stream.export.content import Content, Header, Table, tabulate
from everlearn.stream.export.unit import File, stem


def pack(content: Content) -> Iterator[File]:
    """Write images_train, labels_train, factors_train (N, 5), theta_train, and so on."""
    header = content.header
    arrays: dict[str, Any] = {
        "index": np.int64(header.index),
        "classes": np.array(header.classes, np.int64),
        "seed": np.uint64(header.seed),
        "online": np.bool_(header.online),
        "tells_index": np.bool_(header.tells_index),
    }
    for name, table in content.tables.items():
        arrays |= {f"{kind}_{name}": array for kind, array in _arrays(table).items()}
    buffer = BytesIO()
    np.savez_compressed(buffer, **arrays)
    rows = sum(len(table.labels) for table in content.tables.values())
    yield File(f"{stem(header.index)}.npz", rows, buffer.getvalue())


def unpack(header: Header, files: Mapping[str, bytes]) -> dict[str, Table]:
    """Read the tables back."""
    (data,) = files.values()
    with np.load(BytesIO(data), allow_pickle=False) as arrays:
        return {
            name: tabulate(
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
