"""How long a task takes with each method, alone on the device, at the start and at the end of a stream.

    python benchmarks/task_seconds.py --out results --device cuda lwf si er "er --buffer-size 20000" ...

Each method learns the first and the last tasks of the paper's stream as `everlearn run --preset paper`
would. The tasks between are thinned to one batch per epoch: everything that grows with the number of
tasks still grows, in a tenth of the time. Nothing is evaluated. The first tasks, where kernels are
compiled and graphs captured, are left out. Rows are added to OUT/task_seconds.jsonl.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

from everlearn import Stream, build
from everlearn.cli.method_options import parse_methods
from everlearn.core.jsonl import read_json_lines
from everlearn.core.provenance import provenance
from everlearn.evaluation.costs import measure_memory
from everlearn.render.benchmark import write_rows
from everlearn.runs.presets import PRESETS
from everlearn.training.device import find_device, gpu_name, synchronized_time

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
    parser.add_argument("methods", nargs="+", metavar="method", help="with settings, in quotes")
    options = parser.parse_args()
    path = options.out / "task_seconds.jsonl"
    device = find_device(options.device)
    origin = provenance(gpu_name(device))
    for text in options.methods:
        row = measure(text, options.preset, device, options.tasks)
        print(
            f"{text}: {row['seconds_per_task']:.3f} s, at the end {row['seconds_at_the_end']:.3f}",
            flush=True,
        )
        write_rows(path, [*read_json_lines(path), row | origin])


def measure(text: str, preset: str, device: str, tasks: int) -> dict[str, Any]:
    """A row: medians of the seconds of the first tasks and of the last ones."""
    [(method, changes)] = parse_methods(text.split()).items()
    stream = PRESETS[preset].stream
    settings = PRESETS[preset].settings_of(method) | changes
    if not isinstance(stream, Stream):
        raise SystemExit(f"only streams of sprites can be thinned, which {preset} is not")
    learner = build(method, stream, device, **settings)
    seconds: dict[int, float] = {}
    steps = 0
    thin = replace(stream, split=THIN)
    last = len(stream) - tasks
    for index in range(len(stream)):
        passed = tasks <= index < last
        task = (thin if passed else stream)[index].to(device)
        began = synchronized_time(device)
        count = sum(1 for _ in learner.learn(task))
        if not passed:
            seconds[index] = synchronized_time(device) - began
            steps = count
    early = statistics.median(seconds[index] for index in range(LEFT_OUT, tasks))
    late = statistics.median(seconds[index] for index in range(last, len(stream)))
    return {
        "what": "seconds per task, alone",
        "method": method,
        "settings": settings,
        "preset": preset,
        "seconds_per_task": early,
        "seconds_at_the_end": late,
        "growth": late / early,
        "seconds": seconds,
        "steps_per_task": steps,
        "images_per_step": learner.batch_size,
        "peak_memory": measure_memory(device).peak,
    }


if __name__ == "__main__":
    main()
