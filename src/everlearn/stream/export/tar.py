"""WebDataset shards: tar files in which the files of one sample share a name and lie together."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any

from everlearn.factors import NAMES
from everlearn.stream.export.content import Content, Header, Layout, Table, tabulate
from everlearn.stream.export.pixels import decode, encode
from everlearn.stream.export.unit import File, stem

SHARD_ROWS = 4096


def pack(content: Content, shard_rows: int = SHARD_ROWS) -> Iterator[File]:
    """Write a split's rows in order, into shards of at most so many."""
    for name, table in content.tables.items():
        for shard, start in enumerate(range(0, len(table.labels), shard_rows)):
            rows = range(start, min(start + shard_rows, len(table.labels)))
            path = f"{stem(content.header.index)}-{name}-{shard:06d}.tar"
            yield File(path, len(rows), _shard(name, table, rows))


def unpack(header: Header, files: Mapping[str, bytes]) -> dict[str, Table]:
    """Read the tables back."""

    def table(name: str, layout: Layout) -> Table:
        prefix = f"{stem(header.index)}-{name}-"
        shards = [data for path, data in files.items() if path.startswith(prefix)]
        samples = [sample for data in shards for sample in _samples(data)]
        notes = [note for _, note in samples]
        return tabulate(
            layout,
            [decode(image) for image, _ in samples],
            [note["label"] for note in notes],
            [list(note["factors"].values()) for note in notes if "factors" in note],
            [note["theta"] for note in notes if "theta" in note],
        )

    return {name: table(name, layout) for name, layout in header.layouts.items()}


def _shard(name: str, table: Table, rows: range) -> bytes:
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as shard:
        for row in rows:
            key = f"{row:06d}"
            note = {"key": key, "split": name, **_note(table, row)}
            _add(shard, f"{key}.png", encode(table.images[row]))
            _add(shard, f"{key}.json", json.dumps(note).encode())
    return buffer.getvalue()


def _note(table: Table, row: int) -> dict[str, Any]:
    note: dict[str, Any] = {"label": table.labels[row].item()}
    if table.factors is not None:
        note["factors"] = {n: c[row].item() for n, c in zip(NAMES, table.factors, strict=True)}
    if table.theta is not None:
        note["theta"] = table.theta[row].tolist()
    return note


def _add(shard: tarfile.TarFile, name: str, data: bytes) -> None:
    """Add a file; a bare TarInfo has no time and no owner, so that the bytes are the same each time."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    shard.addfile(info, BytesIO(data))


def _samples(data: bytes) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Give the image and the note of every sample."""
    with tarfile.open(fileobj=BytesIO(data), mode="r:") as shard:
        contents = [_bytes(shard, member) for member in shard]
    for image, note in zip(contents[::2], contents[1::2], strict=True):
        yield image, json.loads(note)


def _bytes(shard: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = shard.extractfile(member)
    return b"" if file is None else file.read()
