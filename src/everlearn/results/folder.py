"""What makes a folder a run: a stream and settings, written once; settings.json comes last."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from everlearn.disk import explained, replacing
from everlearn.lock import LOCK, locked
from everlearn.results.plain import plain

STREAM = "stream.json"
SETTINGS = "settings.json"
PROVENANCE = "provenance.jsonl"
ROWS = "rows.jsonl"
COSTS = "costs.jsonl"
CHECKPOINT = "checkpoint.npz"
DONE = "done.json"


def create(folder: Path, stream: str, settings: dict[str, Any]) -> None:
    """Make a folder a run, unless it is one or holds something else."""
    kept = plain(settings, "settings")
    _parse(stream, "the stream", "give what its to_json() gives")
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; give a folder for the run")
    with explained("the run", folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        _check_free(folder, stream, kept)
        sweep(folder)
        write(folder / STREAM, stream.encode())
        write(folder / SETTINGS, json.dumps(kept, indent=2).encode() + b"\n")


def check_run(folder: str | PathLike[str]) -> Path:
    """Return a folder that holds a run, or say that it holds none."""
    place = Path(folder)
    for name in (SETTINGS, STREAM):
        if not (place / name).is_file():
            raise FileNotFoundError(
                f"{place} holds no run: {name} is missing; name a folder that a run was written to"
            )
    return place


def read_stream(folder: Path) -> str:
    """Read the stream's JSON as it was given."""
    text = _read(folder / STREAM)
    _parse(text, str(folder / STREAM))
    return text


def read_settings(folder: Path) -> dict[str, Any]:
    """Read the settings."""
    return _parse(_read(folder / SETTINGS), str(folder / SETTINGS))


def digest(folder: Path) -> str:
    """Sum up what a run is: its stream and its settings."""
    parts = [(folder / name).read_bytes() for name in (STREAM, SETTINGS)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def find_runs(folder: str | PathLike[str]) -> list[Path]:
    """Find all runs in a folder and below it, sorted."""
    place = Path(folder)
    if not place.is_dir():
        raise FileNotFoundError(f"{place} is not a folder; name one that holds runs")
    found = (path.parent for path in place.rglob(SETTINGS))
    return sorted(path for path in found if (path / STREAM).is_file())


def is_finished(folder: Path) -> bool:
    """Whether a folder holds a run that reached its end."""
    return (folder / DONE).exists()


def sweep(folder: Path) -> None:
    """Remove the temporary files of a writer that was killed."""
    for path in _temporaries(folder):
        path.unlink()


def write(path: Path, content: bytes) -> None:
    """Write a small file, whole or not at all."""
    again = f"run the same again, or go on with: everlearn resume {path.parent}"
    with explained(path.name, path.parent, again=again), replacing(path) as file:
        file.write(content)


def _temporaries(folder: Path) -> list[Path]:
    names = (STREAM, SETTINGS, PROVENANCE, CHECKPOINT, DONE)
    return [path for name in names for path in folder.glob(f".{name}.*.tmp")]


def _check_free(folder: Path, stream: str, settings: dict[str, Any]) -> None:
    if (folder / SETTINGS).exists() and (folder / STREAM).exists():
        raise _refusal(folder, stream, settings)
    others = set(folder.iterdir()) - {folder / LOCK, folder / STREAM, *_temporaries(folder)}
    if others:
        name = min(others).name
        raise ValueError(f"{folder} holds {name} and no run; give a new or an empty folder")
    if (folder / STREAM).exists() and (folder / STREAM).read_bytes() != stream.encode():
        raise ValueError(
            f"{folder} holds {STREAM} of another stream and no run; give another folder, or delete it"
        )


def _refusal(folder: Path, stream: str, settings: dict[str, Any]) -> Exception:
    there = _canonical(json.loads(read_stream(folder))), _canonical(read_settings(folder))
    here = _canonical(json.loads(stream)), _canonical(settings)
    differences = [*_differences("stream", there[0], here[0])]
    differences += _differences("setting", there[1], here[1])
    if differences:
        return ValueError(
            f"{folder} holds another run: {'; '.join(differences)}; give another folder"
        )
    if is_finished(folder):
        return FileExistsError(f"{folder}: this run exists and is finished; give another folder")
    return FileExistsError(f"this run exists; resume it with: everlearn resume {folder}")


def _canonical(settings: dict[str, Any]) -> dict[str, str]:
    return {name: json.dumps(value, sort_keys=True) for name, value in settings.items()}


def _differences(kind: str, there: dict[str, str], here: dict[str, str]) -> Iterator[str]:
    for name in sorted(there.keys() | here.keys()):
        old, new = there.get(name, "absent"), here.get(name, "absent")
        if old != new:
            yield f"its {kind} {name} is {old}, not {new}"


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is damaged: {error}; put back a copy of it") from None


def _parse(text: str, name: str, advice: str = "put back a copy of it") -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{name} is not JSON: {error}; {advice}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be a JSON object, found {type(value).__name__}; {advice}")
    return value
