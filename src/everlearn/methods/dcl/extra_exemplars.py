"""Several exemplars per class: beside the canonical image, training images brought to canonical pose."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from everlearn.memory import Exemplars, SearchResult
from everlearn.memory.search import nearest_first
from everlearn.methods.dcl.settings import MAX_EXEMPLARS
from everlearn.render.affine import transform_images
from everlearn.stream import Task

# Exemplar j of class c has the label MAX_EXEMPLARS * c + j.


def add_extra_exemplars(
    extra: Exemplars, task: Task, classes: Sequence[int], count: int, device: str
) -> None:
    """Store `count` training images of each new class, brought to canonical pose by their true maps."""
    for label in classes:
        if label * MAX_EXEMPLARS in extra:  # removed from the memory, and now learned again
            continue
        rows = np.flatnonzero(task.train.labels == label)
        chosen = rows[np.linspace(0, len(rows) - 1, min(count, len(rows))).round().astype(int)]
        batch = task.train.batch(chosen, device)
        assert batch.theta is not None  # checked before
        images = transform_images(batch.images, batch.theta).clamp(0, 1)
        extra.add([label * MAX_EXEMPLARS + place for place in range(len(chosen))], images)


def search_classes(
    memory: Exemplars, extra: Exemplars, per_class: int, queries: Tensor, k: int
) -> SearchResult:
    """Find the k nearest classes of a memory, each at the distance of its nearest exemplar.

    Args:
        extra: further exemplars; those of classes that the memory does not hold are left out.
        per_class: how many of them there are of a class, at most.
    """
    found = memory.search(queries, k)
    kept = extra.subset([label for label in extra.labels if label // MAX_EXEMPLARS in memory])
    if not len(kept):
        return found
    more = kept.search(queries, min(1000, (k - 1) * per_class + 1))
    classes = torch.where(more.labels < 0, -1, more.labels // MAX_EXEMPLARS)
    labels = torch.cat((found.labels, classes), 1)
    distances = torch.cat((found.distances, more.distances), 1)
    return nearest_first(_without_repeats(labels, distances), k)


def _without_repeats(labels: Tensor, distances: Tensor) -> SearchResult:
    """Put all but the nearest occurrence of a label at an infinite distance."""
    distances, order = distances.sort(dim=1, stable=True)
    labels = labels.gather(1, order)
    earlier = torch.ones(labels.shape[1], labels.shape[1], dtype=torch.bool).tril(-1)
    same = (labels[:, :, None] == labels[:, None, :]) & earlier.to(labels.device)
    repeated = same.any(2)
    return SearchResult(
        labels.masked_fill(repeated, -1), distances.masked_fill(repeated, torch.inf)
    )
