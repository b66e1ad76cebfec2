"""The files of a run's folder: the stream and the settings, written once, make it a run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from everlearn.core.files import explain_write_errors, replace_atomically
from everlearn.core.json_values import parse_object, read_text, to_json_value
from everlearn.core.jsonl import PACKED
from everlearn.core.lock import LOCK, locked

STREAM = "stream.json"
SETTINGS = "settings.json"
PROVENANCE = "provenance.jsonl"
ROWS = "rows.jsonl"
COSTS = "costs.jsonl"
CHECKPOINT = "checkpoint.npz"
DONE = "done.json"


def create(folder: Path, stream: str, settings: dict[str, Any]) -> None:
    """Write the stream and the settings of a new run to a new or an empty folder."""
    plain_settings = to_json_value(settings, "settings")
    parse_object(stream, "the stream", "give what its to_json() gives")
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; give a folder for the run")
    with explain_write_errors("the run", folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        _check_free(folder, stream, plain_settings)
        remove_temporaries(folder)
        write(folder / STREAM, stream.encode())
        # The settings come last: a folder with both files is a run.
        write(folder / SETTINGS, json.dumps(plain_settings, indent=2).encode() + b"\n")


def check_run(folder: str | PathLike[str]) -> Path:
    """Return the folder of a run as a path; raise where there is no run."""
    place = Path(folder)
    for name in (SETTINGS, STREAM):
        if not (place / name).is_file():
            raise FileNotFoundError(
                f"{place} holds no run: {name} is missing; name a folder that a run was written to"
            )
    return place


def read_stream(folder: Path) -> str:
    """Read the JSON of the stream, unchanged."""
    text = read_text(folder / STREAM)
    parse_object(text, str(folder / STREAM))
    return text


def read_settings(folder: Path) -> dict[str, Any]:
    """Read the settings of a run."""
    return parse_object(read_text(folder / SETTINGS), str(folder / SETTINGS))


def hash_setup(folder: Path) -> str:
    """Return the SHA-256 of a run's stream and settings."""
    contents = [(folder / name).read_bytes() for name in (STREAM, SETTINGS)]
    return hashlib.sha256(b"\0".join(contents)).hexdigest()


def find_runs(folder: str | PathLike[str]) -> list[Path]:
    """Find all runs in and below a folder, sorted by path."""
    place = Path(folder)
    if not place.is_dir():
        raise FileNotFoundError(f"{place} is not a folder; name one that holds runs")
    found = (path.parent for path in place.rglob(SETTINGS))
    return sorted(path for path in found if (path / STREAM).is_file())


def is_finished(folder: Path) -> bool:
    """Return whether a folder holds a finished run."""
    return (folder / DONE).exists()


def remove_temporaries(folder: Path) -> None:
    """Remove the temporary files of a writer that was killed."""
    for path in _temporaries(folder):
        path.unlink()


def write(path: Path, content: bytes) -> None:
    """Write a small file atomically."""
    advice = f"run the same again, or continue with: everlearn resume {path.parent}"
    with (
        explain_write_errors(path.name, path.parent, retry=advice),
        replace_atomically(path) as file,
    ):
        file.write(content)


def _temporaries(folder: Path) -> list[Path]:
    packed = (ROWS + PACKED, COSTS + PACKED)
    names = (STREAM, SETTINGS, PROVENANCE, CHECKPOINT, DONE, *packed)
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
    differences = [
        *_differences("stream", json.loads(read_stream(folder)), json.loads(stream)),
        *_differences("setting", read_settings(folder), settings),
    ]
    if differences:
        return ValueError(
            f"{folder} holds another run: {'; '.join(differences)}; give another folder"
        )
    if is_finished(folder):
        return FileExistsError(f"{folder}: this run exists and is finished; give another folder")
    return FileExistsError(f"this run exists; resume it with: everlearn resume {folder}")


def _differences(kind: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        old_text = _canonical(old, name)
        new_text = _canonical(new, name)
        if old_text != new_text:
            yield f"its {kind} {name} is {old_text}, not {new_text}"


def _canonical(values: dict[str, Any], name: str) -> str:
    return json.dumps(values[name], sort_keys=True) if name in values else "absent"
