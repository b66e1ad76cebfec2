"""From an array stream's settings to one task: its rows, its splits. Only row numbers are moved."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from everlearn.factors import theta
from everlearn.stream.arrays.bands import find_bands, is_banded
from everlearn.stream.arrays.files import Arrays, Ints
from everlearn.stream.arrays.latents import LatentRows, LatentTable
from everlearn.stream.arrays.parts import Parts, part_rows
from everlearn.stream.arrays.photos import Photos
from everlearn.stream.arrays.plan import blurry_classes, find_lists, order_classes, plan_task
from everlearn.stream.arrays.sessions import deal_sessions, hold_out
from everlearn.stream.arrays.sources import load
from everlearn.stream.arrivals import Arrival
from everlearn.stream.blurry import Blurry, blurry_tasks
from everlearn.stream.split import thin
from everlearn.stream.task import Pictures, Split, Task

if TYPE_CHECKING:
    from everlearn.stream.arrays.spec import ArrayStream


class Tables(NamedTuple):
    """What all tasks of a stream share: order is of class ids, bands are of rows."""

    arrays: Arrays
    parts: Parts
    order: Ints
    bands: Ints | None


def build_array_task(stream: ArrayStream, index: int) -> Task:
    """Make one task."""
    tables = _tables(stream, stream.folder)
    arrivals = plan_task(stream, tables.arrays, tables.order, index)
    train = _take(tables, tables.parts.train, arrivals)
    if isinstance(stream.scenario, Blurry):
        train = _blurry_rows(stream, stream.folder)[index]
    if stream.imbalance > 1:
        train = train[thin(stream.seed, index, tables.arrays.labels[train], stream.imbalance)]
    # An official test set has its own sessions.
    tested = arrivals if tables.arrays.test is None else [Arrival(a.label) for a in arrivals]
    present = [*(a.label for a in arrivals), *np.unique(tables.arrays.labels[train]).tolist()]
    classes = tuple(dict.fromkeys(present))
    return Task(
        index=index,
        classes=classes,
        train=_split(stream, tables.arrays, train),
        val=_split(stream, tables.arrays, _take(tables, tables.parts.val, arrivals)),
        test=_split(stream, tables.arrays, _take(tables, tables.parts.test, tested)),
        canonical=_split(stream, tables.arrays, _exemplars(tables, classes, train)),
        seed=stream.seed,
        online=stream.online,
        tells_index=stream.scenario.name == "task",
    )


@lru_cache(maxsize=4)
def _tables(stream: ArrayStream, folder: Path) -> Tables:
    """The tables of a stream; equal streams may have different folders."""
    scenario, seed = stream.scenario, stream.seed
    arrays = load(stream.name, folder, find_lists(scenario))
    arrays = deal_sessions(hold_out(arrays, scenario, seed, stream.test_share), scenario, seed)
    bands, share = find_bands(scenario, arrays), stream.test_share
    by_session = arrays.sessions is not None and is_banded(scenario)
    parts = part_rows(
        arrays,
        seed,
        stream.val_share,
        share if arrays.test is None else None,
        bands if by_session else None,
    )
    order = order_classes(np.array(list(parts.train)), seed, stream.class_order)
    return Tables(arrays, parts, order, bands)


def _take(tables: Tables, part: dict[int, Ints], arrivals: list[Arrival]) -> Ints:
    """The rows of a part that come with some arrivals."""
    chosen = [np.zeros(0, np.int64)]
    for label, band in arrivals:
        rows = part[label]
        if band is not None and tables.bands is not None:
            rows = rows[tables.bands[rows] == band]
        chosen.append(rows)
    return np.concatenate(chosen)


@lru_cache(maxsize=4)
def _blurry_rows(stream: ArrayStream, folder: Path) -> tuple[Ints, ...]:
    """The training rows of every blurry task, whatever the sizes of classes.

    All classes are thought as large as the largest; samples that are not there are then left out, so
    that every sample comes in exactly one task.
    """
    tables = _tables(stream, folder)
    count = blurry_classes(stream, len(tables.order))
    of_class = [tables.parts.train[int(label)] for label in tables.order[:count]]
    most = max(len(rows) for rows in of_class)
    table = np.full((count, most), -1)
    for place, rows in enumerate(of_class):
        table[place, : len(rows)] = rows
    scenario = stream.scenario
    tasks = blurry_tasks(stream.seed, count, most, len(stream), scenario.disjoint, scenario.blurred)
    found = (table.reshape(-1)[samples] for samples in tasks)
    return tuple(rows[rows >= 0] for rows in found)


def _exemplars(tables: Tables, classes: tuple[int, ...], train: Ints) -> Ints:
    """The canonical row of each class, or else its first training row in this task, or of all."""
    known = tables.arrays.exemplars or {}
    rows = np.sort(train)[::-1]
    first = dict(zip(tables.arrays.labels[rows].tolist(), rows.tolist(), strict=True))
    first = {label: int(tables.parts.train[label][0]) for label in classes} | first | known
    return np.array([first[label] for label in classes], np.int64)


def _split(stream: ArrayStream, arrays: Arrays, rows: Ints) -> Split:
    factors = arrays.factors and arrays.factors.take(rows)
    pictures = _pictures(stream, arrays, rows)
    return Split(arrays.labels[rows], pictures, factors, factors and theta(factors))


def _pictures(stream: ArrayStream, arrays: Arrays, rows: Ints) -> Pictures:
    if isinstance(arrays.images, LatentTable):
        return LatentRows(arrays.images, rows)
    return Photos(arrays.images, rows, stream.canvas)
