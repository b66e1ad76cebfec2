"""What nearest exemplars can name when maps are a little off, and what fitting them adds; no net, no GPU.

    python benchmarks/fit.py --out results [--classes 1000] [--questions 1000]

True maps get independent normal errors on each entry. Images and exemplars have soft edges, or hard ones as
the original package draws. Rows go to OUT/fit.jsonl: accuracy on images of known classes, and the average
precision of telling images of unknown classes from them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from everlearn import Exemplars
from everlearn.core.provenance import provenance
from everlearn.evaluation.one_shot import (
    QueryBatch,
    add_exemplars,
    class_by_class,
    join,
    query_batches,
)
from everlearn.memory import SearchResult
from everlearn.methods.dcl import fit
from everlearn.metrics import average_precision
from everlearn.render.affine import transform_images
from everlearn.render.benchmark import write_rows
from everlearn.render.canvas import Canvas
from everlearn.stream import Stream
from everlearn.stream.named import STREAMS

CANDIDATES = 10
ERRORS = (0.0, 0.002, 0.005, 0.01, 0.02, 0.05)


def main() -> None:
    """Measure and write rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--questions", type=int, default=1000)
    asked = parser.parse_args()
    origin = provenance()
    rows = [
        {**row, **origin}
        for edges in ("soft", "hard")
        for row in measure(asked.classes, asked.questions, edges)
    ]
    write_rows(asked.out / "fit.jsonl", rows)


def measure(classes: int, questions: int, edges: str) -> Iterator[dict[str, Any]]:
    """Give a row for each error of maps, without fitting and with it."""
    stream = class_by_class(STREAMS["paper"]).with_changes(canvas=Canvas(parity=edges == "hard"))
    memory = Exemplars(stream.canvas.shape)
    add_exemplars(memory, stream, range(classes), "cpu")
    known = ask(stream, classes, questions)
    unknown = ask(stream.with_changes(first_class=classes), classes, questions)
    for error in ERRORS:
        maps = [
            part.theta + error * noise(part, place) for place, part in enumerate((known, unknown))
        ]
        for candidates in (0, CANDIDATES):
            near, far = (
                find(part, one, memory, candidates)
                for part, one in zip((known, unknown), maps, strict=True)
            )
            row = {
                "what": "nearest exemplars", "edges": edges, "classes": classes,
                "size": stream.canvas.size, "error_of_maps": error, "fitted": candidates,
                "questions": len(known.labels),
                "accuracy": float((near.labels[:, 0] == known.labels).float().mean()),
                "open_set_average_precision": average_precision(near.novelty, far.novelty),
            }  # fmt: skip
            print(json.dumps(row), flush=True)
            yield row


def ask(stream: Stream, classes: int, questions: int) -> QueryBatch:
    """Test images of the first classes of a stream, all at once."""
    return join(list(query_batches(stream, classes, questions, "cpu")))


def noise(part: QueryBatch, seed: int) -> torch.Tensor:
    """Normal numbers, one for each entry of each map."""
    drawn = np.random.default_rng(seed).standard_normal(tuple(part.theta.shape))
    return torch.from_numpy(drawn.astype(np.float32))


def find(part: QueryBatch, maps: torch.Tensor, memory: Exemplars, candidates: int) -> SearchResult:
    """The two nearest exemplars, or the two that fit best."""
    if not candidates:
        return memory.search(transform_images(part.images, maps), 2)
    return fit.match(part.images, maps, memory, 2, candidates)


if __name__ == "__main__":
    main()
