"""Names of dots keep apart and stay in the picture."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from everlearn.report.chart.room import Box, find_room

pytestmark = pytest.mark.slow

PICTURE = (560.0, 336.0)
PLACES = some.tuples(some.floats(20, 540), some.floats(20, 316))


@given(some.lists(PLACES, min_size=1, max_size=18), some.integers(20, 120))
def test_names_cover_neither_names_nor_dots_and_stay_inside(places, width):
    names = find_room(np.array(places), [width] * len(places), 16, PICTURE)
    if names is None:
        return
    boxes = [name.box for name in names]
    assert not any(one.meets(other) for one, other in combinations(boxes, 2))
    for box in boxes:
        assert not any(box.meets(Box(x - 6, y - 6, 12, 12)) for x, y in places)
        assert min(box.left, box.low) >= 0
        assert box.left + box.width <= PICTURE[0]
        assert box.low + box.height <= PICTURE[1]


@pytest.mark.parametrize("seed", range(8))
def test_15_dots_with_usual_names_have_room(seed):
    random = np.random.default_rng(seed)
    places = random.uniform((30, 20), (530, 316), (15, 2))
    assert find_room(places, random.uniform(30, 110, 15).tolist(), 16, PICTURE) is not None


def test_a_lonely_name_stands_right_beside_its_dot():
    (name,) = find_room(np.array([[100.0, 100.0]]), [50], 16, PICTURE) or []
    assert name.box == (110, 92, 50, 16)
    assert name.line is None


def test_a_name_that_must_go_away_is_led_to():
    row = np.array([[280.0 + 13 * k, 160.0] for k in range(6)])
    names = find_room(row, [100] * 6, 16, PICTURE) or []
    assert any(name.line for name in names)
    for (x, y), name in zip(row.tolist(), names, strict=True):
        assert name.line is None or name.line[0] == (x, y)


def test_too_wide_a_name_has_no_room():
    assert find_room(np.array([[100.0, 100.0]]), [600], 16, PICTURE) is None
