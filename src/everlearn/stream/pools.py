"""Where the rows of a class come from: its spaces of factors, and how many rows each part gets."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from everlearn.factors import NAMES, Factors, Interval, Product, Set, Space, Values
from everlearn.stream.split import Counts, count_rows, held_back, is_counts

if TYPE_CHECKING:
    from everlearn.stream.spec import Stream

RANGES = {"scale": (0.5, 1.0), "orientation": (0.0, 2 * math.pi), "x": (0.0, 1.0), "y": (0.0, 1.0)}
_MOST_CHECKED = 1000


class Pools(NamedTuple):
    """The spaces of a class.

    Attributes:
        train: what training and validation rows come from.
        test: what test rows come from; None where they come out of the training space.
        counts: rows of each part.
        points: the list of the training space; None where it is drawn from.
    """

    train: Space
    test: Space | None
    counts: Counts
    points: Factors | None


@lru_cache(maxsize=8)
def find_pools(stream: Stream, band: int | None) -> Pools:
    """The pools of a class, which depend on its band alone."""
    train, test = _spaces(stream, band)
    nominal = len(stream.canvas.colors) * stream.values_per_factor**4
    points = None if train.size is None else train.points()
    size = nominal if points is None else len(points.color)
    test_size = None if test is None else (nominal if test.size is None else test.size)
    if stream.held_out is not None and not is_counts(stream.split):
        shares = (stream.split[0] + stream.split[2], stream.split[1], 0.0)
        counts = count_rows(shares, 1, size)._replace(test=test_size or 0)
    else:
        counts = count_rows(stream.split, stream.classes_per_task, size, test_size)
    return Pools(train, test, counts, points)


def _spaces(stream: Stream, band: int | None) -> tuple[Space, Space | None]:
    train, test = stream.space, stream.test_factors
    if band is not None:
        given = stream.factors is not None
        train = _narrow(stream, train, band, given)
        test = None if test is None else _narrow(stream, test, band, True)
    if stream.held_out is not None:
        return held_back(train, stream.held_out)
    return train, test


def _narrow(stream: Stream, space: Space, band: int, given: bool) -> Product:
    scenario = stream.scenario
    if not isinstance(space, Product):
        raise ValueError(
            f"scenario {scenario.name!r} cuts a factor into bands; give factors and test_factors "
            f"as a Product, found {type(space).__name__}"
        )
    return narrow(space, scenario.factor, band, count_bands(scenario), given)


def count_bands(scenario: object) -> int:
    """How many bands a scenario cuts its factor into."""
    return int(getattr(scenario, "bands", 0) or getattr(scenario, "sessions", 0))


def narrow(space: Product, factor: str, band: int, bands: int, given: bool) -> Product:
    """Restrict one factor to a band.

    An interval is cut into equal parts. Values that the user gave are dealt out, in their order; of the
    built-in grid every band has as many values as the grid, inside its part of the whole range.
    """
    sets = dict(zip(NAMES, space.sets, strict=True))
    old = sets[factor]
    if isinstance(old, Interval):
        width = (old.high - old.low) / bands
        new: Set = Interval(old.low + width * band, old.low + width * (band + 1))
    elif isinstance(old, Values) and given:
        new = _deal(old, factor, band, bands)
    else:
        low, high = RANGES[factor]
        count, width = old.size or 1, (high - low) / bands
        new = Values(tuple(low + width * (band + (i + 0.5) / count) for i in range(count)))
    return Product(**{**sets, factor: new})


def _deal(values: Values, factor: str, band: int, bands: int) -> Values:
    count = len(values.values)
    if count < bands:
        raise ValueError(
            f"{bands} bands need {bands} values of {factor!r} or more, found {count}; give more values, "
            "an Interval, or fewer bands"
        )
    return Values(values.values[count * band // bands : count * (band + 1) // bands])


def check_pools(stream: Stream) -> int:
    """Check that every class of every band can be split as asked; the most rows a class has."""
    if not hasattr(stream.scenario, "factor"):
        return _check(stream, None)
    bands = count_bands(stream.scenario)
    if stream.held_out is None and stream.factors is None and stream.test_factors is None:
        return _check(stream, 0)
    if bands > _MOST_CHECKED:
        raise ValueError(f"spaces of factors go with at most {_MOST_CHECKED} bands, found {bands}")
    return max(_check(stream, band) for band in range(bands))


def _check(stream: Stream, band: int | None) -> int:
    _, test, counts, points = find_pools(stream, band)
    size = None if points is None else len(points.color)
    where = "" if band is None else f" in band {band} of {stream.scenario.factor}"
    if size == 0:
        raise ValueError(f"no combination of factors is left to train on{where}; hold out fewer")
    if counts.train < 1:
        raise ValueError(f"split {stream.split} leaves no training rows a class{where}")
    wanted = counts.train + counts.val + (counts.test if test is None else 0)
    if size is not None and wanted > size:
        raise ValueError(
            f"split {stream.split} asks for {wanted} rows a class, but there are {size} "
            f"combinations of factors{where}; ask for less or give more values_per_factor"
        )
    if test is not None and test.size is not None and max(counts.test, 1) > test.size:
        raise ValueError(
            f"split {stream.split} asks for {max(counts.test, 1)} test rows a class, but there are "
            f"{test.size} test combinations of factors{where}"
        )
    return sum(counts)
