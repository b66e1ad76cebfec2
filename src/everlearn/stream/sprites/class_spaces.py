"""The spaces of factors that the rows of a class come from, and how many rows each split takes."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from everlearn.factors import FACTOR_NAMES, Factors, Interval, Product, Space, Values, ValueSet
from everlearn.stream.split import Counts, count_rows, is_counts, split_held_out

if TYPE_CHECKING:
    from everlearn.stream.sprites.stream import Stream

RANGES = {"scale": (0.5, 1.0), "orientation": (0.0, 2 * math.pi), "x": (0.0, 1.0), "y": (0.0, 1.0)}
_MAX_BANDS = 1000


class ClassSpaces(NamedTuple):
    """The spaces of factors of a class.

    Attributes:
        train: the space of training and validation rows.
        test: the space of test rows; None where they come out of the training space.
        counts: the number of rows of each split.
        points: all points of the training space; None where it is infinite and sampled.
    """

    train: Space
    test: Space | None
    counts: Counts
    points: Factors | None


@lru_cache(maxsize=8)
def class_spaces(stream: Stream, band: int | None) -> ClassSpaces:
    """Return the spaces of a class, which depend only on its band."""
    train, test = _spaces(stream, band)
    nominal = len(stream.canvas.colors) * stream.values_per_factor**4
    points = None if train.size is None else train.points()
    size = nominal if points is None else len(points.color)
    test_size = None if test is None else (nominal if test.size is None else test.size)
    if stream.held_out is not None and not is_counts(stream.split):
        fractions = (stream.split[0] + stream.split[2], stream.split[1], 0.0)
        counts = count_rows(fractions, 1, size)._replace(test=test_size or 0)
    else:
        counts = count_rows(stream.split, stream.classes_per_task, size, test_size)
    return ClassSpaces(train, test, counts, points)


def _spaces(stream: Stream, band: int | None) -> tuple[Space, Space | None]:
    train = stream.space
    test = stream.test_factors
    if band is not None:
        given = stream.factors is not None
        train = _restrict(stream, train, band, given)
        test = None if test is None else _restrict(stream, test, band, True)
    if stream.held_out is not None:
        return split_held_out(train, stream.held_out)
    return train, test


def _restrict(stream: Stream, space: Space, band: int, given: bool) -> Product:
    scenario = stream.scenario
    if not isinstance(space, Product):
        raise ValueError(
            f"scenario {scenario.name!r} cuts a factor into bands; give factors and test_factors "
            f"as a Product, found {type(space).__name__}"
        )
    return restrict_to_band(space, scenario.factor, band, count_bands(scenario), given)


def count_bands(scenario: object) -> int:
    """Return how many bands a scenario cuts its factor into."""
    return int(getattr(scenario, "bands", 0) or getattr(scenario, "sessions", 0))


def restrict_to_band(space: Product, factor: str, band: int, bands: int, given: bool) -> Product:
    """Restrict one factor to a band.

    An interval is cut into equal parts. Values that the user gave are divided among the bands, in order.
    With the built-in grid, every band has as many values as the grid, inside its part of the range.
    """
    sets = dict(zip(FACTOR_NAMES, space.sets, strict=True))
    old = sets[factor]
    if isinstance(old, Interval):
        width = (old.high - old.low) / bands
        new: ValueSet = Interval(old.low + width * band, old.low + width * (band + 1))
    elif isinstance(old, Values) and given:
        new = _values_of_band(old, factor, band, bands)
    else:
        low, high = RANGES[factor]
        count = old.size or 1
        width = (high - low) / bands
        new = Values(tuple(low + width * (band + (i + 0.5) / count) for i in range(count)))
    return Product(**{**sets, factor: new})


def _values_of_band(values: Values, factor: str, band: int, bands: int) -> Values:
    count = len(values.values)
    if count < bands:
        raise ValueError(
            f"{bands} bands need {bands} values of {factor!r} or more, found {count}; give more values, "
            "an Interval, or fewer bands"
        )
    return Values(values.values[count * band // bands : count * (band + 1) // bands])


def check_spaces(stream: Stream) -> int:
    """Check that every class of every band can be split; return the largest number of rows per class."""
    if not hasattr(stream.scenario, "factor"):
        return _check_band(stream, None)
    bands = count_bands(stream.scenario)
    if stream.held_out is None and stream.factors is None and stream.test_factors is None:
        return _check_band(stream, 0)
    if bands > _MAX_BANDS:
        raise ValueError(f"spaces of factors go with at most {_MAX_BANDS} bands, found {bands}")
    return max(_check_band(stream, band) for band in range(bands))


def _check_band(stream: Stream, band: int | None) -> int:
    _, test, counts, points = class_spaces(stream, band)
    size = None if points is None else len(points.color)
    where = "" if band is None else f" in band {band} of {stream.scenario.factor}"
    if size == 0:
        raise ValueError(f"no combination of factors is left to train on{where}; hold out fewer")
    if counts.train < 1:
        raise ValueError(f"split {stream.split} leaves no training rows per class{where}")
    wanted = counts.train + counts.val + (counts.test if test is None else 0)
    if size is not None and wanted > size:
        raise ValueError(
            f"split {stream.split} asks for {wanted} rows per class, but there are {size} "
            f"combinations of factors{where}; ask for less or give more values_per_factor"
        )
    if test is not None and test.size is not None and max(counts.test, 1) > test.size:
        raise ValueError(
            f"split {stream.split} asks for {max(counts.test, 1)} test rows per class, but there are "
            f"{test.size} test combinations of factors{where}"
        )
    return sum(counts)
