"""A reservoir keeps every item of a sequence with equal probability."""

from __future__ import annotations

import numpy as np
import pytest

from everlearn.core.random import Purpose, uniform
from everlearn.memory import Reservoir
from everlearn.memory.reservoir import last_per_slot


def kept_after(reservoir: Reservoir, tasks: list[int]) -> dict[int, tuple[int, int]]:
    """Return the content of each slot, (task, item), after tasks with these numbers of items."""
    buffer = {}
    for task, count in enumerate(tasks):
        items, slots = reservoir.insert(task, np.zeros(count))
        buffer |= {
            slot: (task, item) for item, slot in zip(items.tolist(), slots.tolist(), strict=True)
        }
    return buffer


def algorithm_r(capacity: int, seed: int, tasks: list[int]) -> dict[int, tuple[int, int]]:
    """Insert one item after another, as in Vitter 1985."""
    buffer = {}
    number = 0
    for task, count in enumerate(tasks):
        for item in range(count):
            number += 1
            u = float(uniform(seed, Purpose.MEMORY, task, item)[0])
            slot = number - 1 if number <= capacity else int(u * number)
            if slot < capacity:
                buffer[slot] = (task, item)
    return buffer


@pytest.mark.slow
def test_every_tenth_of_the_sequence_is_kept_equally_often() -> None:
    kept = np.zeros(10_000)
    for seed in range(2_000):
        reservoir = Reservoir(100, seed)
        for task, item in kept_after(reservoir, [4_000, 6_000]).values():
            kept[4_000 * task + item] += 1
    assert np.abs(kept.reshape(10, -1).mean(1) / 2_000 - 0.01).max() <= 0.001


@pytest.mark.parametrize("tasks", [[3], [5, 5], [40, 1, 300, 7]])
def test_insertions_agree_with_algorithm_r(tasks: list[int]) -> None:
    for seed in range(5):
        assert kept_after(Reservoir(8, seed), tasks) == algorithm_r(8, seed, tasks)


def test_slots_are_filled_in_order_up_to_the_capacity() -> None:
    reservoir = Reservoir(8, seed=0)
    assert len(reservoir.used) == 0
    assert reservoir.insert(0, np.zeros(5)).slots.tolist() == [0, 1, 2, 3, 4]
    assert reservoir.used.tolist() == [0, 1, 2, 3, 4]
    reservoir.insert(1, np.zeros(500))
    assert reservoir.used.tolist() == list(range(8))


def test_the_last_item_of_a_slot_stays() -> None:
    items, slots = last_per_slot(np.array([0, 1, 4, 0, 2, 4, 1]), capacity=4)
    assert dict(zip(slots.tolist(), items.tolist(), strict=True)) == {0: 3, 1: 6, 2: 4}


def test_slots_does_not_change_the_reservoir() -> None:
    reservoir = Reservoir(3, seed=1)
    first = reservoir.slots(0, 50)
    assert (reservoir.slots(0, 50) == first).all()
    assert first.max() == 3  # discarded
    assert len(reservoir.used) == 0


def test_a_loaded_state_continues_as_before() -> None:
    uninterrupted, first, second = (Reservoir(8, seed=2) for _ in range(3))
    for reservoir in (uninterrupted, first):
        reservoir.insert(0, np.zeros(50))
    second.load_state(first.state())
    for one, other in zip(
        uninterrupted.insert(1, np.zeros(60)), second.insert(1, np.zeros(60)), strict=True
    ):
        assert (one == other).all()
