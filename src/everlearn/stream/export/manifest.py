"""The manifest of an export: its stream and its format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from everlearn.core.version import __version__
from everlearn.stream.export.task_files import read_checksummed, sha256

MANIFEST = "export.json"
STREAM = "stream.json"
_KEY = "everlearn_export"
_NUMBER = 1
_ADVICE = "export to a new folder"


def make_manifest(stream: str, format: str) -> dict[str, Any]:
    """Return the manifest of an export of a stream, given as JSON."""
    return {
        _KEY: _NUMBER,
        "stream_sha256": sha256(stream.encode()),
        "format": format,
        "everlearn": __version__,
        "images": "8-bit levels, drawn on the CPU; those of a float32 stream are level / 255",
    }


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a folder, or say why it cannot be read."""
    if not (folder / MANIFEST).exists():
        raise FileNotFoundError(
            f"{folder} holds no export: {MANIFEST} is missing; give a folder that export() wrote"
        )
    manifest = read_checksummed(folder / MANIFEST, _ADVICE)
    if manifest.get(_KEY) != _NUMBER:
        raise ValueError(
            f"{folder} is an export of number {manifest.get(_KEY)!r}; this version of everlearn reads "
            f"{_NUMBER}: update everlearn"
        )
    return manifest


def read_stream(folder: Path, manifest: dict[str, Any]) -> str:
    """Read the stream's JSON, or say that it is not the one that was exported."""
    path = folder / STREAM
    if not path.exists() or sha256(path.read_bytes()) != manifest["stream_sha256"]:
        raise ValueError(
            f"{path} is missing or damaged; run the same export again: it rewrites the file"
        )
    return path.read_text()
