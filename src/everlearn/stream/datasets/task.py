"""Build one task of an ArrayStream; only row numbers are moved, never images."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from everlearn.factors import theta
from everlearn.stream.datasets.bands import find_bands, is_banded
from everlearn.stream.datasets.files import Arrays, Ints
from everlearn.stream.datasets.images import DatasetImages
from everlearn.stream.datasets.latents import LatentRows, LatentTable
from everlearn.stream.datasets.scenario import (
    blurry_classes,
    find_file_lists,
    order_classes,
    task_arrivals,
)
from everlearn.stream.datasets.sessions import assign_sessions, hold_out_sessions
from everlearn.stream.datasets.sources import load
from everlearn.stream.datasets.splits import ClassSplits, split_rows
from everlearn.stream.scenarios.blurry import Blurry, blurry_tasks
from everlearn.stream.scenarios.scenario import Arrival
from everlearn.stream.split import imbalance_mask
from everlearn.stream.task import ImageSource, Split, Task

if TYPE_CHECKING:
    from everlearn.stream.datasets.stream import ArrayStream


class Tables(NamedTuple):
    """What all tasks of a stream share: the data, the splits, the class order and the band of each row."""

    arrays: Arrays
    splits: ClassSplits
    order: Ints
    bands: Ints | None


def build_array_task(stream: ArrayStream, index: int) -> Task:
    """Make one task."""
    tables = _tables(stream, stream.folder)
    arrivals = task_arrivals(stream, tables.arrays, tables.order, index)
    train = _take(tables, tables.splits.train, arrivals)
    if isinstance(stream.scenario, Blurry):
        train = _blurry_rows(stream, stream.folder)[index]
    if stream.imbalance > 1:
        train = train[
            imbalance_mask(stream.seed, index, tables.arrays.labels[train], stream.imbalance)
        ]
    # An official test set has its own sessions.
    tested = arrivals if tables.arrays.test is None else [Arrival(a.label) for a in arrivals]
    present = [*(a.label for a in arrivals), *np.unique(tables.arrays.labels[train]).tolist()]
    classes = tuple(dict.fromkeys(present))
    return Task(
        index=index,
        classes=classes,
        train=_split(stream, tables.arrays, train),
        val=_split(stream, tables.arrays, _take(tables, tables.splits.val, arrivals)),
        test=_split(stream, tables.arrays, _take(tables, tables.splits.test, tested)),
        canonical=_split(stream, tables.arrays, _exemplars(tables, classes, train)),
        seed=stream.seed,
        online=stream.online,
        task_id_given=stream.scenario.name == "task",
    )


@lru_cache(maxsize=4)
def _tables(stream: ArrayStream, folder: Path) -> Tables:
    """Return the tables of a stream; equal streams may have different folders."""
    scenario = stream.scenario
    seed = stream.seed
    arrays = load(stream.name, folder, find_file_lists(scenario))
    arrays = assign_sessions(
        hold_out_sessions(arrays, scenario, seed, stream.test_share), scenario, seed
    )
    bands = find_bands(scenario, arrays)
    by_session = arrays.sessions is not None and is_banded(scenario)
    splits = split_rows(
        arrays,
        seed,
        stream.val_share,
        stream.test_share if arrays.test is None else None,
        bands if by_session else None,
    )
    order = order_classes(np.array(list(splits.train)), seed, stream.class_order)
    return Tables(arrays, splits, order, bands)


def _take(tables: Tables, split: dict[int, Ints], arrivals: list[Arrival]) -> Ints:
    """Return the rows of a split that belong to some arrivals."""
    chosen = [np.zeros(0, np.int64)]
    for label, band in arrivals:
        rows = split[label]
        if band is not None and tables.bands is not None:
            rows = rows[tables.bands[rows] == band]
        chosen.append(rows)
    return np.concatenate(chosen)


@lru_cache(maxsize=4)
def _blurry_rows(stream: ArrayStream, folder: Path) -> tuple[Ints, ...]:
    """Return the training rows of every blurry task, for classes of different sizes.

    All classes are padded to the size of the largest; the padding is then left out, so that every
    sample is in exactly one task.
    """
    tables = _tables(stream, folder)
    count = blurry_classes(stream, len(tables.order))
    of_class = [tables.splits.train[int(label)] for label in tables.order[:count]]
    largest = max(len(rows) for rows in of_class)
    table = np.full((count, largest), -1)
    for place, rows in enumerate(of_class):
        table[place, : len(rows)] = rows
    scenario = stream.scenario
    tasks = blurry_tasks(
        stream.seed, count, largest, len(stream), scenario.disjoint, scenario.blurred
    )
    found = (table.reshape(-1)[samples] for samples in tasks)
    return tuple(rows[rows >= 0] for rows in found)


def _exemplars(tables: Tables, classes: tuple[int, ...], train: Ints) -> Ints:
    """Return the canonical row of each class, or else its first training row in this task or at all."""
    known = tables.arrays.exemplars or {}
    rows = np.sort(train)[::-1]
    first = dict(zip(tables.arrays.labels[rows].tolist(), rows.tolist(), strict=True))
    first = {label: int(tables.splits.train[label][0]) for label in classes} | first | known
    return np.array([first[label] for label in classes], np.int64)


def _split(stream: ArrayStream, arrays: Arrays, rows: Ints) -> Split:
    factors = arrays.factors and arrays.factors.take(rows)
    images = _images(stream, arrays, rows)
    return Split(arrays.labels[rows], images, factors, factors and theta(factors))


def _images(stream: ArrayStream, arrays: Arrays, rows: Ints) -> ImageSource:
    if isinstance(arrays.images, LatentTable):
        return LatentRows(arrays.images, rows)
    return DatasetImages(arrays.images, rows, stream.canvas)
