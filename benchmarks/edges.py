"""One-shot accuracy on images with soft and hard edges, at poses of the grid and between, with its ceiling.

    python benchmarks/edges.py --out results RUN
    python benchmarks/edges.py --out results "dcl-plus --edge-jitter 0" --train soft --tasks 100

A learner is read from the folder of a run, or learns some tasks of the preset first, drawn with soft
(anti-aliased) or hard edges (as the original package draws). Images and exemplars of the new classes have
the same edges. `ceiling` counts what the nearest exemplar under the true map gets right, `true_map_fitted`
what exemplars fitted from the true map do. Rows are added to OUT/edges.jsonl.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from everlearn import Stream, build
from everlearn.cli.method_options import parse_methods
from everlearn.core.jsonl import read_json_lines
from everlearn.core.provenance import provenance
from everlearn.evaluation.one_shot import (
    FACTORS,
    QueryBatch,
    add_exemplars,
    new_classes,
    query_batches,
)
from everlearn.memory import Exemplars
from everlearn.methods.dcl import DCL, fit
from everlearn.render.affine import transform_images
from everlearn.render.benchmark import write_rows
from everlearn.runs import Run
from everlearn.runs.launch import load_learner
from everlearn.runs.presets import PRESETS
from everlearn.stream import read_stream
from everlearn.training.device import find_device, gpu_name

EDGES = {"soft": False, "hard": True}  # Canvas.parity
CANDIDATES = 10


def main() -> None:
    """Read or train a learner and measure it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("learner", help="folder of a run, or a method with settings, in quotes")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--train", choices=EDGES, default="soft", help="edges in training")
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--images", type=int, default=10_000)
    options = parser.parse_args()
    stream, learner = find_learner(options)
    path = options.out / "edges.jsonl"
    origin = {
        "learner": options.learner,
        "trained_on": "hard" if stream.canvas.parity else "soft",
        "tasks": learner.average.tasks,
        "seed": stream.seed,
        "size": stream.canvas.size,
        **provenance(gpu_name(find_device(options.device))),
    }
    rows = [row | origin for row in measure(stream, learner, options.classes, options.images)]
    write_rows(path, [*read_json_lines(path), *rows])


def find_learner(options: argparse.Namespace) -> tuple[Stream, DCL]:
    """Return a learner and the stream that it learned."""
    device = find_device(options.device)
    if Path(options.learner).is_dir():
        stream = read_stream(Run.open(options.learner).stream)
        learner = load_learner(options.learner, device)
    else:
        [(method, changes)] = parse_methods(options.learner.split()).items()
        preset = PRESETS[options.preset]
        stream = preset.stream.with_changes(seed=options.seed, tasks=options.tasks)
        stream = with_edges(check_sprites(stream), options.train)
        learner = train(
            stream, build(method, stream, device, **preset.settings_of(method) | changes)
        )
    if not isinstance(learner, DCL):
        raise SystemExit(f"only dcl and dcl-plus predict maps, found {options.learner}")
    return check_sprites(stream), learner


def train(stream: Stream, learner: Any) -> Any:
    """Learn all tasks of a stream."""
    for task in stream:
        for _ in learner.learn(task):
            pass
    return learner


def check_sprites(stream: Any) -> Stream:
    """Return a stream of sprites; refuse any other."""
    if not isinstance(stream, Stream):
        raise SystemExit(f"only sprites have soft or hard edges, found {stream!r}")
    return stream


def with_edges(stream: Stream, edges: str) -> Stream:
    """Return the stream drawn with soft or hard edges."""
    return stream.with_changes(canvas=replace(stream.canvas, parity=EDGES[edges]))


def measure(stream: Stream, learner: DCL, classes: int, images: int) -> Iterator[dict[str, Any]]:
    """Yield a row for the edges and the factors of the new images."""
    for edges in EDGES:
        for factors in FACTORS:
            new = new_classes(with_edges(stream, edges), learner, factors)
            memory = learner.memory.empty()
            labels = range(new.first_class, new.first_class + classes)
            add_exemplars(memory, new, labels, learner.device)
            batches = list(query_batches(new, classes, images, learner.device))
            row = {
                "what": "one shot by edges", "edges": edges, "factors": factors, "classes": classes,
                "total": sum(len(batch.labels) for batch in batches),
                **count_correct(learner, memory, batches),
                **map_errors(learner, batches),
            }  # fmt: skip
            print(json.dumps(row), flush=True)
            yield row


def count_correct(learner: DCL, memory: Exemplars, batches: list[QueryBatch]) -> dict[str, int]:
    """Count correct answers of the learner, and of true maps with and without fitting."""
    counts = {"correct": 0, "ceiling": 0, "true_map_fitted": 0}
    for images, labels, theta in batches:
        answers = {
            "correct": learner.match(images, memory, 1),
            "ceiling": memory.search(transform_images(images, theta), 1),
            "true_map_fitted": fit.match(images, theta, memory, 1, CANDIDATES),
        }
        for name, found in answers.items():
            counts[name] += int((found.labels[:, 0] == labels).sum())
    return counts


def map_errors(learner: DCL, batches: list[QueryBatch]) -> dict[str, float]:
    """Return the root mean squared error of the entries of maps, and its median over images."""
    errors = [squared_errors(learner.theta(batch.images), batch.theta) for batch in batches]
    each = torch.cat(errors).double()
    return {"theta_rmse": float(each.mean().sqrt()), "theta_median": float(each.median().sqrt())}


def squared_errors(found: Tensor, theta: Tensor) -> Tensor:
    """Return the mean squared error of each map, (B,)."""
    return (found - theta).square().mean((1, 2))


if __name__ == "__main__":
    main()
