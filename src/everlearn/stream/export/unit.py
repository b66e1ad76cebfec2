"""A task on disk: its files, and the JSON file beside them that vouches for every byte."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from everlearn.stream.export.content import Header, Layout

_SIDECAR = re.compile(r"task_(\d{6,})\.json")


class File(NamedTuple):
    """A file of a task and how many rows it holds."""

    name: str
    rows: int
    data: bytes


def stem(index: int) -> str:
    """What the names of a task's files begin with."""
    return f"task_{index:06d}"


def vouched(header: Header, files: Iterable[File]) -> Iterator[tuple[str, bytes]]:
    """Give the files of a task, and last the one that vouches for them."""
    sums = []
    for file in files:
        sums.append({"name": file.name, "rows": file.rows, "sha256": digest(file.data)})
        yield file.name, file.data
    yield f"{stem(header.index)}.json", seal({"task": asdict(header), "files": sums})


def find_units(folder: Path) -> tuple[int, ...]:
    """The tasks that a folder holds, in order."""
    names = (_SIDECAR.fullmatch(path.name) for path in folder.iterdir())
    return tuple(sorted(int(name[1]) for name in names if name))


def is_whole(folder: Path, index: int) -> bool:
    """Whether a task is there, all of it, undamaged."""
    try:
        read_unit(folder, index)
    except ValueError:
        return False
    return True


def read_unit(folder: Path, index: int) -> tuple[Header, dict[str, bytes]]:
    """Read a task's files, or say which is not as it was written."""
    advice = f"run the same export again: it writes task {index} anew"
    sidecar = folder / f"{stem(index)}.json"
    body = unseal(sidecar, advice)
    files = {item["name"]: _read(folder / item["name"], advice) for item in body["files"]}
    for item in body["files"]:
        if digest(files[item["name"]]) != item["sha256"]:
            raise ValueError(
                f"{folder / item['name']} is damaged: its bytes are not those that {sidecar.name} "
                f"vouches for; {advice}"
            )
    return _header(body["task"]), files


def digest(data: bytes) -> str:
    """The SHA-256 sum, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def seal(body: dict[str, Any]) -> bytes:
    """Write JSON that holds its own sum."""
    return json.dumps({"sha256": digest(json.dumps(body).encode()), **body}, indent=1).encode()


def unseal(path: Path, advice: str) -> dict[str, Any]:
    """Read sealed JSON, or say that it is damaged and what to do."""
    data = _read(path, advice)
    try:
        body = json.loads(data)
        whole = isinstance(body, dict) and body.pop("sha256", None) and seal(body) == data
    except (ValueError, RecursionError):
        whole = False
    if not whole:
        raise ValueError(f"{path} is damaged: its sum does not agree; {advice}")
    return dict(body)


def _read(path: Path, advice: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ValueError(f"{path} is missing; {advice}") from None


def _header(task: dict[str, Any]) -> Header:
    layouts = {name: _layout(layout) for name, layout in task["layouts"].items()}
    return Header(**{**task, "classes": tuple(task["classes"]), "layouts": layouts})


def _layout(layout: dict[str, Any]) -> Layout:
    tuples: dict[str, Any] = {k: tuple(v) for k, v in layout.items() if isinstance(v, list)}
    return Layout(**{**layout, **tuples})
