"""A reservoir keeps every item of a series equally likely."""

from __future__ import annotations

import numpy as np
import pytest

from everlearn.memory import Reservoir
from everlearn.memory.reservoir import last_of
from everlearn.philox import Purpose, uniform


def kept_after(reservoir: Reservoir, tasks: list[int]) -> dict[int, tuple[int, int]]:
    """What is in each slot after tasks of so many items, as (task, item)."""
    held = {}
    for task, count in enumerate(tasks):
        items, slots = reservoir.admit(task, np.zeros(count))
        held |= {
            slot: (task, item) for item, slot in zip(items.tolist(), slots.tolist(), strict=True)
        }
    return held


def algorithm_r(capacity: int, seed: int, tasks: list[int]) -> dict[int, tuple[int, int]]:
    """One item after another, as in Vitter 1985."""
    held, number = {}, 0
    for task, count in enumerate(tasks):
        for item in range(count):
            number += 1
            chance = float(uniform(seed, Purpose.MEMORY, task, item)[0])
            slot = number - 1 if number <= capacity else int(chance * number)
            if slot < capacity:
                held[slot] = (task, item)
    return held


@pytest.mark.slow
def test_b1_every_tenth_of_the_series_is_kept_equally_often() -> None:
    kept = np.zeros(10_000)
    for seed in range(2_000):
        reservoir = Reservoir(100, seed)
        for task, item in kept_after(reservoir, [4_000, 6_000]).values():
            kept[4_000 * task + item] += 1
    assert np.abs(kept.reshape(10, -1).mean(1) / 2_000 - 0.01).max() <= 0.001


@pytest.mark.parametrize("tasks", [[3], [5, 5], [40, 1, 300, 7]])
def test_it_is_algorithm_r(tasks: list[int]) -> None:
    for seed in range(5):
        assert kept_after(Reservoir(8, seed), tasks) == algorithm_r(8, seed, tasks)


def test_slots_are_filled_in_order_and_never_more_than_there_are() -> None:
    reservoir = Reservoir(8, seed=0)
    assert len(reservoir.used) == 0
    assert reservoir.admit(0, np.zeros(5)).slots.tolist() == [0, 1, 2, 3, 4]
    assert reservoir.used.tolist() == [0, 1, 2, 3, 4]
    reservoir.admit(1, np.zeros(500))
    assert reservoir.used.tolist() == list(range(8))


def test_what_comes_later_to_a_slot_stays() -> None:
    items, slots = last_of(np.array([0, 1, 4, 0, 2, 4, 1]), capacity=4)
    assert dict(zip(slots.tolist(), items.tolist(), strict=True)) == {0: 3, 1: 6, 2: 4}


def test_asking_for_slots_admits_nothing() -> None:
    reservoir = Reservoir(3, seed=1)
    first = reservoir.slots(0, 50)
    assert (reservoir.slots(0, 50) == first).all()
    assert first.max() == 3  # none
    assert len(reservoir.used) == 0


def test_a_loaded_state_goes_on_as_before() -> None:
    whole, first, second = (Reservoir(8, seed=2) for _ in range(3))
    for reservoir in (whole, first):
        reservoir.admit(0, np.zeros(50))
    second.load_state(first.state())
    for one, other in zip(whole.admit(1, np.zeros(60)), second.admit(1, np.zeros(60)), strict=True):
        assert (one == other).all()
