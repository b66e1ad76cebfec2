"""How long a task takes with each method, alone on the device, at the start and at the end of a stream.

    python benchmarks/pace.py --out results --device cuda lwf si er "er --memory 20000" ...

Each learns the first tasks of the paper's stream as `everlearn run --preset paper` would, and the last.
Of the tasks between it sees a few images only, a batch an epoch: all that grows with the number of tasks
has grown then, in a tenth of the time. Nothing is tested. The first tasks are left out, where kernels are
compiled and graphs captured. Rows are added to OUT/pace.jsonl.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

from everlearn import Stream, build
from everlearn.bench import gpu_name, write_rows
from everlearn.cli.words import read_words
from everlearn.exam.costs import count_memory, settled
from everlearn.presets import PRESETS
from everlearn.provenance import provenance
from everlearn.results.lines import read_lines

LEFT_OUT = 2
# Shares of training, validation and test in a task that is only passed: 280 images to train on.
THIN = (0.045, 0.939, 0.016)


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
        print(
            f"{text}: {row['seconds_a_task']:.3f} s, at the end {row['seconds_at_the_end']:.3f}",
            flush=True,
        )
        write_rows(path, [*read_lines(path), row | origin])


def measure(text: str, preset: str, device: str, tasks: int) -> dict[str, Any]:
    """A row: medians of the seconds of the first tasks and of the last ones."""
    [(method, own)] = read_words(text.split()).items()
    stream, settings = PRESETS[preset].stream, PRESETS[preset].settings_of(method) | own
    if not isinstance(stream, Stream):
        raise SystemExit(f"only streams of sprites can be thinned, which {preset} is not")
    learner, seconds, steps = build(method, stream, device, **settings), {}, 0
    thin, last = replace(stream, split=THIN), len(stream) - tasks
    for index in range(len(stream)):
        passed = tasks <= index < last
        task, began = (thin if passed else stream)[index].place(device), settled(device)
        count = sum(1 for _ in learner.learn(task))
        if not passed:
            seconds[index], steps = settled(device) - began, count
    early = statistics.median(seconds[index] for index in range(LEFT_OUT, tasks))
    late = statistics.median(seconds[index] for index in range(last, len(stream)))
    return {
        "what": "seconds a task, alone",
        "method": method,
        "settings": settings,
        "preset": preset,
        "seconds_a_task": early,
        "seconds_at_the_end": late,
        "growth": late / early,
        "seconds": seconds,
        "steps_a_task": steps,
        "images_a_step": learner.batch_size,
        "peak_memory": count_memory(device)["peak_memory"],
    }


if __name__ == "__main__":
    main()
