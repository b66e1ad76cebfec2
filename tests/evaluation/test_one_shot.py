"""What true maps reach in the one-shot test, against a search written out."""

import torch

from everlearn import Canvas, Stream
from everlearn.evaluation.one_shot import classes_after, one_shot_ceiling, query_batches
from everlearn.render.affine import transform_images

OLD = 8
NEW = 6


def nearest(stream, images, classes):
    """The class whose exemplar has the smallest sum of squared differences, for each image."""
    exemplars = stream.exemplars(classes).images.flatten(1)
    distances = ((images.flatten(1)[:, None] - exemplars) ** 2).sum(2)
    return torch.tensor(classes)[distances.argmin(1)]


def test_the_ceiling_is_the_nearest_exemplar_after_the_true_map():
    stream = Stream(tasks=2, classes_per_task=4, values_per_factor=3, canvas=Canvas(size=8))
    stream = stream.with_changes(split=(0.5, 0.0, 0.5), seed=3)
    for factors in ("grid", "continuous"):
        found = one_shot_ceiling(stream, "cpu", NEW, factors, max_images=400)
        new = classes_after(stream, OLD - 1, factors)
        (batch,) = query_batches(new, NEW, 400, "cpu")
        images = transform_images(batch.images, batch.theta)
        memories = {"standard": range(OLD, OLD + NEW), "generalised": range(OLD + NEW)}
        for row in found:
            classes = list(memories[row["mode"]])
            expected = int((nearest(new, images, classes) == batch.labels).sum())
            assert row["correct"] == expected
            assert row["total"] == len(batch.labels)
            assert (row["size"], row["factors"], row["classes"]) == (8, factors, NEW)
        by_mode = {row["mode"]: row["correct"] for row in found}
        assert by_mode["generalised"] <= by_mode["standard"] < len(batch.labels)
