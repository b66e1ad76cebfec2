"""Streams: the paper's benchmark, addressing, splits, JSON."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everlearn import Canvas, ShapeStyle, Stream
from everlearn.factors import (
    Difference,
    Factors,
    Interval,
    Mixture,
    Product,
    Values,
    continuous_space,
    grid_space,
)
from everlearn.stream.scenarios.blurry import Blurry
from everlearn.stream.scenarios.incremental import (
    DomainIncremental,
    NewInstancesAndClasses,
    Recurring,
)

TINY = {"tasks": 3, "classes_per_task": 2, "values_per_factor": 3, "canvas": Canvas(size=16)}
CORNER = Product(
    scale=Interval(0.7, 2), orientation=Interval(0, 2), x=Interval(-1, 2), y=Interval(-1, 2)
)


def _codes(labels: np.ndarray, factors: Factors) -> set[tuple[float, ...]]:
    columns = [labels, *(np.round(np.asarray(c, float), 9) for c in factors)]
    return set(zip(*(column.tolist() for column in columns), strict=True))


def _splits(task) -> list[set[tuple[float, ...]]]:
    return [_codes(split.labels, split.factors) for split in (task.train, task.val, task.test)]


def test_the_paper_benchmark_has_its_counts():
    stream = Stream()
    assert len(stream) == 500
    task = stream[0]
    parts = _splits(task)
    assert [len(part) for part in parts] == [6000, 150, 100]
    assert len(set.union(*parts)) == 6250
    assert [len(task.train), len(task.val), len(task.test)] == [6000, 150, 100]


@pytest.mark.parametrize("index", [0, 7, 499])
def test_task_t_has_the_t_th_block_of_classes(index):
    task = Stream()[index]
    assert task.classes == tuple(range(10 * index, 10 * index + 10))
    for split in (task.train, task.val, task.test):
        assert sorted(set(split.labels.tolist())) == list(task.classes)


def test_no_class_occurs_in_two_tasks():
    seen = [set(task.train.labels.tolist()) for task in Stream(**TINY)]
    assert sum(map(len, seen)) == len(set.union(*seen))


def test_a_longer_stream_has_the_same_beginning():
    short, long = Stream(**TINY), Stream(**{**TINY, "tasks": 500})
    for index in range(3):
        a, b = short[index], long[index]
        assert (a.train.batch(slice(None)).images == b.train.batch(slice(None)).images).all()


def test_test_rows_are_balanced():
    counts = np.bincount(Stream()[0].test.labels)
    assert counts.tolist() == [10] * 10


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"split": (0.5, 0.2, 0.1)},
        {"split": (60, 20, 10)},
        {"factors": continuous_space()},
        {"test_factors": "continuous"},
        {"test_factors": grid_space(4)},
        {"held_out": CORNER},
        {"held_out": CORNER, "split": (40, 4, 10)},
        {"factors": Mixture((Product(scale=Values((0.5, 1.0)), x=Values((0.0, 0.5, 1.0))),
                             grid_space(3)), (1, 1)), "test_factors": grid_space(3)},
        {"scenario": "domain"},
        {"scenario": "domain", "test_factors": "continuous"},
        {"scenario": DomainIncremental("x", 3), "held_out": CORNER},
        {"scenario": NewInstancesAndClasses(classes=6, sessions=3, first=2)},
        {"scenario": "recurring"},
        {"imbalance": 5.0},
    ],
)  # fmt: skip
def test_splits_never_share_a_row(changes):
    for task in Stream(**{**TINY, **changes}):
        train, val, test = _splits(task)
        assert train
        assert test
        assert not train & test
        assert not val & test
        assert not train & val


@pytest.mark.parametrize("scenario", ["recurring", DomainIncremental(bands=2)])
def test_a_class_that_comes_back_never_shows_a_test_row_in_training(scenario):
    stream = Stream(**{**TINY, "tasks": 12, "scenario": scenario})
    trains, tests = set(), set()
    for task in stream:
        train, _, test = _splits(task)
        trains |= train
        tests |= test
    assert not trains & tests


def test_splits_have_the_requested_counts():
    task = Stream(**{**TINY, "split": (60, 20, 10)})[0]
    assert [len(task.train), len(task.val), len(task.test)] == [60, 20, 10]


def test_another_test_space_leaves_the_training_rows_alone():
    plain, other = Stream(**TINY)[1], Stream(**{**TINY, "test_factors": "continuous"})[1]
    assert _splits(plain)[:2] == _splits(other)[:2]
    grid = set(np.round(grid_space(3).points().scale, 9).tolist())
    assert not set(np.round(other.test.factors.scale, 9).tolist()) & grid


def test_held_out_combinations_are_tested_and_never_trained():
    task = Stream(**{**TINY, "held_out": CORNER})[0]
    assert CORNER.contains(task.test.factors).all()
    assert not CORNER.contains(task.train.factors).any()
    assert not CORNER.contains(task.val.factors).any()
    assert len(task.train) + len(task.val) + len(task.test) == 2 * 81


def test_correlated_factors_are_correlated_in_training_only():
    free = grid_space(3)
    parts = [
        Product(scale=Values((v,)), orientation=free.orientation, x=Values((2 * v - 1,)), y=free.y)
        for v in (0.5, 0.75, 1.0)
    ]
    stream = Stream(
        **{**TINY, "classes_per_task": 10},
        factors=Mixture((*parts, grid_space(3)), (3, 3, 3, 1)),
        test_factors=grid_space(3),
        split=(2000, 20, 200),
    )
    task = stream[0]
    train = np.corrcoef(task.train.factors.scale, task.train.factors.x)[0, 1]
    test = np.corrcoef(task.test.factors.scale, task.test.factors.x)[0, 1]
    assert train > 0.8
    assert abs(test) < 0.25


def test_sampled_training_rows_change_when_a_class_returns_but_test_rows_stay():
    stream = Stream(**{**TINY, "tasks": 30}, scenario=Recurring(1.0), factors=continuous_space())
    first, later = stream[0], stream[1]
    assert set(later.classes) == set(first.classes)
    assert not _splits(first)[0] & _splits(later)[0]
    assert _splits(first)[2] == _splits(later)[2]


def test_imbalance_is_the_ratio_of_largest_to_smallest_class():
    task = Stream(tasks=1, imbalance=10.0)[0]
    counts = np.sort(np.unique(task.train.labels, return_counts=True)[1])
    assert counts[-1] / counts[0] == pytest.approx(10, rel=0.02)
    steps = counts[1:] / counts[:-1]
    assert steps.max() / steps.min() < 1.05
    assert set(np.unique(task.test.labels, return_counts=True)[1]) == {10}


def test_other_first_classes_are_other_shapes():
    a, b = Stream(**TINY), Stream(**TINY, first_class=1000)
    assert b[0].classes == (1000, 1001)
    assert (a[0].exemplars().images != b[0].exemplars().images).any()
    far = Stream(**{**TINY, "tasks": None})[500]
    assert far.classes == (1000, 1001)
    assert (far.exemplars().images == b[0].exemplars().images).all()


def test_an_endless_stream_has_arbitrarily_late_tasks():
    stream = Stream(tasks=None)
    assert stream[10**9].classes[0] == 10**10
    with pytest.raises(TypeError, match="endless"):
        len(stream)
    for index, task in enumerate(stream):
        assert task.index == index
        if index == 3:
            break


def test_a_far_task_costs_what_a_near_one_costs():
    stream = Stream(tasks=None, values_per_factor=3)

    def cost(index: int) -> float:
        start = time.process_time()
        next(stream[index].batches(64))
        return time.process_time() - start

    cost(0)
    pairs = [(cost(10**9 + 7 * i), cost(7 * i)) for i in range(60)]
    far, near = (median(column) for column in zip(*pairs, strict=True))
    assert far <= 1.2 * near + 2e-4


@pytest.mark.slow
def test_memory_does_not_grow_with_the_tasks_seen():
    code = (
        "import resource; from pathlib import Path; from everlearn import Stream, Canvas\n"
        "def resident(): return int(Path('/proc/self/statm').read_text().split()[1]) * 4096\n"
        "s = Stream(tasks=10000, values_per_factor=2, canvas=Canvas(size=16))\n"
        "for i in range(200): next(s[i].batches(16))\n"
        "before = resident()\n"
        "for t in s: next(t.batches(16))\n"
        "print((resident() - before) / 2**20)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(run.stdout) <= 20


def test_negative_numbers_count_from_the_end():
    stream = Stream(**TINY)
    assert stream[-1].index == 2
    for index in (3, -4):
        with pytest.raises(IndexError, match="not in the stream"):
            stream[index]
    with pytest.raises(TypeError, match="whole number"):
        stream["first"]


def test_test_rows_lie_in_the_band_of_their_task():
    for test_factors in (None, "continuous"):
        stream = Stream(**{**TINY, "tasks": 5}, scenario=DomainIncremental("scale", 5),
                        test_factors=test_factors)  # fmt: skip
        for index, task in enumerate(stream):
            for split in (task.train, task.test):
                assert split.factors.scale.min() >= 0.5 + 0.1 * index
                assert split.factors.scale.max() <= 0.6 + 0.1 * index


def test_given_factor_values_are_divided_among_the_bands():
    space = Product(scale=Values((0.5, 0.6, 0.7, 0.8)), x=Values((0.1, 0.2, 0.3, 0.4)))
    stream = Stream(
        tasks=2, scenario=DomainIncremental("scale", 2), factors=space, split=(0.5, 0.2, 0.3)
    )
    assert set(stream[0].train.factors.scale) == {0.5, 0.6}
    assert set(stream[1].train.factors.scale) == {0.7, 0.8}


def test_rare_held_out_combinations_of_a_continuum_are_drawn_directly():
    corner = Product(
        scale=Interval(0, 2), orientation=Interval(-1, 7), x=Interval(0, 0.05), y=Interval(0, 0.05)
    )
    task = Stream(tasks=1, factors=continuous_space(), held_out=corner, split=(100, 10, 50))[0]
    assert corner.contains(task.test.factors).all()
    assert not corner.contains(task.train.factors).any()


def test_sampled_rows_differ_between_classes_and_tasks():
    tables = [
        Stream(tasks=None, classes_per_task=1, factors=continuous_space(), first_class=first)[task]
        for first, task in ((0, 0), (2**28, 0), (0, 2**29), (2**44, 0), (0, 2**16))
    ]
    for part in ("train", "test"):
        codes = [task.split(part).theta.tobytes() for task in tables]
        assert len(set(codes)) == len(codes)


def test_counts_and_fractions_are_never_confused():
    with pytest.raises(ValueError, match=r"write 1\.0"):
        Stream(classes_per_task=1, split=(1, 0, 0))
    assert len(Stream(classes_per_task=1, split=(1.0, 0.0, 0.0))[0].train) == 625


def test_a_fraction_above_zero_gives_a_row_of_every_class():
    task = Stream(values_per_factor=2)[0]
    assert [len(task.train), len(task.val), len(task.test)] == [140, 10, 10]
    task = Stream(values_per_factor=2, split=(0.9, 0.1, 0.0))[0]
    assert len(task.test) == 0


def test_numpy_numbers_are_plain_numbers_afterwards():
    stream = Stream(tasks=np.int64(5), imbalance=np.float32(2), split=(np.int64(6000), 150, 100))
    assert Stream.from_json(stream.to_json()) == stream


STREAMS = [
    Stream(),
    Stream(tasks=None, seed=2**64 - 1),
    Stream(canvas=Canvas(size=32, channels=3, colors=("red", "#123456"), mark=None, dtype="uint8")),
    Stream(scenario=DomainIncremental("scale", 7)),
    Stream(scenario=NewInstancesAndClasses(), tasks=391),
    Stream(scenario=Blurry(30, 20), tasks=5, online=True),
    Stream(style=ShapeStyle(min_distance=0.1, orders=(3,)), imbalance=3.0, first_class=77),
    Stream(test_factors="continuous", split=(6000, 150, 100), orientation_grid="even"),
    Stream(held_out=CORNER),
    Stream(
        factors=Mixture((Difference(continuous_space(), CORNER), grid_space(3)), (1, 2)),
        test_factors=grid_space(3),
    ),
]


@pytest.mark.parametrize("stream", STREAMS)
def test_json_gives_an_equal_stream_back(stream):
    again = Stream.from_json(stream.to_json())
    assert again == stream
    assert hash(again) == hash(stream)
    assert len(stream.to_json()) < 4000


def test_streams_differ_where_a_setting_differs():
    assert len({Stream(), Stream(seed=1), Stream(tasks=3), Stream(online=True), *STREAMS}) == 13


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be JSON"),
        ("[1]", "JSON object"),
        ("{}", "everlearn_stream"),
        ('{"everlearn_stream": 2}', "update everlearn"),
        ('{"everlearn_stream": "x"}', "format number"),
        ('{"everlearn_stream": 1, "sede": 3}', "unknown settings"),
        ('{"everlearn_stream": 1, "seed": NaN}', "finite"),
        ('{"everlearn_stream": 1, "canvas": 3}', "canvas must be a JSON object"),
        ('{"everlearn_stream": 1, "canvas": {"dize": 3}}', "unknown settings"),
        (
            '{"everlearn_stream": 1, "scenario": {"name": "clas"}}',
            "unknown scenario 'clas'; known:",
        ),
        ('{"everlearn_stream": 1, "scenario": {"name": "class", "x": 1}}', "unknown settings"),
        ('{"everlearn_stream": 1, "factors": {"sum": []}}', "product, minus, mixture"),
        ('{"everlearn_stream": 1, "factors": {"product": {"scale": {"values": []}}}}', "one value"),
        ("[" * 100_000, "must be JSON"),
        ('{"everlearn_stream": 1, "seed": 1, "seed": 2}', "name a setting once"),
        ('{"everlearn_stream": 1, "canvas": {"channels": 3.0}}', "channels"),
        ('{"everlearn_stream": 1, "style": {"vertices": 5}}', "vertices must be 2 numbers"),
        ('{"everlearn_stream": 1, "style": {"orders": [[1]]}}', "orders"),
    ],
)
def test_json_that_is_not_a_stream_is_refused(text, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Stream.from_json(text)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
names = st.sampled_from(sorted(json.loads(Stream().to_json())))


NESTED = {
    "canvas": json.loads(Stream().to_json())["canvas"],
    "style": json.loads(Stream().to_json())["style"],
    "scenario": {"name": "recurring", "share": 0.5},
    "factors": {"product": {"scale": {"values": [1.0]}, "x": {"interval": [0.0, 1.0]}}},
}


@given(st.sampled_from(sorted(NESTED)), st.data())
def test_any_nested_setting_gives_a_stream_that_draws_or_a_clear_error(field, data):
    inner = dict(NESTED[field])
    target = inner["product"] if field == "factors" else inner
    key = data.draw(st.sampled_from(sorted(target)))
    target = {**target, key: data.draw(values)}
    text = json.loads(Stream(tasks=2, classes_per_task=2, values_per_factor=2).to_json())
    text[field] = {"product": target} if field == "factors" else target
    try:
        stream = Stream.from_json(json.dumps(text))
    except (ValueError, TypeError) as error:
        message = str(error)
    else:
        message = ""
        if stream.canvas.size <= 128:
            stream[1].train.batch([0])
    for unclear in (
        "NoneType",
        "object is not",
        "unhashable",
        "cannot be interpreted",
        "subscript",
    ):
        assert unclear not in message


@given(st.dictionaries(names, values, max_size=3))
def test_any_json_gives_a_stream_or_a_clear_error(changes):
    text = json.dumps({**json.loads(Stream().to_json()), **changes})
    try:
        stream = Stream.from_json(text)
    except (ValueError, TypeError):
        return
    assert Stream.from_json(stream.to_json()) == stream


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": -1}, "seed"),
        ({"tasks": 0}, "tasks must lie in"),
        ({"tasks": -5}, "tasks must lie in"),
        ({"tasks": 2.0}, "tasks must be a whole number"),
        ({"classes_per_task": 0}, "classes_per_task"),
        ({"values_per_factor": 0}, "values_per_factor"),
        ({"canvas": 64}, "canvas must be a Canvas"),
        ({"scenario": "sideways"}, "unknown scenario 'sideways'; known: class"),
        ({"scenario": 3}, "scenario must be"),
        ({"scenario": "nic"}, "391 tasks"),
        ({"scenario": "blurry", "tasks": None}, "number of tasks"),
        ({"scenario": "domain", "factors": Mixture((Product(),), (1,))}, "bands"),
        ({"scenario": "domain", "factors": Product(orientation=Values((1.0,)))}, "10 bands need"),
        ({"factors": Product(color=Values((0, 1)))}, "canvas has 1 colours"),
        ({"factors": Product(color=Values((0.5,)))}, "whole numbers"),
        ({"factors": Product(color=Interval(0, 1))}, "color of factors"),
        ({"factors": Product(scale=Values((-1.0,)))}, "scale of factors must lie in"),
        ({"test_factors": Product(scale=Values((1e9,)))}, "scale of test_factors"),
        ({"factors": Product(scale=3)}, "must be Values or an Interval"),
        ({"factors": Values((1.0,))}, "space of factors"),
        ({"held_out": Product(scale=Values((9.0,)))}, "holds no combination"),
        ({"split": (1e-10, 0.5, 0.5), "values_per_factor": 1}, "no training rows"),
        (
            {
                "scenario": DomainIncremental("scale", 4),
                "split": (4000, 100, 0),
                "held_out": Product(
                    scale=Interval(0.7, 0.72),
                    orientation=Interval(0, 7),
                    x=Interval(0, 2),
                    y=Interval(0, 2),
                ),
            },
            "holds no combination",
        ),
        ({"split": (1, 2)}, "three numbers"),
        ({"split": (0.9, 0.2, 0.1)}, "sum to at most 1"),
        ({"split": (0, 1, 1)}, "some for training"),
        ({"split": (6000, 150, 101)}, "divide evenly"),
        ({"split": (6000, 150, 200)}, "625 combinations"),
        ({"split": (float("nan"), 0.1, 0.1)}, "0 or more"),
        ({"test_factors": "all"}, "'continuous'"),
        ({"factors": 3}, "space of factors"),
        ({"held_out": grid_space(2), "test_factors": grid_space(2)}, "not both"),
        ({"held_out": grid_space(5)}, "left to train on"),
        ({"orientation_grid": "odd"}, "'paper' or 'even'"),
        ({"online": 1}, "online must be a bool"),
        ({"imbalance": 0.5}, "imbalance"),
        ({"imbalance": float("nan")}, "imbalance"),
        ({"first_class": -1}, "first_class"),
        ({"classes_per_task": 100_000, "values_per_factor": 10}, "rows"),
    ],
)
def test_bad_settings_are_refused(changes, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Stream(**changes)
