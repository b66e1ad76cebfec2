"""The greedy sampler gives room to the classes that have least of it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everlearn.memory.greedy import Greedy
from everlearn.philox import Purpose, uniform

TASKS = st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=30), min_size=1, max_size=5)


def kept_after(choice: Greedy, tasks: list[list[int]]) -> list[tuple[int, int, int]]:
    """Write what the choice says into slots; return (label, task, item) of each."""
    held: dict[int, tuple[int, int, int]] = {}
    for task, labels in enumerate(tasks):
        items, slots = choice.admit(task, labels)
        for item, slot in zip(items.tolist(), slots.tolist(), strict=True):
            held[slot] = (labels[item], task, item)
        assert sorted(held) == choice.used.tolist()
    return list(held.values())


def algorithm_1(capacity: int, seed: int, tasks: list[list[int]]) -> list[tuple[int, int, int]]:
    """The paper's, counting everything anew for each item."""
    met: list[int] = []
    held: list[tuple[int, int, int]] = []
    for task, labels in enumerate(tasks):
        for item, label in enumerate(labels):
            which_class, which_item = uniform(seed, Purpose.MEMORY, task, item, count=2)
            counts = Counter(kept for kept, _, _ in held)
            if label not in met or counts[label] < capacity / len(met):
                met += [] if label in met else [label]
                if len(held) < capacity:
                    held.append((label, task, item))
                    continue
                largest = [one for one in met if counts[one] == max(counts.values())]
                leaving = largest[int(which_class * len(largest))]
                slots = [slot for slot, kept in enumerate(held) if kept[0] == leaving]
                held[slots[int(which_item * len(slots))]] = (label, task, item)
    return held


@given(tasks=TASKS, capacity=st.integers(1, 40), seed=st.integers(0, 99))
def test_it_is_the_algorithm_of_the_paper(tasks: list[list[int]], capacity: int, seed: int) -> None:
    kept = kept_after(Greedy(capacity, seed), tasks)
    assert sorted(kept) == sorted(algorithm_1(capacity, seed, tasks))


@given(tasks=TASKS, capacity=st.integers(1, 40), seed=st.integers(0, 99))
def test_no_room_is_left_empty_that_an_item_was_offered_for(
    tasks: list[list[int]], capacity: int, seed: int
) -> None:
    kept = kept_after(Greedy(capacity, seed), tasks)
    assert len(set(kept)) == len(kept) <= capacity
    if len({label for labels in tasks for label in labels}) == 1:
        assert len(kept) == min(capacity, sum(len(labels) for labels in tasks))


def test_a_class_alone_fills_the_room_and_gives_way_to_the_next() -> None:
    choice = Greedy(10, seed=0)
    assert len(kept_after(choice, [[0] * 30])) == 10
    choice.admit(1, [1] * 3)
    held = choice.state()["held"].tolist()
    assert Counter(held) == {0: 7, 1: 3}
    choice.admit(2, [1] * 30)
    assert Counter(choice.state()["held"].tolist()) == {0: 5, 1: 5}


def test_the_first_items_of_a_class_enter_and_later_ones_do_not() -> None:
    kept = kept_after(Greedy(8, seed=0), [[0, 1] * 10])
    assert {item for _, _, item in kept} == set(range(8))


@pytest.mark.parametrize("capacity", [4, 40])
def test_items_leave_at_random(capacity: int) -> None:
    runs, kept = 400, Counter()
    for seed in range(runs):
        tasks = [[0] * capacity, [1] * capacity]
        kept.update(
            item for label, _, item in kept_after(Greedy(capacity, seed), tasks) if label == 0
        )
    # Half of them stay; a standard deviation of 0.025.
    assert np.abs(np.array([kept[item] for item in range(capacity)]) / runs - 0.5).max() < 0.1


def test_where_classes_outnumber_the_slots_each_slot_holds_another_class() -> None:
    runs, kept = 400, Counter()
    for seed in range(runs):
        held = kept_after(Greedy(4, seed), [[0, 1, 2, 3, 4, 5], [6, 7]])
        assert len({label for label, _, _ in held}) == 4
        kept.update(label for label, _, _ in held)
    assert kept[7] == runs  # the last to come always enters
    # A class enters and may leave whenever a later one comes: (3/4)^n for n later ones at least 4 in.
    for label in range(4):
        assert abs(kept[label] / runs - 0.75**4) < 0.1


def test_a_loaded_state_goes_on_as_before() -> None:
    whole, first, second = (Greedy(7, seed=3) for _ in range(3))
    for choice in (whole, first):
        choice.admit(0, [4, 1] * 9)
    second.load_state(first.state())
    for one, other in zip(whole.admit(1, [1, 2, 2, 5]), second.admit(1, [1, 2, 2, 5]), strict=True):
        assert (one == other).all()
    assert (whole.used == second.used).all()
