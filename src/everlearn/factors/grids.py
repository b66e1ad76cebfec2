"""Common spaces of factors: the paper's grid, its continuous ranges, and random combinations."""

from __future__ import annotations

import math

import numpy as np

from everlearn.core.random import Purpose, check_seed, uniform
from everlearn.core.validate import check_int
from everlearn.factors.sets import Interval, Values
from everlearn.factors.spaces import UNIFORMS_PER_SAMPLE, Product, Space
from everlearn.factors.table import Factors

_FULL_TURN = 2 * math.pi


def grid_space(values: int = 5, *, colors: int = 1, orientation: str = "paper") -> Product:
    """Return the paper's grid: `values` each of scale, orientation, x and y, times all colours.

    Args:
        orientation: how angles are spaced. "paper" follows the original package, where the largest
            angle is 2 pi * values / (values + 1); "even" spaces them by 2 pi / values.
    """
    check_int(values, "values per factor", 1, 1024)
    check_int(colors, "colors", 1, 4096)
    if orientation not in ("paper", "even"):
        raise ValueError(f"orientation grid must be 'paper' or 'even', found {orientation!r}")
    if orientation == "paper":
        last_angle = _FULL_TURN * values / (values + 1)
    else:
        last_angle = _FULL_TURN * (values - 1) / values
    return Product(
        color=Values(tuple(range(colors))),
        scale=_linspace(0.5, 1.0, values) if values > 1 else Values((1.0,)),
        orientation=_linspace(0.0, last_angle, values),
        x=_linspace(0.0, 1.0, values) if values > 1 else Values((0.5,)),
        y=_linspace(0.0, 1.0, values) if values > 1 else Values((0.5,)),
    )


def grid(values: int = 5, *, colors: int = 1, orientation: str = "paper") -> Factors:
    """List the combinations of the paper's grid; colour varies slowest, y fastest."""
    return grid_space(values, colors=colors, orientation=orientation).points()


def continuous_space(*, colors: int = 1) -> Product:
    """Return the paper's ranges as continuous intervals."""
    check_int(colors, "colors", 1, 4096)
    return Product(
        color=Values(tuple(range(colors))),
        scale=Interval(0.5, 1.0),
        orientation=Interval(0.0, _FULL_TURN),
        x=Interval(0.0, 1.0),
        y=Interval(0.0, 1.0),
    )


def random_factors(seed: int, count: int, space: Space | None = None, *, index: int = 0) -> Factors:
    """Draw `count` random combinations; row i depends on (seed, index, i) only."""
    check_int(count, "count", 0, 2**31)
    u = uniform(
        check_seed(seed), Purpose.FACTORS, index, np.arange(count), count=UNIFORMS_PER_SAMPLE
    )
    return (space or continuous_space()).sample(u)


def _linspace(low: float, high: float, count: int) -> Values:
    return Values(tuple(np.linspace(low, high, count).tolist()))
