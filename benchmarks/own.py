"""Errors of maps, and speed, when an image's own moments count more or less in normalisation.

    python benchmarks/own.py RUN --out results [--tasks 500]

Images are of the validation split, which no learner and no test sees. Rows go to OUT/own.jsonl.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from everlearn.bench import gpu_name, write_rows
from everlearn.nets.norm import count_own
from everlearn.provenance import provenance
from everlearn.results import Run
from everlearn.runs import load_learner
from everlearn.stream import read_stream

OWNS = (0.0, 1 / 4096, 1 / 2048, 0.001, 1 / 512, 1 / 256, 1 / 64)
BATCH = 500


def main() -> None:
    """Measure and write rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--tasks", type=int, default=500)
    asked = parser.parse_args()
    origin = provenance(gpu_name())
    rows = [{**row, **origin} for row in measure(asked.run, asked.tasks)]
    write_rows(asked.out / "own.jsonl", rows)


def measure(folder: Path, tasks: int) -> Iterator[dict[str, Any]]:
    """Give a row for each share."""
    run, learner = Run.open(folder), load_learner(folder)
    stream: Any = read_stream(run.stream)
    drawn = [stream[index].val.batch(slice(None), learner.device) for index in range(tasks)]
    images = torch.cat([batch.images for batch in drawn])
    theta = torch.cat([batch.theta for batch in drawn])
    for own in OWNS:
        count_own(learner.answering, own)
        tell(learner, images[:BATCH])  # kernels are compiled, memory is taken
        began = time.perf_counter()
        found = tell(learner, images)
        seconds = time.perf_counter() - began
        row = {
            "what": "maps with own moments", "own": own, "seed": stream.seed, "images": len(images),
            **errors(found - theta.cpu()), "images_a_second": len(images) / seconds,
        }  # fmt: skip
        print(json.dumps(row), flush=True)
        yield row


def tell(learner: Any, images: Tensor) -> Tensor:
    """All maps, on the CPU."""
    return torch.cat([learner.theta(part) for part in images.split(BATCH)]).cpu()


def errors(off: Tensor) -> dict[str, float]:
    """Mean squared errors of the entries of maps, over images."""
    each = off.square().mean((1, 2)).double()
    order = each.sort().values
    return {
        "mean": float(each.mean()),
        "median": float(order[len(order) // 2]),
        "worst_in_a_thousand": float(order[-max(1, len(order) // 1000)]),
        "worst": float(order[-1]),
        "off_by_0.05": int((off.abs().amax((1, 2)) > 0.05).sum()),
    }


if __name__ == "__main__":
    main()
