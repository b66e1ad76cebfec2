"""Build one task of a stream of sprites: its classes, their rows, its splits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everlearn.factors import Factors, canonical_factors, check_factors, theta
from everlearn.shapes import Outlines, outlines
from everlearn.stream.scenarios.blurry import Blurry, blurry_tasks
from everlearn.stream.scenarios.scenario import Arrival
from everlearn.stream.split import (
    ClassKey,
    imbalance_mask,
    split_finite,
    split_sampled,
    take_test_rows,
)
from everlearn.stream.sprites.class_spaces import ClassSpaces, class_spaces
from everlearn.stream.sprites.images import SpriteImages
from everlearn.stream.task import Split, Task

if TYPE_CHECKING:
    from everlearn.stream.sprites.stream import Stream

Ints = NDArray[np.int64]


class Rows(NamedTuple):
    """The labels and factors of rows, before rendering."""

    labels: Ints
    factors: Factors


SplitRows = tuple[Rows, Rows, Rows]  # train, val, test


def build_task(stream: Stream, index: int) -> Task:
    """Make one task."""
    arrivals = stream.scenario.arrivals(stream.scenario_context, index)
    train, val, test = _split_rows(stream, arrivals, index)
    if isinstance(stream.scenario, Blurry):
        train = _blurry_rows(stream, stream.scenario, index)
    if stream.imbalance > 1:
        keep = imbalance_mask(stream.seed, index, train.labels, stream.imbalance)
        train = Rows(train.labels[keep], train.factors.take(keep))
    labels = [arrival.label for arrival in arrivals]
    classes = np.unique(np.concatenate((np.array(labels, np.int64), train.labels)))
    if len(classes) == len(labels):
        classes = np.array(labels, np.int64)
    return _make_task(stream, index, classes, (train, val, test))


def exemplar_split(stream: Stream, classes: Sequence[int]) -> Split:
    """Return one canonical image per class, in the order given."""
    labels = np.array(list(classes), np.int64)
    curves = outlines(stream.seed, labels, stream.style)
    return _make_split(
        stream,
        curves,
        np.arange(len(labels)),
        Rows(labels, canonical_factors(len(labels))),
    )


def _make_split(stream: Stream, curves: Outlines, which: Ints, rows: Rows) -> Split:
    factors = check_factors(rows.factors, len(stream.canvas.colors))
    maps = theta(factors)
    image_source = SpriteImages(curves, which, maps, factors.color, stream.canvas)
    return Split(rows.labels, image_source, factors, maps)


def _make_task(stream: Stream, index: int, classes: Ints, splits: SplitRows) -> Task:
    curves = outlines(stream.seed, classes, stream.style)
    order = np.argsort(classes)

    def split(rows: Rows) -> Split:
        which = order[np.searchsorted(classes[order], rows.labels)]
        return _make_split(stream, curves, which, rows)

    train, val, test = (split(rows) for rows in splits)
    return Task(
        index=index,
        classes=tuple(classes.tolist()),
        train=train,
        val=val,
        test=test,
        canonical=split(Rows(classes, canonical_factors(len(classes)))),
        seed=stream.seed,
        online=stream.online,
        task_id_given=stream.scenario.name == "task",
    )


def _split_rows(stream: Stream, arrivals: list[Arrival], index: int) -> SplitRows:
    """Split the rows of all classes of a task."""
    bands = {arrival.band for arrival in arrivals}
    if len(bands) != 1:
        return _join_splits([_split_rows(stream, [arrival], index) for arrival in arrivals])
    spaces = class_spaces(stream, bands.pop())
    keys = [ClassKey(stream.seed, a.label, a.band or 0, index) for a in arrivals]
    if spaces.points is None:
        return _join_splits([_split_sampled(spaces, key) for key in keys])
    return _split_listed(spaces, spaces.points, keys)


def _split_listed(spaces: ClassSpaces, points: Factors, keys: list[ClassKey]) -> SplitRows:
    """Split one finite pool for all classes at once; test rows may come from another space.

    A separate test space therefore leaves the training rows unchanged.
    """
    rows_of_split = split_finite(len(points.color), spaces.counts, keys)
    labels = np.array([key.label for key in keys], np.int64)
    train, val, test = (
        Rows(np.repeat(labels, rows.shape[1]), points.take(rows.reshape(-1)))
        for rows in rows_of_split
    )
    if spaces.test is not None:
        seen = np.concatenate(rows_of_split[:2], axis=1)
        tables = [
            take_test_rows(spaces.test, spaces.counts.test, key, [points.take(rows)])
            for key, rows in zip(keys, seen, strict=True)
        ]
        test = _join([_label(key.label, table) for key, table in zip(keys, tables, strict=True)])
    return train, val, test


def _split_sampled(spaces: ClassSpaces, key: ClassKey) -> SplitRows:
    train, val, test = split_sampled(spaces.train, spaces.test or spaces.train, spaces.counts, key)
    return _label(key.label, train), _label(key.label, val), _label(key.label, test)


def _join_splits(splits: list[SplitRows]) -> SplitRows:
    """Join the train, val and test rows of several classes."""
    trains, vals, tests = zip(*splits, strict=True) if splits else ((), (), ())
    return _join(trains), _join(vals), _join(tests)


def _blurry_rows(stream: Stream, scenario: Blurry, index: int) -> Rows:
    """Return the training rows of a blurry task: those that stayed and those that moved in."""
    tasks = len(stream)
    rows = class_spaces(stream, None).counts.train
    classes = tasks * stream.classes_per_task
    samples = blurry_tasks(stream.seed, classes, rows, tasks, scenario.disjoint, scenario.blurred)
    label, row = np.divmod(samples[index], rows)
    present = np.unique(label)
    rows_of_classes = _split_rows(
        stream, [Arrival(stream.first_class + int(c)) for c in present], 0
    )[0]
    chosen = np.searchsorted(present, label) * rows + row
    return Rows(rows_of_classes.labels[chosen], rows_of_classes.factors.take(chosen))


def _label(label: int, factors: Factors) -> Rows:
    return Rows(np.full(len(factors.color), label, np.int64), factors)


def _join(tables: Sequence[Rows]) -> Rows:
    """Concatenate tables of rows."""
    if not tables:
        return Rows(np.zeros(0, np.int64), canonical_factors(0))
    factors = zip(*(table.factors for table in tables), strict=True)
    columns = (np.concatenate(values) for values in factors)
    return Rows(np.concatenate([table.labels for table in tables]), Factors(*columns))
