"""From a stream's settings to one task: its classes, their rows, its splits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everlearn.factors import Factors, canonical, check_factors, theta
from everlearn.shapes import Outlines, outlines
from everlearn.stream.arrivals import Arrival
from everlearn.stream.blurry import Blurry, blurry_tasks
from everlearn.stream.pools import Pools, find_pools
from everlearn.stream.split import Key, part_drawn, shuffle_finite, take_tests, thin
from everlearn.stream.sprites import Sprites
from everlearn.stream.task import Split, Task

if TYPE_CHECKING:
    from everlearn.stream.spec import Stream

Ints = NDArray[np.int64]


class Rows(NamedTuple):
    """Rows of a split before they are drawn."""

    labels: Ints
    factors: Factors


def build_task(stream: Stream, index: int) -> Task:
    """Make one task."""
    arrivals = stream.scenario.arrivals(stream.setting, index)
    train, val, test = _parts(stream, arrivals, index)
    if isinstance(stream.scenario, Blurry):
        train = _blurry_rows(stream, stream.scenario, index)
    if stream.imbalance > 1:
        keep = thin(stream.seed, index, train.labels, stream.imbalance)
        train = Rows(train.labels[keep], train.factors.take(keep))
    labels = [arrival.label for arrival in arrivals]
    classes = np.unique(np.concatenate((np.array(labels, np.int64), train.labels)))
    if len(classes) == len(labels):
        classes = np.array(labels, np.int64)
    return _draw_task(stream, index, classes, (train, val, test))


def canonical_split(stream: Stream, classes: Sequence[int]) -> Split:
    """One canonical image a class, in the order given."""
    labels = np.array(list(classes), np.int64)
    curves = outlines(stream.seed, labels, stream.style)
    return _draw_split(stream, curves, np.arange(len(labels)), Rows(labels, canonical(len(labels))))


def _draw_split(stream: Stream, curves: Outlines, which: Ints, rows: Rows) -> Split:
    factors = check_factors(rows.factors, len(stream.canvas.colors))
    maps = theta(factors)
    pictures = Sprites(curves, which, maps, factors.color, stream.canvas)
    return Split(rows.labels, pictures, factors, maps)


def _draw_task(stream: Stream, index: int, classes: Ints, splits: tuple[Rows, Rows, Rows]) -> Task:
    curves = outlines(stream.seed, classes, stream.style)
    order = np.argsort(classes)

    def split(rows: Rows) -> Split:
        which = order[np.searchsorted(classes[order], rows.labels)]
        return _draw_split(stream, curves, which, rows)

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
    pools = find_pools(stream, bands.pop())
    keys = [Key(stream.seed, a.label, a.band or 0, index) for a in arrivals]
    if pools.points is None:
        return _transpose([_part_drawn(pools, key) for key in keys])
    return _part_listed(pools, pools.points, keys)


def _part_listed(pools: Pools, points: Factors, keys: list[Key]) -> tuple[Rows, Rows, Rows]:
    """Part classes of one finite pool, all at once; only test rows may come from a space of their own.

    Another test space so leaves the training rows as they were.
    """
    cut = shuffle_finite(len(points.color), pools.counts, keys)
    labels = np.array([key.label for key in keys], np.int64)
    train, val, test = (
        Rows(np.repeat(labels, rows.shape[1]), points.take(rows.reshape(-1))) for rows in cut
    )
    if pools.test is not None:
        seen = np.concatenate(cut[:2], axis=1)
        tables = [
            take_tests(pools.test, pools.counts.test, key, [points.take(rows)])
            for key, rows in zip(keys, seen, strict=True)
        ]
        test = _join([_rows(key.label, table) for key, table in zip(keys, tables, strict=True)])
    return train, val, test


def _part_drawn(pools: Pools, key: Key) -> tuple[Rows, Rows, Rows]:
    train, val, test = part_drawn(pools.train, pools.test or pools.train, pools.counts, key)
    return _rows(key.label, train), _rows(key.label, val), _rows(key.label, test)


def _transpose(parts: list[tuple[Rows, Rows, Rows]]) -> tuple[Rows, Rows, Rows]:
    """Join the trains, the vals and the tests of several classes."""
    return _join([p[0] for p in parts]), _join([p[1] for p in parts]), _join([p[2] for p in parts])


def _blurry_rows(stream: Stream, scenario: Blurry, index: int) -> Rows:
    """Training rows of a blurry task: those that stayed and those that moved in."""
    first, tasks = stream.first_class, len(stream)
    rows = find_pools(stream, None).counts.train
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
