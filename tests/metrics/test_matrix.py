"""The task matrix: building it from rows, and pooling it."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everlearn.metrics import curve, table


def _test(learned: int, tested: int, correct: int, total: int = 10) -> dict:
    return {
        "kind": "test",
        "step": 0,
        "learned": learned,
        "tested": tested,
        "correct": correct,
        "total": total,
    }


COUNTS = st.tuples(st.integers(-1, 6), st.integers(0, 6), st.integers(0, 9), st.integers(9, 12))


def test_entries_stand_at_their_tasks_and_others_are_nan():
    made = table([_test(9, 3, 7), _test(-1, 0, 1), _test(9, 0, 5), _test(4, 3, 0, 0)])
    assert made.learned.tolist() == [-1, 4, 9]
    assert made.tested.tolist() == [0, 3]
    assert made.correct.tolist() == [[1, 0], [0, 0], [5, 7]]
    assert made.total.tolist() == [[10, 0], [0, 0], [10, 10]]
    np.testing.assert_array_equal(made.accuracy, [[0.1, np.nan], [np.nan] * 2, [0.5, 0.7]])


def test_a_later_row_replaces_an_earlier_one_and_other_kinds_are_left_out():
    probe = {**_test(0, 0, 9), "kind": "probe"}
    made = table([_test(0, 0, 1), _test(0, 0, 4, 8), probe])
    assert (made.correct.item(), made.total.item()) == (4, 8)


@given(st.lists(COUNTS))
def test_the_table_holds_what_a_dictionary_holds(counts):
    made = table([_test(*count) for count in counts])
    last = {(learned, tested): (correct, total) for learned, tested, correct, total in counts}
    held = {
        (learned, tested): (made.correct[i, j], made.total[i, j])
        for i, learned in enumerate(made.learned.tolist())
        for j, tested in enumerate(made.tested.tolist())
        if made.total[i, j]
    }
    assert held == last


def test_more_correct_answers_than_images_are_refused():
    with pytest.raises(ValueError, match="found 11 of 10"):
        _ = table([_test(0, 0, 11)]).accuracy


def test_the_curve_pools_the_tasks_learned_so_far():
    rows = [_test(-1, 0, 1), _test(0, 0, 8), _test(0, 1, 9), _test(1, 0, 1, 2), _test(1, 1, 9)]
    found = curve(rows)
    assert found.learned.tolist() == [0, 1]
    assert found.correct.tolist() == [8, 10]
    assert found.total.tolist() == [10, 12]
    np.testing.assert_allclose(found.accuracy, [0.8, (0.5 + 0.9) / 2])


def test_an_empty_task_keeps_its_place_on_the_curve():
    found = curve([_test(0, 0, 0, 0), _test(1, 0, 0, 0), _test(1, 1, 5)])
    assert found.learned.tolist() == [0, 1]
    np.testing.assert_array_equal(found.accuracy, [np.nan, 0.5])


def test_no_rows_give_an_empty_curve():
    assert len(curve([]).learned) == 0


def test_a_matrix_of_500_tasks_is_built_in_under_a_second():
    rows = [_test(learned, tested, 3) for learned in range(500) for tested in range(learned + 1)]
    start = time.process_time()
    found = curve(rows)
    assert time.process_time() - start < 1
    assert found.total.tolist() == [10 * (n + 1) for n in range(500)]
