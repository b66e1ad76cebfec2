"""Rename settings, keys and kinds in results that were written under older names.

    python benchmarks/migrate_results.py results

Runs (settings.json, rows.jsonl, costs.jsonl, done.json) and measurements (parts/*.jsonl) are rewritten in
place, packed or not; files with new names stay as they are. The names come from the tables by which old
names are refused: `everlearn.core.settings.RENAMED` and those of `everlearn.rows`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from everlearn.core.files import write_file
from everlearn.core.jsonl import encode_row, pack_json_lines, packed_path, read_json_lines
from everlearn.core.settings import RENAMED, change_settings, list_settings
from everlearn.evaluation.plan import Plan, read_plan
from everlearn.methods import find_method
from everlearn.rows import RENAMED_KEYS, RENAMED_KINDS

Json = dict[str, Any]
SUMMARY = {
    "whole_accuracy": "all_classes_accuracy",
    "whole_average": "all_classes_average",
    "met_accuracy": "seen_classes_accuracy",
    "met_average": "seen_classes_average",
    "within_accuracy": "within_task_accuracy",
}
# Parts of the learners' states, which costs count the bytes of.
STATE_PARTS = {
    "anchor": "penalty",
    "average": "averaged_net",
    "choice": "sampler",
    "kept": "reference_images",
    "met": "seen",
    "world": "environments",
}
# Settings that a method no longer has, with the only value it had: it always does so.
DROPPED: dict[str, Json] = {
    "negative-replay": {"apart": False, "balanced": False, "negative": True},
}


def migrate(folder: Path) -> None:
    """Rename everything below a folder."""
    hashes: dict[str, str] = {}
    for settings in sorted(folder.rglob("settings.json")):
        hashes |= migrate_run(settings.parent)
    for parts in sorted(folder.rglob("parts")):
        for path in sorted({unpacked(path) for path in parts.glob("*.jsonl*")}):
            rewrite_lines(path, lambda row: rename_origin(rename_row(row), hashes))


def migrate_run(folder: Path) -> dict[str, str]:
    """Rename the names in a run's files; return the old hash of done.json with the new one."""
    rewrite_json(folder / "settings.json", rename_settings)
    rewrite_lines(folder / "rows.jsonl", rename_row)
    rewrite_lines(folder / "costs.jsonl", rename_row)
    done = folder / "done.json"
    if not done.exists():
        return {}
    before = hashlib.sha256(done.read_bytes()).hexdigest()
    rewrite_json(done, lambda summary: rename(summary, SUMMARY))
    return {before: hashlib.sha256(done.read_bytes()).hexdigest()}


def rename_settings(kept: Json) -> Json:
    """Rename the settings of a run's method and plan, and check that both can be read again."""
    defaults = find_method(kept["method"]).settings()
    dropped = DROPPED.get(kept["method"], {}).items()
    old = dict(item for item in kept["settings"].items() if item not in dropped)
    settings = rename(old, new_names(old, list_settings(defaults)))
    change_settings(defaults, settings, kept["method"])
    plan = rename(kept["plan"], new_names(kept["plan"], list_settings(Plan())))
    read_plan(plan)
    return {**kept, "settings": settings, "plan": plan}


def new_names(old: Json, known: Json) -> dict[str, str]:
    """Return the new names of settings that are not known any more."""
    names: dict[str, str] = {}
    for name in old.keys() - known.keys():
        found = [new for new in RENAMED.get(name, ()) if new in known]
        if len(found) != 1:
            raise ValueError(f"the setting {name!r} has no single new name, found {found}")
        names[name] = found[0]
    return names


def rename_row(row: Json) -> Json:
    """Rename the keys and the kind of a row."""
    row = rename(row, RENAMED_KEYS)
    row["kind"] = RENAMED_KINDS.get(row["kind"], row["kind"])
    if row["kind"] == "latents" and "latents" in row:  # of a measurement, not of a run
        row["kind"] = "varied_latents"
    if "bytes" in row:
        row["bytes"] = rename(row["bytes"], STATE_PARTS)
    return row


def rename_origin(row: Json, hashes: dict[str, str]) -> Json:
    """Replace the hashes of runs that were rewritten in the origin of a measurement."""
    if row["kind"] != "origin" or "runs" not in row:
        return row
    return {**row, "runs": {name: hashes.get(old, old) for name, old in row["runs"].items()}}


def rename(values: Json, names: dict[str, str]) -> Json:
    """Return a dict with some keys renamed, in the same order."""
    return {names.get(key, key): value for key, value in values.items()}


def rewrite_json(path: Path, change: Callable[[Json], Json]) -> None:
    """Rewrite a file of one JSON object, if it changes."""
    old = json.loads(path.read_text())
    new = change(old)
    if list(new.items()) != list(old.items()):
        write_file(path, json.dumps(new, indent=2).encode() + b"\n")


def rewrite_lines(path: Path, change: Callable[[Json], Json]) -> None:
    """Rewrite a file of JSON lines, packed or not, if it changes."""
    old = read_json_lines(path)
    new = [change(row) for row in old]
    if new == old:
        return
    packed = packed_path(path).exists()
    packed_path(path).unlink(missing_ok=True)
    write_file(path, b"".join(map(encode_row, new)))
    if packed:
        pack_json_lines(path)


def unpacked(path: Path) -> Path:
    """Return the path of a file of JSON lines without the ending of a packed one."""
    return path.with_suffix("") if path.suffix == ".gz" else path


def check(folder: Path) -> Iterator[str]:
    """Name the files that hold old names still; none after a migration."""
    for path in sorted({unpacked(path) for path in folder.rglob("*.jsonl*")}):
        rows = [row for row in read_json_lines(path) if "kind" in row]
        if any(row != rename_row(row) for row in rows):
            yield str(path)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    migrate(folder)
    left = list(check(folder))
    print("\n".join(f"{path} still has old names" for path in left) or "all names are new")


if __name__ == "__main__":
    main()
