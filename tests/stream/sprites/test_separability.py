"""How well classes can be told apart: the ceilings measured for the specification."""

from __future__ import annotations

import numpy as np
import pytest

from everlearn import Canvas, ShapeStyle, Stream
from everlearn.stream.sprites.separability import separability


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
