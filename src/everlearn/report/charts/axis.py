"""Axes: their limits, and how their tick labels are written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from everlearn.report.tables.intervals import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.ticker import LogLocator

LEFT, BELOW = 56, 52  # pixels beside and below a plot, for its axes
_UNITS = ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))  # from this value on, divisor, suffix


def axis_limits(values: Iterable[ArrayLike]) -> tuple[float, float]:
    """Return the ends of an axis that contains 0 and all values, with a small margin."""
    found = np.concatenate([np.ravel(value) for value in values]).astype(np.float64)
    low = min(0.0, float(np.nanmin(found)))
    high = max(0.0, float(np.nanmax(found)))
    margin = 0.06 * (high - low or 1.0)
    return low - margin * (low < 0), high + margin * (high > 0 or low == 0)


def format_x_axis(axes: Axes, values: Iterable[ArrayLike], log: bool) -> None:
    """Choose the ticks of the x axis: integers if all values are, and no powers of ten as 10^n."""
    found = np.concatenate([np.ravel(value) for value in values])
    if log:
        check_positive(found)
        axes.set_xscale("log", subs=[])
        axes.xaxis.set_major_locator(_log_ticks(found))
    elif (found == np.rint(found)).all():
        axes.locator_params("x", integer=True)
    axes.xaxis.set_major_formatter(lambda value, _: tick_label(value))


def _log_ticks(values: Floats) -> LogLocator:
    from matplotlib.ticker import LogLocator

    # Powers of ten alone would leave a short axis almost bare.
    short = np.max(values) < 500 * np.min(values)
    return LogLocator(subs=(1.0, 2.0, 5.0) if short else (1.0,))


def tick_label(value: float) -> str:
    """Format the number at a tick: 20, 0.5, 10k, 3M."""
    for start, divisor, suffix in _UNITS:
        if abs(value) >= start:
            return f"{value / divisor:g}{suffix}"
    return f"{value:,g}".replace("-", "−")


def check_positive(values: ArrayLike) -> None:
    """Refuse values that a logarithmic axis cannot show."""
    found = np.asarray(values, np.float64)
    if not (found > 0).all():
        wrong = found[~(found > 0)][0]
        raise ValueError(f"a logarithmic axis needs numbers over 0, found {wrong:g}; use log=False")
