"""Record the rows of every method and the data of every stream, and compare two recordings.

A refactoring keeps every number: record before, record after, compare.

    python benchmarks/same_rows.py record before.json --presets toy small --tasks 3
    python benchmarks/same_rows.py compare before.json after.json --renamed benchmarks/renamed.json

Times and memory are left out, because they differ from run to run. `renamed.json` maps old keys of rows to
new ones; it holds the renames of the redesign.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

VARYING = ("seconds", "evaluation_seconds", "memory", "host_memory", "peak_memory")
SCENARIOS = ("class", "task", "domain", "nic", "blurry", "recurring")


def record(path: str, presets: list[str], tasks: int, workers: int, methods: list[str]) -> None:
    """Write the rows of methods under presets, and digests of streams."""
    from everlearn.methods import METHODS

    jobs = [(preset, name, tasks) for preset in presets for name in methods or METHODS]
    found: dict[str, Any] = {"streams": digest_streams()}
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for (preset, name, _), rows in zip(
            jobs, pool.map(learn, *zip(*jobs, strict=True)), strict=True
        ):
            found[f"{preset}/{name}"] = rows
            print(preset, name, len(rows), flush=True)
            Path(path).write_text(json.dumps(found))


def learn(preset: str, name: str, tasks: int) -> list[dict[str, Any]] | str:
    """Learn the first tasks of a preset on the CPU and return the rows, or why that is refused."""
    import torch

    from everlearn import build, run
    from everlearn.runs.presets import find_preset

    torch.set_num_threads(1)
    found = find_preset(preset)
    stream = found.stream if preset == "toy" else found.stream.with_changes(tasks=tasks)
    try:
        learner = build(name, stream, "cpu", **found.settings_of(name))
        rows = list(run(stream, learner, found.plan, tasks=tasks))
    except (ValueError, TypeError, FileNotFoundError) as error:
        return type(error).__name__
    return [{key: value for key, value in row.items() if key not in VARYING} for row in rows]


def digest_streams() -> dict[str, str]:
    """Hash the first training batch, the exemplars and the test images of every kind of stream."""
    from everlearn import Gaussians, Latents, Stream
    from everlearn.stream.named import STREAMS

    streams: dict[str, Any] = {
        f"sprites-{scenario}": Stream(tasks=4, classes_per_task=5, scenario=scenario)
        for scenario in SCENARIOS
    }
    streams |= {"gaussians": Gaussians(), "latents": Latents(), **STREAMS}
    return {name: digest(stream) for name, stream in streams.items()}


def digest(stream: Any) -> str:
    """Hash the JSON of a stream and what its first two tasks show."""
    sha = hashlib.sha256(stream.to_json().encode())
    for index in range(2):
        try:
            task = stream[index]
        except FileNotFoundError:
            sha.update(b"no data")
            continue
        for batch in [*islice(task.batches(32), 2), task.test.batch(slice(0, 32))]:
            for part in (batch.images, batch.labels):
                sha.update(np.ascontiguousarray(part.numpy()).tobytes())
    return sha.hexdigest()


def compare(before: str, after: str, renamed: str | None) -> int:
    """Print every difference between two recordings; return how many there are."""
    old = json.loads(Path(before).read_text())
    new = json.loads(Path(after).read_text())
    names = json.loads(Path(renamed).read_text()) if renamed else {}
    wrong = [key for key in old if rename(old[key], names) != new.get(key)]
    for key in wrong:
        print(f"{key} differs: {first_difference(rename(old[key], names), new.get(key))}")
    print(f"{len(old) - len(wrong)} of {len(old)} recordings are equal")
    return len(wrong)


def first_difference(old: Any, new: Any) -> str:
    """Show the first row that differs."""
    if not (isinstance(old, list) and isinstance(new, list)):
        return f"{str(old)[:300]} against {str(new)[:300]}"
    pairs = [(a, b) for a, b in zip(old, new, strict=False) if a != b]
    return f"{len(old)} and {len(new)} rows; first: {pairs[:1]}"


def rename(value: Any, names: dict[str, str]) -> Any:
    """Replace keys, and values of `kind`, by their new names."""
    if isinstance(value, list):
        return [rename(item, names) for item in value]
    if not isinstance(value, dict):
        return value
    renamed = {names.get(key, key): rename(item, names) for key, item in value.items()}
    if "kind" in renamed:
        renamed["kind"] = names.get(f"kind:{renamed['kind']}", renamed["kind"])
    return renamed


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("record")
    one.add_argument("out")
    one.add_argument("--presets", nargs="+", default=["toy", "small"])
    one.add_argument("--methods", nargs="+", default=[])
    one.add_argument("--tasks", type=int, default=3)
    one.add_argument("--workers", type=int, default=2)
    two = commands.add_parser("compare")
    two.add_argument("before")
    two.add_argument("after")
    two.add_argument("--renamed")
    asked = parser.parse_args()
    if asked.command == "record":
        record(asked.out, asked.presets, asked.tasks, asked.workers, asked.methods)
    else:
        sys.exit(compare(asked.before, asked.after, asked.renamed) > 0)


if __name__ == "__main__":
    main()
