"""From a stream's settings to one task: its classes, their rows, its splits."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everlearn.factors import Factors, Interval, Product, Set, Space, Values, canonical, theta
from everlearn.shapes import outlines
from everlearn.stream.arrivals import Arrival
from everlearn.stream.blurry import Blurry, blurry_tasks
from everlearn.stream.split import (
    Counts,
    Key,
    count_rows,
    held_back,
    is_counts,
    part_apart,
    shuffle_finite,
    thin,
)
from everlearn.stream.sprites import Sprites
from everlearn.stream.task import Split, Task

if TYPE_CHECKING:
    from everlearn.stream.spec import Stream

Ints = NDArray[np.int64]
RANGES = {"scale": (0.5, 1.0), "orientation": (0.0, 2 * math.pi), "x": (0.0, 1.0), "y": (0.0, 1.0)}


class Pools(NamedTuple):
    """Where the rows of a class come from; `test` is None where they share one finite pool."""

    train: Space
    test: Space | None
    counts: Counts


class Rows(NamedTuple):
    """Rows of a split before they are drawn."""

    labels: Ints
    factors: Factors


def check_rows(stream: Stream) -> int:
    """Count the rows of a class, or say why the split cannot be had."""
    pools, _ = _pools(stream, 0 if hasattr(stream.scenario, "factor") else None)
    counts, size = pools.counts, pools.train.size
    if size is not None:
        wanted = counts.train + counts.val + (counts.test if pools.test is None else 0)
        if wanted > size:
            raise ValueError(
                f"split {stream.split} asks for {wanted} rows a class, but there are {size} "
                "combinations of factors; ask for less or give more values_per_factor"
            )
    if pools.test is not None and pools.test.size is not None and counts.test > pools.test.size:
        raise ValueError(
            f"split {stream.split} asks for {counts.test} test rows a class, but there are "
            f"{pools.test.size} test combinations of factors"
        )
    if pools.train.size == 0:
        raise ValueError("no combination of factors is left to train on; hold out fewer")
    return sum(counts)


def build_task(stream: Stream, index: int) -> Task:
    """Make one task."""
    arrivals = stream.scenario.arrivals(stream.setting, index)
    train, val, test = _parts(stream, arrivals, index)
    if isinstance(stream.scenario, Blurry):
        train = _blurry_rows(stream, stream.scenario, index)
    keep = thin(stream.seed, index, train.labels, stream.imbalance)
    train = Rows(train.labels[keep], train.factors.take(keep))
    labels = [arrival.label for arrival in arrivals]
    classes = np.unique(np.concatenate((np.array(labels, np.int64), train.labels)))
    if len(classes) == len(labels):
        classes = np.array(labels, np.int64)
    return _draw_task(stream, index, classes, (train, val, test))


def _draw_task(stream: Stream, index: int, classes: Ints, splits: tuple[Rows, Rows, Rows]) -> Task:
    curves = outlines(stream.seed, classes, stream.style)
    order = np.argsort(classes)

    def split(rows: Rows) -> Split:
        which = order[np.searchsorted(classes[order], rows.labels)]
        maps = theta(rows.factors)
        pictures = Sprites(curves, which, maps, rows.factors.color, stream.canvas)
        return Split(rows.labels, pictures, rows.factors, maps)

    train, val, test = (split(rows) for rows in splits)
    return Task(
        index=index,
        classes=tuple(classes.tolist()),
        train=train,
        val=val,
        test=test,
        canonical=split(Rows(classes, canonical(len(classes)))),
        seed=stream.seed,
        online=stream.online,
        tells_index=stream.scenario.name == "task",
    )


def _parts(stream: Stream, arrivals: list[Arrival], index: int) -> tuple[Rows, Rows, Rows]:
    """Part the rows of all classes of a task."""
    bands = {arrival.band for arrival in arrivals}
    if len(bands) != 1:
        return _transpose([_parts(stream, [arrival], index) for arrival in arrivals])
    pools, points = _pools(stream, bands.pop())
    keys = [Key(stream.seed, a.label, a.band or 0, index) for a in arrivals]
    if pools.test is None and points is not None:
        labels = np.array([key.label for key in keys], np.int64)
        cut = shuffle_finite(len(points.color), pools.counts, keys)
        train, val, test = (
            Rows(np.repeat(labels, rows.shape[1]), points.take(rows.reshape(-1))) for rows in cut
        )
        return train, val, test
    return _transpose([_part_drawn(pools, key) for key in keys])


def _part_drawn(pools: Pools, key: Key) -> tuple[Rows, Rows, Rows]:
    train, val, test = part_apart(pools.train, pools.test or pools.train, pools.counts, key)
    return _rows(key.label, train), _rows(key.label, val), _rows(key.label, test)


def _transpose(parts: list[tuple[Rows, Rows, Rows]]) -> tuple[Rows, Rows, Rows]:
    """Join the trains, the vals and the tests of several classes."""
    return _join([p[0] for p in parts]), _join([p[1] for p in parts]), _join([p[2] for p in parts])


@lru_cache(maxsize=64)
def _pools(stream: Stream, band: int | None) -> tuple[Pools, Factors | None]:
    """The spaces of a class, which depend on its band alone, and the training space's points."""
    space = stream.space
    if band is not None and isinstance(space, Product):
        bands = getattr(stream.scenario, "bands", 0) or stream.scenario.sessions
        space = narrow(space, stream.scenario.factor, band, bands)
    train, test = space, stream.test_factors
    if stream.held_out is not None:
        train, test = held_back(space, stream.held_out)
    nominal = len(stream.canvas.colors) * stream.values_per_factor**4
    size = nominal if train.size is None else train.size
    test_size = None if test is None else (nominal if test.size is None else test.size)
    counts = count_rows(stream.split, stream.classes_per_task, size, test_size)
    if stream.held_out is not None and not is_counts(stream.split):
        counts = count_rows((stream.split[0] + stream.split[2], stream.split[1], 0.0), 1, size)
        counts = counts._replace(test=test_size or 0)
    return Pools(train, test, counts), None if train.size is None else train.points()


