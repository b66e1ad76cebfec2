"""A task on disk: its files, and a JSON file beside them with their checksums."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from everlearn.stream.export.task_arrays import TableLayout, TaskHeader

_SIDECAR = re.compile(r"task_(\d{6,})\.json")


class TaskFile(NamedTuple):
    """A file of a task and the number of rows it holds."""

    name: str
    rows: int
    data: bytes


def task_stem(index: int) -> str:
    """Return the common prefix of the names of a task's files."""
    return f"task_{index:06d}"


def with_checksums(header: TaskHeader, files: Iterable[TaskFile]) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a task, and last the JSON file with their checksums."""
    checksums = []
    for file in files:
        checksums.append({"name": file.name, "rows": file.rows, "sha256": sha256(file.data)})
        yield file.name, file.data
    body = {"task": asdict(header), "files": checksums}
    yield f"{task_stem(header.index)}.json", to_checksummed(body)


def list_tasks(folder: Path) -> tuple[int, ...]:
    """List the tasks that a folder holds, in order."""
    names = (_SIDECAR.fullmatch(path.name) for path in folder.iterdir())
    return tuple(sorted(int(name[1]) for name in names if name))


def is_complete(folder: Path, index: int) -> bool:
    """Tell whether all files of a task are there and undamaged."""
    try:
        read_task_files(folder, index)
    except ValueError:
        return False
    return True


def read_task_files(folder: Path, index: int) -> tuple[TaskHeader, dict[str, bytes]]:
    """Read a task's files, or say which one is missing or damaged."""
    advice = _advice(index)
    sidecar = folder / f"{task_stem(index)}.json"
    body = read_checksummed(sidecar, advice)
    files = {item["name"]: _read(folder / item["name"], advice) for item in body["files"]}
    for item in body["files"]:
        if sha256(files[item["name"]]) != item["sha256"]:
            raise ValueError(
                f"{folder / item['name']} is damaged: its checksum is not the one in "
                f"{sidecar.name}; {advice}"
            )
    return _header(body["task"]), files


def read_header(folder: Path, index: int) -> TaskHeader:
    """Read what a task says about itself, without its tables."""
    return _header(read_checksummed(folder / f"{task_stem(index)}.json", _advice(index))["task"])


def _advice(index: int) -> str:
    return f"run the same export again: it rewrites task {index}"


def sha256(data: bytes) -> str:
    """Return the SHA-256 checksum in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def to_checksummed(body: dict[str, Any]) -> bytes:
    """Encode JSON that contains its own checksum."""
    return json.dumps({"sha256": sha256(json.dumps(body).encode()), **body}, indent=1).encode()


def read_checksummed(path: Path, advice: str) -> dict[str, Any]:
    """Read JSON that contains its own checksum, or say that it is damaged and what to do."""
    data = _read(path, advice)
    try:
        body = json.loads(data)
        intact = (
            isinstance(body, dict) and body.pop("sha256", None) and to_checksummed(body) == data
        )
    except (ValueError, RecursionError):
        intact = False
    if not intact:
        raise ValueError(f"{path} is damaged: its checksum does not match; {advice}")
    return dict(body)


def _read(path: Path, advice: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ValueError(f"{path} is missing; {advice}") from None


def _header(task: dict[str, Any]) -> TaskHeader:
    layouts = {name: _layout(layout) for name, layout in task["layouts"].items()}
    return TaskHeader(**{**task, "classes": tuple(task["classes"]), "layouts": layouts})


def _layout(layout: dict[str, Any]) -> TableLayout:
    tuples: dict[str, Any] = {k: tuple(v) for k, v in layout.items() if isinstance(v, list)}
    return TableLayout(**{**layout, **tuples})
