"""The greedy balancing sampler gives slots to the classes with the fewest items."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everlearn.core.random import Purpose, uniform
from everlearn.memory.greedy_balanced import GreedyBalanced

TASKS = st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=30), min_size=1, max_size=5)


def kept_after(policy: GreedyBalanced, tasks: list[list[int]]) -> list[tuple[int, int, int]]:
    """Apply the insertions of the policy to a buffer; return (label, task, item) of each slot."""
    buffer: dict[int, tuple[int, int, int]] = {}
    for task, labels in enumerate(tasks):
        items, slots = policy.insert(task, labels)
        for item, slot in zip(items.tolist(), slots.tolist(), strict=True):
            buffer[slot] = (labels[item], task, item)
        assert sorted(buffer) == policy.used.tolist()
    return list(buffer.values())


def algorithm_1(capacity: int, seed: int, tasks: list[list[int]]) -> list[tuple[int, int, int]]:
    """Algorithm 1 of the paper, with all counts recomputed for every item."""
    seen: list[int] = []
    buffer: list[tuple[int, int, int]] = []
    for task, labels in enumerate(tasks):
        for item, label in enumerate(labels):
            class_u, item_u = uniform(seed, Purpose.MEMORY, task, item, count=2)
            counts = Counter(kept for kept, _, _ in buffer)
            if label not in seen or counts[label] < capacity / len(seen):
                seen += [] if label in seen else [label]
                if len(buffer) < capacity:
                    buffer.append((label, task, item))
                    continue
                largest = [label for label in seen if counts[label] == max(counts.values())]
                evicted = largest[int(class_u * len(largest))]
                slots = [slot for slot, kept in enumerate(buffer) if kept[0] == evicted]
                buffer[slots[int(item_u * len(slots))]] = (label, task, item)
    return buffer


@given(tasks=TASKS, capacity=st.integers(1, 40), seed=st.integers(0, 99))
def test_insertions_agree_with_the_algorithm_of_the_paper(
    tasks: list[list[int]], capacity: int, seed: int
) -> None:
    kept = kept_after(GreedyBalanced(capacity, seed), tasks)
    assert sorted(kept) == sorted(algorithm_1(capacity, seed, tasks))


@given(tasks=TASKS, capacity=st.integers(1, 40), seed=st.integers(0, 99))
def test_a_single_class_fills_the_buffer(tasks: list[list[int]], capacity: int, seed: int) -> None:
    kept = kept_after(GreedyBalanced(capacity, seed), tasks)
    assert len(set(kept)) == len(kept) <= capacity
    if len({label for labels in tasks for label in labels}) == 1:
        assert len(kept) == min(capacity, sum(len(labels) for labels in tasks))


def test_the_first_class_fills_the_buffer_and_makes_room_for_the_next() -> None:
    policy = GreedyBalanced(10, seed=0)
    assert len(kept_after(policy, [[0] * 30])) == 10
    policy.insert(1, [1] * 3)
    buffer = policy.state()["held"].tolist()
    assert Counter(buffer) == {0: 7, 1: 3}
    policy.insert(2, [1] * 30)
    assert Counter(policy.state()["held"].tolist()) == {0: 5, 1: 5}


def test_only_the_first_items_of_a_class_are_stored() -> None:
    kept = kept_after(GreedyBalanced(8, seed=0), [[0, 1] * 10])
    assert {item for _, _, item in kept} == set(range(8))


@pytest.mark.parametrize("capacity", [4, 40])
def test_items_are_evicted_at_random(capacity: int) -> None:
    runs, kept = 400, Counter()
    for seed in range(runs):
        tasks = [[0] * capacity, [1] * capacity]
        kept.update(
            item
            for label, _, item in kept_after(GreedyBalanced(capacity, seed), tasks)
            if label == 0
        )
    # Half of them stay; a standard deviation of 0.025.
    assert np.abs(np.array([kept[item] for item in range(capacity)]) / runs - 0.5).max() < 0.1


def test_with_more_classes_than_slots_each_slot_has_another_class() -> None:
    runs, kept = 400, Counter()
    for seed in range(runs):
        buffer = kept_after(GreedyBalanced(4, seed), [[0, 1, 2, 3, 4, 5], [6, 7]])
        assert len({label for label, _, _ in buffer}) == 4
        kept.update(label for label, _, _ in buffer)
    assert kept[7] == runs  # the last to come always enters
    # A class enters and may leave whenever a later one comes: (3/4)^n for n later ones at least 4 in.
    for label in range(4):
        assert abs(kept[label] / runs - 0.75**4) < 0.1


def test_a_loaded_state_continues_as_before() -> None:
    uninterrupted, first, second = (GreedyBalanced(7, seed=3) for _ in range(3))
    for policy in (uninterrupted, first):
        policy.insert(0, [4, 1] * 9)
    second.load_state(first.state())
    for one, other in zip(
        uninterrupted.insert(1, [1, 2, 2, 5]), second.insert(1, [1, 2, 2, 5]), strict=True
    ):
        assert (one == other).all()
    assert (uninterrupted.used == second.used).all()
