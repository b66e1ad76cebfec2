"""How long a command takes, from its start to its end.

    python benchmarks/wall_clock.py --out results -- python -m everlearn run dcl-plus --preset paper

A row is added to OUT/wall_clock.jsonl.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import time
from pathlib import Path

from everlearn.core.jsonl import read_json_lines
from everlearn.core.provenance import provenance
from everlearn.render.benchmark import gpu_name, write_rows


def main() -> None:
    """Run the command and write its wall-clock time; fail if it fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    began = time.perf_counter()
    subprocess.run(options.command, check=True)
    row = {
        "what": "wall time",
        "of": shlex.join(options.command),
        "seconds": time.perf_counter() - began,
    }
    path = options.out / "wall_clock.jsonl"
    write_rows(path, [*read_json_lines(path), row | provenance(gpu_name())])


if __name__ == "__main__":
    main()
