"""Errors of predicted affine maps, and speed, by the weight of instance statistics in normalisation.

    python benchmarks/instance_stats.py RUN --out results [--tasks 500]

Images are of the validation split, which is used neither in training nor in tests. Rows are written to
OUT/instance_stats.jsonl.
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

from everlearn.core.provenance import provenance
from everlearn.nets.layers.norm import use_instance_stats
from everlearn.render.benchmark import gpu_name, write_rows
from everlearn.runs import Run
from everlearn.runs.launch import load_learner
from everlearn.stream import read_stream

WEIGHTS = (0.0, 1 / 4096, 1 / 2048, 0.001, 1 / 512, 1 / 256, 1 / 64)
BATCH = 500


def main() -> None:
    """Measure and write rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--tasks", type=int, default=500)
    options = parser.parse_args()
    origin = provenance(gpu_name())
    rows = [{**row, **origin} for row in measure(options.run, options.tasks)]
    write_rows(options.out / "instance_stats.jsonl", rows)


def measure(folder: Path, tasks: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each weight."""
    learner: Any = load_learner(folder)
    stream: Any = read_stream(Run.open(folder).stream)
    drawn = [stream[index].val.batch(slice(None), learner.device) for index in range(tasks)]
    images = torch.cat([batch.images for batch in drawn])
    theta = torch.cat([batch.theta for batch in drawn])
    for weight in WEIGHTS:
        use_instance_stats(learner.averaged_net, weight)
        predict_theta(learner, images[:BATCH])  # kernels are compiled, memory is taken
        began = time.perf_counter()
        found = predict_theta(learner, images)
        seconds = time.perf_counter() - began
        row = {
            "what": "maps with instance statistics", "instance_stats": weight, "seed": stream.seed,
            "images": len(images), **errors(found - theta.cpu()),
            "images_per_second": len(images) / seconds,
        }  # fmt: skip
        print(json.dumps(row), flush=True)
        yield row


def predict_theta(learner: Any, images: Tensor) -> Tensor:
    """Return all predicted maps, on the CPU."""
    return torch.cat([learner.theta(part) for part in images.split(BATCH)]).cpu()


def errors(difference: Tensor) -> dict[str, float]:
    """Mean squared errors of the entries of maps, over images."""
    each = difference.square().mean((1, 2)).double()
    order = each.sort().values
    return {
        "mean": float(each.mean()),
        "median": float(order[len(order) // 2]),
        "worst_in_a_thousand": float(order[-max(1, len(order) // 1000)]),
        "worst": float(order[-1]),
        "off_by_0.05": int((difference.abs().amax((1, 2)) > 0.05).sum()),
    }


if __name__ == "__main__":
    main()
