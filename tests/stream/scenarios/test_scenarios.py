"""Scenarios: each keeps its definition, on many seeds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from everlearn import Canvas, Stream
from everlearn.stream.scenarios.blurry import Blurry, _random_runs, blurry_homes, blurry_tasks
from everlearn.stream.scenarios.incremental import (
    SCENARIOS,
    DomainIncremental,
    NewInstancesAndClasses,
    Recurring,
    find_scenario,
)
from everlearn.stream.scenarios.scenario import ScenarioContext

SEEDS = range(100)


def _labels(name: str, seed: int, tasks: int, classes: int = 4, **settings) -> list[set[int]]:
    scenario = find_scenario(name, settings)
    context = ScenarioContext(seed, tasks, classes, 0)
    return [{a.label for a in scenario.arrivals(context, t)} for t in range(tasks)]


@pytest.mark.parametrize("seed", SEEDS)
def test_class_incremental_never_repeats_a_class(seed):
    seen: set[int] = set()
    for labels in _labels("nc", seed, 8):
        assert not labels & seen
        seen |= labels


@pytest.mark.parametrize("seed", SEEDS)
def test_domain_incremental_brings_no_new_class(seed):
    first, *later = _labels("ni", seed, 8)
    assert all(labels <= first for labels in later)


@pytest.mark.parametrize("seed", SEEDS)
def test_nic_repeats_old_classes_and_adds_new_ones(seed):
    first, *later = _labels("nic", seed, 40, classes=10)
    seen = set(first)
    repeats = False
    for labels in later:
        repeats |= bool(labels & seen)
        seen |= labels
    assert repeats
    assert seen - first


def test_nic_has_391_tasks_and_shows_every_session_once():
    scenario = NewInstancesAndClasses()
    assert scenario.length == 391
    context = ScenarioContext(0, 391, 10, 0)
    tasks = [scenario.arrivals(context, t) for t in range(391)]
    assert len({a.label for a in tasks[0]}) == 10
    assert all(len(task) == 1 for task in tasks[1:])
    pairs = [pair for task in tasks for pair in task]
    assert len(set(pairs)) == len(pairs) == 400


def test_bands_of_a_domain_do_not_overlap():
    stream = Stream(tasks=4, scenario=DomainIncremental("scale", 4), canvas=Canvas(size=16))
    ends = [(t.train.factors.scale.min(), t.train.factors.scale.max()) for t in stream]
    for (_, high), (low, _) in pairwise(ends):
        assert high < low
    assert ends[0][0] >= 0.5
    assert ends[-1][1] <= 1


def test_only_task_incremental_streams_give_the_task_id():
    assert Stream(scenario="task")[0].task_id_given
    assert not Stream(scenario="class")[0].task_id_given


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 1.0])
def test_recurring_tasks_mix_old_and_new_classes(share):
    seen: set[int] = set()
    context = ScenarioContext(5, None, 10, 0)
    for task in range(20):
        labels = [a.label for a in Recurring(share).arrivals(context, task)]
        assert len(set(labels)) == 10
        if task:
            assert len(set(labels) & seen) == round(10 * share)
        seen |= set(labels)
    assert seen == set(range(len(seen)))


def test_recurring_is_addressable_far_out():
    labels = [a.label for a in Recurring().arrivals(ScenarioContext(5, None, 10, 0), 10**9)]
    assert max(labels) == 10 + 5 * 10**9 - 1


@pytest.mark.parametrize("seed", range(20))
def test_blurry_conserves_samples_and_keeps_disjoint_classes_together(seed):
    classes, rows, tasks = 20, 60, 5
    home, blurry = blurry_homes(seed, classes, tasks, 50)
    parts = blurry_tasks(seed, classes, rows, tasks, 50, 10)
    everything = np.sort(np.concatenate(parts))
    assert (everything == np.arange(classes * rows)).all()
    for c in np.flatnonzero(~blurry):
        assert {t for t in range(tasks) if (parts[t] // rows == c).any()} == {home[c]}
    foreign = sum((home[part // rows] != t).sum() for t, part in enumerate(parts))
    assert foreign <= 0.11 * blurry.sum() * rows
    assert blurry.sum() == 10


def test_blurry_moves_samples_and_sizes_differ_between_seeds():
    sizes = {tuple(map(len, blurry_tasks(seed, 20, 60, 5, 50, 10))) for seed in range(10)}
    assert len(sizes) == 10
    foreign = 0
    for seed in range(10):
        home, _ = blurry_homes(seed, 20, 5, 50)
        parts = blurry_tasks(seed, 20, 60, 5, 50, 10)
        foreign += sum((home[part // 60] != t).sum() for t, part in enumerate(parts))
    assert foreign > 100


def test_the_same_seed_gives_the_same_blurry_stream():
    blurry_tasks.cache_clear()
    one = blurry_tasks(3, 20, 60, 5, 50, 10)
    blurry_tasks.cache_clear()
    two = blurry_tasks(3, 20, 60, 5, 50, 10)
    assert all((a == b).all() for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_blurry_without_blur_is_class_incremental(seed):
    parts = blurry_tasks(seed, 20, 30, 5, 100, 0)
    seen: set[int] = set()
    for part in parts:
        labels = set((part // 30).tolist())
        assert not labels & seen
        assert len(part) == 30 * len(labels)
        seen |= labels
    assert len(seen) == 20


def test_left_over_classes_join_the_blurry_ones():
    home, blurry = blurry_homes(0, 23, 5, 50)
    assert (~blurry).sum() == 10
    assert blurry.sum() == 13
    assert set(home) <= set(range(5))


def test_a_blurry_stream_of_sprites_conserves_its_rows():
    stream = Stream(
        tasks=5, classes_per_task=4, values_per_factor=2, scenario=Blurry(), canvas=Canvas(size=16)
    )
    rows = []
    for task in stream:
        table = np.stack([task.train.labels, *task.train.factors], axis=1)
        rows.append(table)
        assert set(task.train.labels.tolist()) <= set(task.classes)
        assert len(task.train.batch(slice(None)).images) == len(table)
    everything = np.concatenate(rows)
    assert len(np.unique(np.round(everything, 9), axis=0)) == len(everything) == 20 * 14


def test_every_scenario_has_its_name():
    assert {find_scenario(name).name for name in SCENARIOS} == set(SCENARIOS)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: DomainIncremental("color"), "factor must be one of"),
        (lambda: DomainIncremental(bands=0), "bands"),
        (lambda: NewInstancesAndClasses(classes=1), "classes"),
        (lambda: NewInstancesAndClasses(first=50), "first"),
        (lambda: NewInstancesAndClasses(sessions=1), "2 sessions"),
        (lambda: Recurring(1.5), "share"),
        (lambda: Recurring("half"), "share"),
        (lambda: Blurry(disjoint=101), "disjoint"),
        (lambda: Blurry(blurred=float("nan")), "blurred"),
        (lambda: find_scenario("online"), "online, imbalance, factors"),
    ],
)
def test_bad_settings_are_refused(build, message):
    with pytest.raises((ValueError, TypeError), match=message):
        build()


@pytest.mark.parametrize("seed", range(40))
def test_the_blurry_pool_is_dealt_out_by_quota(seed):
    """A task without blurry classes of its own receives its share of those that move."""
    classes, rows, tasks = 20, 60, 5
    home, blurry = blurry_homes(seed, classes, tasks, 50)
    parts = blurry_tasks(seed, classes, rows, tasks, 50, 30)
    quota = np.bincount(_random_runs(seed, 180, tasks, 4), minlength=tasks)
    given = [min(quota[t], rows * (blurry & (home == t)).sum()) for t in range(tasks)]
    for task, part in enumerate(parts):
        own = rows * (home == task).sum()
        received = len(part) - (own - given[task])
        assert abs(received - quota[task] * sum(given) / quota.sum()) <= 1


def test_recurring_needs_room_for_old_and_new_classes():
    with pytest.raises(ValueError, match="would have 0 old ones"):
        Stream(classes_per_task=1, scenario=Recurring(0.5))


def test_recurring_with_many_classes_is_fast():
    labels = [a.label for a in Recurring(1.0).arrivals(ScenarioContext(0, None, 3000, 0), 7)]
    assert sorted(labels) == list(range(3000))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Stream(tasks=10**11, scenario="blurry"), "rows would be made at once"),
        (lambda: NewInstancesAndClasses(classes=100_000, sessions=100_000), "pairs"),
        (
            lambda: Stream(tasks=5, scenario=NewInstancesAndClasses(classes=99_999, first=99_998)),
            "rows would be made at once",
        ),
    ],
)
def test_scenarios_too_large_for_memory_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
