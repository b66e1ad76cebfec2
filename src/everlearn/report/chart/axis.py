"""Axes: how far they reach, and how their numbers are written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from everlearn.report.spread import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.ticker import LogLocator

LEFT, BELOW = 56, 52  # pixels beside and below a plot, for its axes


def reach(values: Iterable[ArrayLike]) -> tuple[float, float]:
    """Ends of an axis from 0 that holds all values, with a little room beyond them."""
    found = np.concatenate([np.ravel(value) for value in values]).astype(np.float64)
    low, high = min(0.0, float(np.nanmin(found))), max(0.0, float(np.nanmax(found)))
    room = 0.06 * (high - low or 1.0)
    return low - room * (low < 0), high + room * (high > 0 or low == 0)


def number_across(axes: Axes, values: Iterable[ArrayLike], log: bool) -> None:
    """Write numbers below the axis: whole ones where all values are, powers spelled out."""
    found = np.concatenate([np.ravel(value) for value in values])
    if log:
        check_positive(found)
        axes.set_xscale("log", subs=[])
        axes.xaxis.set_major_locator(_powers(found))
    elif (found == np.rint(found)).all():
        axes.locator_params("x", integer=True)
    axes.xaxis.set_major_formatter(lambda value, _: short(value))


def _powers(values: Floats) -> LogLocator:
    """Powers of ten, on a short axis also twice and five times them: else it is almost bare."""
    from matplotlib.ticker import LogLocator

    near = np.max(values) < 500 * np.min(values)
    return LogLocator(subs=(1.0, 2.0, 5.0) if near else (1.0,))


def short(value: float) -> str:
    """Write the number of a tick: 20, 0.5, 10k, 3M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):g}{letter}"
    return f"{value:,g}".replace("-", "−")


def check_positive(values: ArrayLike) -> None:
    """Refuse what has no place on a logarithmic axis."""
    found = np.asarray(values, np.float64)
    if not (found > 0).all():
        wrong = found[~(found > 0)][0]
        raise ValueError(f"a logarithmic axis needs numbers over 0, found {wrong:g}; use log=False")
