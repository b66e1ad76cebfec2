"""Sets of values that one factor may take: a finite list or an interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from everlearn.border import check_finite
from everlearn.philox import Floats

Bools = NDArray[np.bool_]


class Set(Protocol):
    """The values that one factor may take."""

    @property
    def size(self) -> int | None:
        """How many values there are; None for a continuum."""

    def at(self, u: Floats) -> Floats:
        """Map numbers in [0, 1) onto values, evenly."""

    def contains(self, values: NDArray[Any]) -> Bools:
        """Tell which values belong."""


@dataclass(frozen=True)
class Values:
    """A finite set of values, in the order given."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check that there is something to choose from."""
        object.__setattr__(self, "values", tuple(check_finite(v, "a value") for v in self.values))
        if not self.values:
            raise ValueError("Values needs one value at least, found none")
        if len(set(self.values)) != len(self.values):
            raise ValueError(f"Values must be distinct, found {self.values}")

    @property
    def size(self) -> int:
        """Count the values."""
        return len(self.values)

    def at(self, u: Floats) -> Floats:
        """Map numbers in [0, 1) onto the values."""
        return np.array(self.values)[(u * len(self.values)).astype(np.int64)]

    def contains(self, values: NDArray[Any]) -> Bools:
        """Tell which are among the values, up to rounding."""
        equal = np.isclose(np.asarray(values)[:, None], np.array(self.values), 0.0, 1e-9)
        found: Bools = equal.any(axis=1)
        return found


@dataclass(frozen=True)
class Interval:
    """All values from low (included) to high (excluded)."""

    low: float
    high: float

    def __post_init__(self) -> None:
        """Check the order of the ends."""
        for name in ("low", "high"):
            object.__setattr__(self, name, check_finite(getattr(self, name), name))
        if not self.low < self.high:
            raise ValueError(f"Interval needs low < high, found {self.low} and {self.high}")

    @property
    def size(self) -> None:
        """A continuum has no size."""
        return None

    def at(self, u: Floats) -> Floats:
        """Map numbers in [0, 1) onto the interval."""
        return self.low + (self.high - self.low) * u

    def contains(self, values: NDArray[Any]) -> Bools:
        """Tell which lie in the interval."""
        array = np.asarray(values)
        return (array >= self.low) & (array < self.high)


def meet(one: Set, other: Set) -> Set | None:
    """What two sets have in common; None where that is nothing."""
    if isinstance(one, Interval) and isinstance(other, Interval):
        low, high = max(one.low, other.low), min(one.high, other.high)
        return Interval(low, high) if low < high else None
    finite, rest = (one, other) if isinstance(one, Values) else (other, one)
    if not isinstance(finite, Values):
        raise TypeError(f"only Values and Interval can be met, found {one!r} and {other!r}")
    inside = rest.contains(np.array(finite.values))
    kept = tuple(v for v, keep in zip(finite.values, inside, strict=True) if keep)
    return Values(kept) if kept else None
