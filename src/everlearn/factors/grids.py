"""The usual spaces and tables of factors: the paper's grid, its ranges, random draws."""

from __future__ import annotations

import math

import numpy as np

from everlearn.border import check_whole
from everlearn.factors.sets import Interval, Values
from everlearn.factors.spaces import UNIFORMS, Product, Space
from everlearn.factors.table import Factors
from everlearn.philox import Purpose, check_seed, uniform

TURN = 2 * math.pi


def grid_space(values: int = 5, *, colors: int = 1, orientation: str = "paper") -> Product:
    """The paper's grid: `values` of each of scale, orientation, x and y, and all colours.

    Args:
        orientation: "paper" spaces angles by 2 pi / (values + 1) except for a shorter last step, as
            the original package does for its n + 1 values without the last; "even" by 2 pi / values.
    """
    check_whole(values, "values per factor", 1, 1024)
    check_whole(colors, "colors", 1, 4096)
    if orientation not in ("paper", "even"):
        raise ValueError(f"orientation grid must be 'paper' or 'even', found {orientation!r}")
    last = TURN * values / (values + 1) if orientation == "paper" else TURN * (values - 1) / values
    return Product(
        color=Values(tuple(range(colors))),
        scale=_spaced(0.5, 1.0, values) if values > 1 else Values((1.0,)),
        orientation=_spaced(0.0, last, values),
        x=_spaced(0.0, 1.0, values) if values > 1 else Values((0.5,)),
        y=_spaced(0.0, 1.0, values) if values > 1 else Values((0.5,)),
    )


def grid(values: int = 5, *, colors: int = 1, orientation: str = "paper") -> Factors:
    """List the paper's grid, colour outermost and y fastest."""
    return grid_space(values, colors=colors, orientation=orientation).points()


def continuous_space(*, colors: int = 1) -> Product:
    """The ranges of the paper without the grid: every value in between may occur."""
    check_whole(colors, "colors", 1, 4096)
    return Product(
        color=Values(tuple(range(colors))),
        scale=Interval(0.5, 1.0),
        orientation=Interval(0.0, TURN),
        x=Interval(0.0, 1.0),
        y=Interval(0.0, 1.0),
    )


def random(seed: int, count: int, space: Space | None = None, *, index: int = 0) -> Factors:
    """Draw `count` combinations; row i depends on (seed, index, i) alone."""
    check_whole(count, "count", 0, 2**31)
    u = uniform(check_seed(seed), Purpose.FACTORS, index, np.arange(count), count=UNIFORMS)
    return (space or continuous_space()).sample(u)


def _spaced(low: float, high: float, count: int) -> Values:
    return Values(tuple(np.linspace(low, high, count).tolist()))
