"""Whether a space holds only combinations that can be drawn on a canvas."""

from __future__ import annotations

from everlearn.factors.sets import Interval, Set, Values
from everlearn.factors.spaces import Minus, Mixture, Product
from everlearn.factors.table import BOUNDS, NAMES


def check_space(space: object, name: str, colors: int | None) -> None:
    """Check that a space holds combinations that can be drawn.

    Args:
        colors: how many colours the canvas has; None checks no values, for spaces of which only what
            they share with another matters.
    """
    if isinstance(space, Mixture):
        for part in space.parts:
            check_space(part, name, colors)
    elif isinstance(space, Minus):
        check_space(space.whole, name, colors)
        check_space(space.hole, name, None)
    elif isinstance(space, Product):
        for factor, values in zip(NAMES, space.sets, strict=True):
            _check_set(
                values, f"{factor} of {name}", BOUNDS[factor] if colors is not None else None
            )
        if colors is not None:
            _check_colors(space.color, name, colors)
    else:
        raise TypeError(
            f"{name} must be a space of factors (Product, Minus, Mixture), found {space!r}"
        )


def _check_set(values: object, name: str, bounds: tuple[float, float] | None) -> None:
    if not isinstance(values, (Values, Interval)):
        raise TypeError(f"{name} must be Values or an Interval, found {values!r}")
    ends = values.values if isinstance(values, Values) else (values.low, values.high)
    if bounds is not None and not bounds[0] <= min(ends) <= max(ends) <= bounds[1]:
        raise ValueError(
            f"{name} must lie in {bounds[0]} .. {bounds[1]}, found {min(ends)} .. {max(ends)}"
        )


def _check_colors(values: Set, name: str, colors: int) -> None:
    if not isinstance(values, Values) or not set(values.values) <= set(range(colors)):
        raise ValueError(
            f"color of {name} must be Values of whole numbers in 0 .. {colors - 1} (the canvas has "
            f"{colors} colours), found {values}"
        )
