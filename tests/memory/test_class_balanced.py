"""The class-balanced policy keeps equally many items per class, each item equally likely."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from everlearn.memory import ClassBalanced

TASKS = st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=30), min_size=1, max_size=5)


def write(
    buffer: dict[int, tuple[int, int, int]], policy: ClassBalanced, task: int, labels: list[int]
) -> None:
    """Apply the insertions of the policy to a buffer: slot to (label, task, item)."""
    items, slots = policy.insert(task, labels)
    assert len(set(slots.tolist())) == len(slots)
    used = set(policy.used.tolist())
    for slot in [slot for slot in buffer if slot not in used]:
        del buffer[slot]
    for item, slot in zip(items.tolist(), slots.tolist(), strict=True):
        buffer[slot] = (labels[item], task, item)


def kept_after(policy: ClassBalanced, tasks: list[list[int]]) -> list[tuple[int, int, int]]:
    buffer: dict[int, tuple[int, int, int]] = {}
    for task, labels in enumerate(tasks):
        write(buffer, policy, task, labels)
    return list(buffer.values())


@given(tasks=TASKS, capacity=st.integers(1, 40), seed=st.integers(0, 99))
def test_the_state_describes_the_content_of_the_buffer(
    tasks: list[list[int]], capacity: int, seed: int
) -> None:
    policy, buffer = ClassBalanced(capacity, seed), {}
    for task, labels in enumerate(tasks):
        write(buffer, policy, task, labels)
        assert len(buffer) <= capacity
        assert sorted(buffer) == policy.used.tolist()
        labels_of_slots = policy.state()["labels"].tolist()
        assert all(labels_of_slots[slot] == label for slot, (label, _, _) in buffer.items())


@given(tasks=TASKS, capacity=st.integers(1, 40), seed=st.integers(0, 99))
def test_each_class_keeps_its_share_or_all_its_items(
    tasks: list[list[int]], capacity: int, seed: int
) -> None:
    kept = Counter(label for label, _, _ in kept_after(ClassBalanced(capacity, seed), tasks))
    seen = Counter(label for labels in tasks for label in labels)
    if len(seen) > capacity:
        assert sorted(kept.values()) == [1] * capacity
        return
    share, rest = divmod(capacity, len(seen))
    for label, count in seen.items():
        assert min(count, share) <= kept[label] <= min(count, share + 1)
    over = sum(kept[label] > share for label in seen)
    assert over == min(rest, sum(count > share for count in seen.values()))


def test_items_of_a_recurring_class_are_kept_equally_often() -> None:
    tasks = [[0] * 6 + [1] * 20, [2] * 10, [0] * 14 + [3] * 3]
    runs, kept = 1_000, Counter()
    for seed in range(runs):
        kept.update(item for item in kept_after(ClassBalanced(16, seed), tasks) if item[0] == 0)
    assert sum(kept.values()) == 4 * runs
    # 4 of 20 items: 0.2, and a standard deviation of 0.013.
    rates = (
        np.array([kept[0, task, item] for task, n in ((0, 6), (2, 14)) for item in range(n)]) / runs
    )
    assert np.abs(rates - 0.2).max() < 0.055


def test_with_more_classes_than_slots_classes_are_kept_equally_often() -> None:
    tasks = [[2 * task] * 5 + [2 * task + 1] * 5 for task in range(5)]
    runs, kept = 500, Counter()
    for seed in range(runs):
        kept.update(label for label, _, _ in kept_after(ClassBalanced(4, seed), tasks))
    # 4 of 10 classes: 0.4, and a standard deviation of 0.022.
    assert np.abs(np.array([kept[label] for label in range(10)]) / runs - 0.4).max() < 0.09


def test_a_loaded_state_continues_as_before() -> None:
    uninterrupted, first, second = (ClassBalanced(7, seed=3) for _ in range(3))
    for policy in (uninterrupted, first):
        policy.insert(0, [4] * 9 + [1] * 9)
    second.load_state(first.state())
    for one, other in zip(
        uninterrupted.insert(1, [1, 2, 2]), second.insert(1, [1, 2, 2]), strict=True
    ):
        assert (one == other).all()
    assert (uninterrupted.used == second.used).all()
