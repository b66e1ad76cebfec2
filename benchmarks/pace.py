"""How long a task takes with each method, alone on the device.

    python benchmarks/pace.py --out results --device cuda lwf si er "er --memory 20000" ...

Each learns the first tasks of the paper's stream as `everlearn run --preset paper` would; nothing is
tested. The first tasks are left out, where kernels are compiled and graphs captured. Rows are added to
OUT/pace.jsonl.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

from everlearn import build
from everlearn.bench import gpu_name, write_rows
from everlearn.cli.words import read_words
from everlearn.exam.costs import count_memory, settled
from everlearn.presets import PRESETS
from everlearn.provenance import provenance
from everlearn.results.lines import read_lines

LEFT_OUT = 2


def main() -> None:
    """Time the methods one after another; each row is written at once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--tasks", type=int, default=12)
    parser.add_argument("words", nargs="+", metavar="method", help="with settings, in quotes")
    asked = parser.parse_args()
    path, origin = asked.out / "pace.jsonl", provenance(gpu_name())
    for text in asked.words:
        row = measure(text, asked.preset, asked.device, asked.tasks)
        print(f"{text}: {row['seconds_a_task']:.3f} s a task", flush=True)
        write_rows(path, [*read_lines(path), row | origin])


def measure(text: str, preset: str, device: str, tasks: int) -> dict[str, Any]:
    """A row: the median of the seconds of all tasks but the first."""
    [(method, own)] = read_words(text.split()).items()
    stream, settings = PRESETS[preset].stream, PRESETS[preset].settings_of(method) | own
    learner, seconds, steps = build(method, stream, device, **settings), [], 0
    for index in range(tasks):
        task, began = stream[index].place(device), settled(device)
        steps = sum(1 for _ in learner.learn(task))
        seconds.append(settled(device) - began)
    return {
        "what": "seconds a task, alone",
        "method": method,
        "settings": settings,
        "preset": preset,
        "seconds_a_task": statistics.median(seconds[LEFT_OUT:]),
        "seconds": seconds,
        "steps_a_task": steps,
        "images_a_step": learner.batch_size,
        "peak_memory": count_memory(device)["peak_memory"],
    }


if __name__ == "__main__":
    main()
