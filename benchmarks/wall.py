"""How long a command takes, from its start to its end.

    python benchmarks/wall.py --out results -- python -m everlearn run dcl-plus --preset paper

A row is added to OUT/wall.jsonl.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import time
from pathlib import Path

from everlearn.bench import gpu_name, write_rows
from everlearn.provenance import provenance
from everlearn.results.lines import read_lines


def main() -> None:
    """Run the command and write what it took; its failure is ours."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("words", nargs="+", metavar="command")
    asked = parser.parse_args()
    began = time.perf_counter()
    subprocess.run(asked.words, check=True)
    row = {
        "what": "wall time",
        "of": shlex.join(asked.words),
        "seconds": time.perf_counter() - began,
    }
    path = asked.out / "wall.jsonl"
    write_rows(path, [*read_lines(path), row | provenance(gpu_name())])


if __name__ == "__main__":
    main()
