"""One shot among a million classes by exact search, with the learner of a run.

    python benchmarks/million.py RUN --out results [--classes 1000000] [--questions 10000]

Rows go to OUT/million.jsonl: accuracy, that of the nearest exemplar through the true map, speed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from everlearn.bench import gpu_name, write_rows
from everlearn.exam.one_shot import FACTORS, fill, new_classes, questions_of
from everlearn.metrics import wilson
from everlearn.provenance import provenance
from everlearn.results import Run
from everlearn.runs import load_learner
from everlearn.stream import read_stream
from everlearn.warp import normalise


def main() -> None:
    """Measure and write rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--classes", type=int, default=1_000_000)
    parser.add_argument("--questions", type=int, default=10_000)
    asked = parser.parse_args()
    origin = provenance(gpu_name())
    rows = [{**row, **origin} for row in measure(asked.run, asked.classes, asked.questions)]
    write_rows(asked.out / "million.jsonl", rows)


def measure(folder: Path, classes: int, questions: int) -> Iterator[dict[str, Any]]:
    """Fill a memory with new classes, then ask."""
    run, learner = Run.open(folder), load_learner(folder)
    stream: Any = read_stream(run.stream)
    new, memory = new_classes(stream, learner), learner.memory.empty()
    began = time.perf_counter()
    fill(memory, new, range(new.first_class, new.first_class + classes), learner.device)
    common = {
        "what": "one shot, standard", "classes": classes, "memory_bytes": memory.bytes,
        "seconds_to_fill": time.perf_counter() - began, "run": run.settings,
    }  # fmt: skip
    for factors in FACTORS:
        shown = new_classes(stream, learner, factors)
        row = common | {"factors": factors} | ask(shown, learner, memory, classes, questions)
        print(json.dumps(row), flush=True)
        yield row


def ask(stream: Any, learner: Any, memory: Any, classes: int, questions: int) -> dict[str, Any]:
    """Count right answers, and those of the nearest exemplar through the true map, which nothing fits."""
    asked = list(questions_of(stream, classes, questions, learner.device))
    torch.cuda.synchronize()
    began = time.perf_counter()
    right = sum(
        int((learner.match(part.images, memory, 1).labels[:, 0] == part.labels).sum())
        for part in asked
    )
    seconds = time.perf_counter() - began
    best = sum(
        int(
            (memory.search(normalise(part.images, part.theta), 1).labels[:, 0] == part.labels).sum()
        )
        for part in asked
    )
    total = sum(len(part.labels) for part in asked)
    low, high = wilson(right, total)
    return {
        "right": right, "total": total, "accuracy": right / total, "low": float(low),
        "high": float(high), "nearest_with_true_map": best / total, "queries_a_second": total / seconds,
    }  # fmt: skip


if __name__ == "__main__":
    main()
