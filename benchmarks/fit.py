"""What the nearest exemplars classify when maps are a little off, and what fitting them adds; no net.

    python benchmarks/fit.py --out results [--seeds 10] [--images 1000] [--errors 0,0.01]

True maps get independent normal errors on each entry. Images and exemplars have soft edges, or hard ones as
the original package draws. Rows go to OUT/fit.jsonl: images of known classes classified correctly, and the
average precision of telling images of unknown classes from them. The edge contrast of fitting was chosen on
seeds 100 to 104:

    python benchmarks/fit.py --out results/tuning --seeds 100,101,102,103,104 --errors 0.01,0.02,0.05
        --edge-contrasts inf,0.2,0.15,0.12,0.1,0.05
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from itertools import product
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
from everlearn.experiments.framework.shared_trials import SEEDS
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--seeds", type=list_of(int), default=SEEDS[:1])
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--errors", type=list_of(float), default=ERRORS)
    parser.add_argument("--edge-contrasts", type=list_of(float), default=[fit.EDGE_CONTRAST])
    asked = parser.parse_args()
    origin = provenance()
    rows = []
    for seed, edges in product(asked.seeds, ("soft", "hard")):
        canvas = Canvas(parity=edges == "hard")
        stream = class_by_class(STREAMS["paper"]).with_changes(seed=seed, canvas=canvas)
        measured = measure(stream, asked.classes, asked.images, asked.errors, asked.edge_contrasts)
        for row in measured:
            rows.append({"what": "nearest exemplars", "seed": seed, "edges": edges, **row})
            print(json.dumps(rows[-1]), flush=True)
    write_rows(asked.out / "fit.jsonl", [{**row, **origin} for row in rows])


def list_of(kind: Callable[[str], float]) -> Callable[[str], list[float]]:
    """Return a parser of values with commas between."""
    return lambda text: [kind(part) for part in text.split(",")]


def measure(
    stream: Stream, classes: int, images: int, errors: list[float], edge_contrasts: list[float]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each error of maps, without fitting and with each edge contrast."""
    memory = Exemplars(stream.canvas.shape)
    add_exemplars(memory, stream, range(classes), "cpu")
    known = test_images(stream, classes, images)
    unknown = test_images(stream.with_changes(first_class=classes), classes, images)
    for error in errors:
        maps = [
            batch.theta + error * noise(batch, place)
            for place, batch in enumerate((known, unknown))
        ]
        for contrast in (None, *edge_contrasts):
            near, far = (
                find(batch, theta, memory, contrast)
                for batch, theta in zip((known, unknown), maps, strict=True)
            )
            yield {
                "classes": classes, "size": stream.canvas.size, "error_of_maps": error,
                "fitted": CANDIDATES if contrast else 0,
                "edge_contrast": str(contrast) if contrast == np.inf else contrast,
                "correct": int((near.labels[:, 0] == known.labels).sum()),
                "total": len(known.labels),
                "open_set_average_precision": average_precision(near.novelty, far.novelty),
            }  # fmt: skip


def test_images(stream: Stream, classes: int, images: int) -> QueryBatch:
    """Return test images of the first classes of a stream, all at once."""
    return join(list(query_batches(stream, classes, images, "cpu")))


def noise(batch: QueryBatch, seed: int) -> torch.Tensor:
    """Return normal numbers, one for each entry of each map."""
    drawn = np.random.default_rng(seed).standard_normal(tuple(batch.theta.shape))
    return torch.from_numpy(drawn.astype(np.float32))


def find(
    batch: QueryBatch, maps: torch.Tensor, memory: Exemplars, contrast: float | None
) -> SearchResult:
    """Return the two nearest exemplars, or the two that fit best with an edge contrast."""
    if contrast is None:
        return memory.search(transform_images(batch.images, maps), 2)
    return fit.match(batch.images, maps, memory, 2, CANDIDATES, contrast)


if __name__ == "__main__":
    main()
