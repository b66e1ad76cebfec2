"""How well classes can be told apart: the ceilings measured for the specification."""

from __future__ import annotations

import numpy as np
import pytest

from everlearn import Canvas, ShapeStyle, Stream
from everlearn.stream.sprites.separability import count_equal_images, separability


@pytest.mark.slow
def test_the_true_map_finds_the_class_among_a_thousand():
    assert separability(Stream(), 1000, 300).ceiling >= 0.98


@pytest.mark.slow
def test_hard_edges_cost_accuracy_on_small_images():
    hard = separability(Stream(canvas=Canvas(size=32, parity=True)), 1000, 300).ceiling
    soft = separability(Stream(canvas=Canvas(size=32)), 1000, 300).ceiling
    assert hard == pytest.approx(0.59, abs=0.08)
    assert soft == pytest.approx(0.97, abs=0.03)


def test_min_distance_widens_the_gap_between_classes():
    plain = separability(Stream(), 64, 64).distances
    apart = separability(Stream(style=ShapeStyle(min_distance=0.15)), 64, 64).distances
    assert plain.min() < 0.15 <= apart.min()
    assert np.isfinite(plain).all()


@pytest.mark.parametrize("sizes", [(1, 10), (10, 0)])
def test_too_few_classes_or_images_are_refused(sizes):
    with pytest.raises(ValueError, match="separability needs"):
        separability(Stream(), *sizes)


def test_equal_images_are_those_that_a_search_through_all_pairs_finds():
    # Poses of a grid with an odd number of values have the canonical one among them.
    stream = Stream(
        tasks=2,
        classes_per_task=2,
        values_per_factor=3,
        canvas=Canvas(size=12),
        split=(0.2, 0.0, 0.8),
    )
    exemplars = [(task.exemplars().images, task.exemplars().labels) for task in stream]
    pairs = [
        (int(label) == int(known), bool((image == exemplar).all()))
        for task in stream
        for batch in [task.test.batch(slice(None))]
        for image, label in zip(batch.images, batch.labels, strict=True)
        for group in exemplars
        for exemplar, known in zip(*group, strict=True)
    ]
    found = count_equal_images(stream)
    assert found.same_class == sum(equal for own, equal in pairs if own)
    assert found.other_class == sum(equal for own, equal in pairs if not own)
    assert found.images == len(pairs) // 4
    assert found.same_class > 0
