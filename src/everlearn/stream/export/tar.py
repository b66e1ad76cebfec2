"""WebDataset shards: tar files in which the files of one sample share a name and are adjacent."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any

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

SHARD_ROWS = 4096


def pack(arrays: TaskArrays, shard_rows: int = SHARD_ROWS) -> Iterator[TaskFile]:
    """Write the rows of each split in order, into shards of at most `shard_rows`."""
    for name, table in arrays.tables.items():
        for shard, start in enumerate(range(0, len(table.labels), shard_rows)):
            rows = range(start, min(start + shard_rows, len(table.labels)))
            path = f"{task_stem(arrays.header.index)}-{name}-{shard:06d}.tar"
            yield TaskFile(path, len(rows), _shard(name, table, rows))


def unpack(header: TaskHeader, files: Mapping[str, bytes]) -> dict[str, Table]:
    """Read the tables back."""

    def table(name: str, layout: TableLayout) -> Table:
        prefix = f"{task_stem(header.index)}-{name}-"
        shards = [data for path, data in files.items() if path.startswith(prefix)]
        samples = [sample for data in shards for sample in _samples(data)]
        metadata_rows = [metadata for _, metadata in samples]
        return make_table(
            layout,
            [decode(image) for image, _ in samples],
            [metadata["label"] for metadata in metadata_rows],
            [
                list(metadata["factors"].values())
                for metadata in metadata_rows
                if "factors" in metadata
            ],
            [metadata["theta"] for metadata in metadata_rows if "theta" in metadata],
        )

    return {name: table(name, layout) for name, layout in header.layouts.items()}


def _shard(name: str, table: Table, rows: range) -> bytes:
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as shard:
        for row in rows:
            key = f"{row:06d}"
            metadata = {"key": key, "split": name, **_metadata(table, row)}
            _add(shard, f"{key}.png", encode(table.images[row]))
            _add(shard, f"{key}.json", json.dumps(metadata).encode())
    return buffer.getvalue()


def _metadata(table: Table, row: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {"label": table.labels[row].item()}
    if table.factors is not None:
        metadata["factors"] = {
            n: c[row].item() for n, c in zip(FACTOR_NAMES, table.factors, strict=True)
        }
    if table.theta is not None:
        metadata["theta"] = table.theta[row].tolist()
    return metadata


def _add(shard: tarfile.TarFile, name: str, data: bytes) -> None:
    """Add a file; a bare TarInfo has no time and no owner, so that the bytes are always the same."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    shard.addfile(info, BytesIO(data))


def _samples(data: bytes) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yield the image and the metadata of every sample."""
    with tarfile.open(fileobj=BytesIO(data), mode="r:") as shard:
        contents = [_bytes(shard, member) for member in shard]
    for image, metadata in zip(contents[::2], contents[1::2], strict=True):
        yield image, json.loads(metadata)


def _bytes(shard: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = shard.extractfile(member)
    return b"" if file is None else file.read()
