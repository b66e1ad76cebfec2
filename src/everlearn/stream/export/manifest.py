"""The file that says what a folder is: an export, of which stream, in which format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from everlearn.stream.export.unit import digest, unseal
from everlearn.version import __version__

MANIFEST = "export.json"
STREAM = "stream.json"
_KEY = "everlearn_export"
_NUMBER = 1
_ADVICE = "export to a new folder"


def describe(stream: str, format: str) -> dict[str, Any]:
    """What the manifest of an export holds."""
    return {
        _KEY: _NUMBER,
        "stream_sha256": digest(stream.encode()),
        "format": format,
        "everlearn": __version__,
        "images": "8-bit levels, drawn on the CPU; those of a float32 stream are level / 255",
    }


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest, or say why there is none to be had."""
    if not (folder / MANIFEST).exists():
        raise FileNotFoundError(
            f"{folder} holds no export: {MANIFEST} is missing; name a folder that export() wrote"
        )
    manifest = unseal(folder / MANIFEST, _ADVICE)
    if manifest.get(_KEY) != _NUMBER:
        raise ValueError(
            f"{folder} is an export of number {manifest.get(_KEY)!r}; this version of everlearn reads "
            f"{_NUMBER}: update everlearn"
        )
    return manifest


def read_stream(folder: Path, manifest: dict[str, Any]) -> str:
    """Read the stream's JSON, or say that it is not the one exported."""
    path = folder / STREAM
    if not path.exists() or digest(path.read_bytes()) != manifest["stream_sha256"]:
        raise ValueError(
            f"{path} is missing or damaged; run the same export again: it writes it anew"
        )
    return path.read_text()