def narrow(space: Product, factor: str, band: int, bands: int) -> Product:
    """Restrict one factor to a band of its range, with as many values as before."""
    sets = dict(zip(("color", "scale", "orientation", "x", "y"), space.sets, strict=True))
    low, high = RANGES[factor]
    old = sets[factor]
    if isinstance(old, Interval):
        low, high = old.low, old.high
    width = (high - low) / bands
    new: Set = Interval(low + width * band, low + width * (band + 1))
    if isinstance(old, Values):
        count = len(old.values)
        new = Values(tuple(low + width * (band + (i + 0.5) / count) for i in range(count)))
    sets[factor] = new
    return Product(**sets)


def _blurry_rows(stream: Stream, scenario: Blurry, index: int) -> Rows:
    """Training rows of a blurry task: those that stayed and those that moved in."""
    first, tasks = stream.first_class, len(stream)
    rows = _pools(stream, None)[0].counts.train
    classes = tasks * stream.classes_per_task
    mine = blurry_tasks(stream.seed, classes, rows, tasks, scenario.disjoint, scenario.blurred)[
        index
    ]
    label, row = mine // rows, mine % rows
    present = np.unique(label)
    everything = _parts(stream, [Arrival(first + int(c)) for c in present], 0)[0]
    chosen = np.searchsorted(present, label) * rows + row
    return Rows(everything.labels[chosen], everything.factors.take(chosen))


def _rows(label: int, factors: Factors) -> Rows:
    return Rows(np.full(len(factors.color), label, np.int64), factors)


def _join(tables: list[Rows]) -> Rows:
    """Put rows behind one another."""
    if not tables:
        return Rows(np.zeros(0, np.int64), canonical(0))
    factors = zip(*(table.factors for table in tables), strict=True)
    columns = (np.concatenate(parts) for parts in factors)
    return Rows(np.concatenate([table.labels for table in tables]), Factors(*columns))
