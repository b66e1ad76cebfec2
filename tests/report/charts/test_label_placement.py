"""Labels of dots do not overlap and stay inside the plot."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from everlearn.report.charts.label_placement import Box, place_labels

pytestmark = pytest.mark.integration

PLOT = (560.0, 336.0)
PLACES = some.tuples(some.floats(20, 540), some.floats(20, 316))


@pytest.mark.slow
@given(some.lists(PLACES, min_size=1, max_size=18), some.integers(20, 120))
def test_labels_cover_neither_labels_nor_dots_and_stay_inside(places, width):
    labels = place_labels(np.array(places), [width] * len(places), 16, PLOT)
    if labels is None:
        return
    boxes = [label.box for label in labels]
    assert not any(first.overlaps(second) for first, second in combinations(boxes, 2))
    for box in boxes:
        assert not any(box.overlaps(Box(x - 6, y - 6, 12, 12)) for x, y in places)
        assert min(box.left, box.bottom) >= 0
        assert box.left + box.width <= PLOT[0]
        assert box.bottom + box.height <= PLOT[1]


@pytest.mark.parametrize("seed", range(8))
def test_15_labels_of_usual_length_are_placed(seed):
    random = np.random.default_rng(seed)
    places = random.uniform((30, 20), (530, 316), (15, 2))
    assert place_labels(places, random.uniform(30, 110, 15).tolist(), 16, PLOT) is not None


def test_a_single_label_stands_to_the_right_of_its_dot():
    (label,) = place_labels(np.array([[100.0, 100.0]]), [50], 16, PLOT) or []
    assert label.box == (110, 92, 50, 16)
    assert label.leader is None


def test_a_distant_label_has_a_leader_line():
    row = np.array([[280.0 + 13 * k, 160.0] for k in range(6)])
    labels = place_labels(row, [100] * 6, 16, PLOT) or []
    assert any(label.leader for label in labels)
    for (x, y), label in zip(row.tolist(), labels, strict=True):
        assert label.leader is None or label.leader[0] == (x, y)


def test_a_label_wider_than_the_plot_is_not_placed():
    assert place_labels(np.array([[100.0, 100.0]]), [600], 16, PLOT) is None
