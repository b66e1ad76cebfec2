"""Compress the rows of all runs and measurements below a folder; they are read as before.

    python benchmarks/pack_results.py results

Packing twice changes nothing, and equal rows give equal bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from everlearn.core.jsonl import pack_json_lines
from everlearn.experiments.framework.results_folder import MEASUREMENTS
from everlearn.runs import find_runs, pack


def main() -> None:
    """Pack a folder, and print its size before and after."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    before = size_of(folder)
    for run in find_runs(folder):
        pack(run)
    for measurement in sorted(folder.rglob(f"{MEASUREMENTS}/*.jsonl")):
        pack_json_lines(measurement)
    print(f"{folder}: {before / 1e6:.1f} MB before, {size_of(folder) / 1e6:.1f} MB after")


def size_of(folder: Path) -> int:
    """Add up the bytes of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
