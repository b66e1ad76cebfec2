"""Check that a space of factors holds only combinations that a canvas can render."""

from __future__ import annotations

from everlearn.factors.sets import Interval, Values, ValueSet
from everlearn.factors.spaces import Difference, Mixture, Product
from everlearn.factors.table import BOUNDS, FACTOR_NAMES


def check_space(space: object, name: str, colors: int | None) -> None:
    """Raise unless every combination in a space can be rendered.

    Args:
        name: what error messages call the space.
        colors: number of colours of the canvas; None checks types but no values, as for an excluded
            space, of which only the intersection with another space matters.
    """
    if isinstance(space, Mixture):
        for component in space.components:
            check_space(component, name, colors)
    elif isinstance(space, Difference):
        check_space(space.base, name, colors)
        check_space(space.excluded, name, None)
    elif isinstance(space, Product):
        for factor, values in zip(FACTOR_NAMES, space.sets, strict=True):
            bounds = None if colors is None else BOUNDS[factor]
            _check_set(values, f"{factor} of {name}", bounds)
        if colors is not None:
            _check_colors(space.color, name, colors)
    else:
        raise TypeError(
            f"{name} must be a space of factors (Product, Difference, Mixture), found {space!r}"
        )


def _check_set(values: object, name: str, bounds: tuple[float, float] | None) -> None:
    if not isinstance(values, (Values, Interval)):
        raise TypeError(f"{name} must be Values or an Interval, found {values!r}")
    ends = values.values if isinstance(values, Values) else (values.low, values.high)
    if bounds is not None and not bounds[0] <= min(ends) <= max(ends) <= bounds[1]:
        raise ValueError(
            f"{name} must lie in {bounds[0]} .. {bounds[1]}, found {min(ends)} .. {max(ends)}"
        )


def _check_colors(values: ValueSet, name: str, colors: int) -> None:
    if not isinstance(values, Values) or not set(values.values) <= set(range(colors)):
        raise ValueError(
            f"color of {name} must be Values of whole numbers in 0 .. {colors - 1} (the canvas has "
            f"{colors} colours), found {values}"
        )
