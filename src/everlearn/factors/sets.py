"""Sets of values that one factor may take: a finite list or an interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from everlearn.core.random import Floats
from everlearn.core.validate import check_finite

Bools = NDArray[np.bool_]


class ValueSet(Protocol):
    """The values that one factor may take."""

    @property
    def size(self) -> int | None:
        """Number of values; None for a continuum."""

    def sample(self, u: Floats) -> Floats:
        """Map uniform numbers in [0, 1) to values of the set, uniformly."""

    def contains(self, values: NDArray[Any]) -> Bools:
        """Return which values are in the set."""


@dataclass(frozen=True)
class Values:
    """A finite set of values, in the order given."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check that the values are finite, distinct and at least one."""
        object.__setattr__(self, "values", tuple(check_finite(v, "a value") for v in self.values))
        if not self.values:
            raise ValueError("Values needs at least one value, found none")
        if len(set(self.values)) != len(self.values):
            raise ValueError(f"Values must be distinct, found {self.values}")

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.values)

    def sample(self, u: Floats) -> Floats:
        """Map uniform numbers in [0, 1) to the values, all equally likely."""
        return np.array(self.values)[(u * len(self.values)).astype(np.int64)]

    def contains(self, values: NDArray[Any]) -> Bools:
        """Return which values are in the set, up to rounding (1e-9)."""
        equal = np.isclose(np.asarray(values)[:, None], np.array(self.values), 0.0, 1e-9)
        found: Bools = equal.any(axis=1)
        return found


@dataclass(frozen=True)
class Interval:
    """All values from low (included) to high (excluded)."""

    low: float
    high: float

    def __post_init__(self) -> None:
        """Check that the ends are finite and in order."""
        for name in ("low", "high"):
            object.__setattr__(self, name, check_finite(getattr(self, name), name))
        if not self.low < self.high:
            raise ValueError(f"Interval needs low < high, found {self.low} and {self.high}")

    @property
    def size(self) -> None:
        """None: a continuum has no number of values."""
        return None

    def sample(self, u: Floats) -> Floats:
        """Map uniform numbers in [0, 1) to the interval, uniformly."""
        return self.low + (self.high - self.low) * u

    def contains(self, values: NDArray[Any]) -> Bools:
        """Return which values lie in the interval."""
        array = np.asarray(values)
        return (array >= self.low) & (array < self.high)


def intersect(first: ValueSet, second: ValueSet) -> ValueSet | None:
    """Return the intersection of two sets; None where it is empty."""
    if isinstance(first, Interval) and isinstance(second, Interval):
        low = max(first.low, second.low)
        high = min(first.high, second.high)
        return Interval(low, high) if low < high else None
    finite, other = (first, second) if isinstance(first, Values) else (second, first)
    if not isinstance(finite, Values):
        raise TypeError(f"intersect takes Values and Interval, found {first!r} and {second!r}")
    inside = other.contains(np.array(finite.values))
    kept = tuple(v for v, keep in zip(finite.values, inside, strict=True) if keep)
    return Values(kept) if kept else None
