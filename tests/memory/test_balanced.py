"""A balanced choice keeps as many of each class, and any item of a class equally likely."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from everlearn.memory import Balanced

TASKS = st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=30), min_size=1, max_size=5)


def write(
    held: dict[int, tuple[int, int, int]], choice: Balanced, task: int, labels: list[int]
) -> None:
    """Do to a buffer what the choice says: slot to (label, task, item)."""
    items, slots = choice.admit(task, labels)
    assert len(set(slots.tolist())) == len(slots)
    used = set(choice.used.tolist())
    for slot in [slot for slot in held if slot not in used]:
        del held[slot]
    for item, slot in zip(items.tolist(), slots.tolist(), strict=True):
        held[slot] = (labels[item], task, item)


def kept_after(choice: Balanced, tasks: list[list[int]]) -> list[tuple[int, int, int]]:
    held: dict[int, tuple[int, int, int]] = {}
    for task, labels in enumerate(tasks):
        write(held, choice, task, labels)
    return list(held.values())


@given(tasks=TASKS, capacity=st.integers(1, 40), seed=st.integers(0, 99))
def test_what_is_in_the_slots_is_what_the_choice_believes(
    tasks: list[list[int]], capacity: int, seed: int
) -> None:
    choice, held = Balanced(capacity, seed), {}
    for task, labels in enumerate(tasks):
        write(held, choice, task, labels)
        assert len(held) <= capacity
        assert sorted(held) == choice.used.tolist()
        told = choice.state()["labels"].tolist()
        assert all(told[slot] == label for slot, (label, _, _) in held.items())


@given(tasks=TASKS, capacity=st.integers(1, 40), seed=st.integers(0, 99))
def test_each_class_has_its_share_or_all_it_ever_had(
    tasks: list[list[int]], capacity: int, seed: int
) -> None:
    kept = Counter(label for label, _, _ in kept_after(Balanced(capacity, seed), tasks))
    came = Counter(label for labels in tasks for label in labels)
    if len(came) > capacity:
        assert sorted(kept.values()) == [1] * capacity
        return
    share, rest = divmod(capacity, len(came))
    for label, count in came.items():
        assert min(count, share) <= kept[label] <= min(count, share + 1)
    over = sum(kept[label] > share for label in came)
    assert over == min(rest, sum(count > share for count in came.values()))


def test_every_item_of_a_class_is_kept_equally_often_also_when_it_comes_back() -> None:
    tasks = [[0] * 6 + [1] * 20, [2] * 10, [0] * 14 + [3] * 3]
    runs, kept = 1_000, Counter()
    for seed in range(runs):
        kept.update(item for item in kept_after(Balanced(16, seed), tasks) if item[0] == 0)
    assert sum(kept.values()) == 4 * runs
    # 4 of 20 items: 0.2, and a standard deviation of 0.013.
    rates = (
        np.array([kept[0, task, item] for task, n in ((0, 6), (2, 14)) for item in range(n)]) / runs
    )
    assert np.abs(rates - 0.2).max() < 0.055


def test_where_classes_outnumber_the_slots_each_class_is_kept_equally_often() -> None:
    tasks = [[2 * task] * 5 + [2 * task + 1] * 5 for task in range(5)]
    runs, kept = 500, Counter()
    for seed in range(runs):
        kept.update(label for label, _, _ in kept_after(Balanced(4, seed), tasks))
    # 4 of 10 classes: 0.4, and a standard deviation of 0.022.
    assert np.abs(np.array([kept[label] for label in range(10)]) / runs - 0.4).max() < 0.09


def test_a_loaded_state_goes_on_as_before() -> None:
    whole, first, second = (Balanced(7, seed=3) for _ in range(3))
    for choice in (whole, first):
        choice.admit(0, [4] * 9 + [1] * 9)
    second.load_state(first.state())
    for one, other in zip(whole.admit(1, [1, 2, 2]), second.admit(1, [1, 2, 2]), strict=True):
        assert (one == other).all()
    assert (whole.used == second.used).all()
