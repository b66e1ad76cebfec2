"""Spaces of factor combinations, which can be sampled and tested for membership.

Spaces compose: `Product` (one set of values per factor), `Difference` (one space without another) and
`Mixture` (a weighted choice among spaces). Held-out combinations are a difference and correlated
factors a mixture, so neither needs a filter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from everlearn.core.random import Floats
from everlearn.core.validate import check_finite
from everlearn.factors.sets import Bools, Values, ValueSet, intersect
from everlearn.factors.table import FACTOR_NAMES, Factors

_MAX_TRIES = 64


class Space(Protocol):
    """A set of factor combinations."""

    @property
    def size(self) -> int | None:
        """Number of combinations; None for a space that can be sampled but not listed."""

    def points(self) -> Factors:
        """List every combination; raises ValueError where `size` is None."""

    def sample(self, u: Floats) -> Factors:
        """Map uniform numbers (N, UNIFORMS_PER_SAMPLE) in [0, 1) to N combinations."""

    def contains(self, factors: Factors) -> Bools:
        """Return which combinations are in the space."""


# One number per factor, and one that selects the component of a mixture.
UNIFORMS_PER_SAMPLE = len(FACTOR_NAMES) + 1


@dataclass(frozen=True)
class Product:
    """Every combination of the values of five sets, one per factor."""

    color: ValueSet = Values((0,))
    scale: ValueSet = Values((1.0,))
    orientation: ValueSet = Values((0.0,))
    x: ValueSet = Values((0.5,))
    y: ValueSet = Values((0.5,))

    @property
    def sets(self) -> tuple[ValueSet, ...]:
        """The five sets, in the order of FACTOR_NAMES."""
        return (self.color, self.scale, self.orientation, self.x, self.y)

    @property
    def size(self) -> int | None:
        """Product of the sizes of the sets; None if one of them is a continuum."""
        sizes = [s.size for s in self.sets]
        return None if None in sizes else math.prod(s for s in sizes if s is not None)

    def points(self) -> Factors:
        """List every combination; colour varies slowest, y fastest."""
        _require_finite(self)
        axes = [np.array(s.values) for s in self.sets if isinstance(s, Values)]
        grid = np.meshgrid(*axes, indexing="ij")
        return _to_factors([axis.reshape(-1) for axis in grid])

    def sample(self, u: Floats) -> Factors:
        """Sample each factor from its set."""
        return _to_factors([s.sample(u[:, i]) for i, s in enumerate(self.sets)])

    def intersect(self, other: Product) -> Product | None:
        """Return the intersection of two products; None where it is empty."""
        sets = [intersect(a, b) for a, b in zip(self.sets, other.sets, strict=True)]
        nonempty = [s for s in sets if s is not None]
        return Product(*nonempty) if len(nonempty) == len(sets) else None

    def contains(self, factors: Factors) -> Bools:
        """Return which combinations have every factor in its set."""
        inside = [s.contains(column) for s, column in zip(self.sets, factors, strict=True)]
        return reduce(np.logical_and, inside)


@dataclass(frozen=True)
class Difference:
    """All of `base` except what `excluded` contains."""

    base: Space
    excluded: Space

    @property
    def size(self) -> int | None:
        """Number of combinations left; None if `base` cannot be listed."""
        return None if self.base.size is None else len(self.points().color)

    def points(self) -> Factors:
        """List the combinations left, in the order of `base`."""
        everything = self.base.points()
        return everything.take(~self.excluded.contains(everything))

    def sample(self, u: Floats) -> Factors:
        """Sample from `base`; samples inside `excluded` are redrawn from scrambled uniforms."""
        out = self.base.sample(u)
        rejected = np.flatnonzero(self.excluded.contains(out))
        for _ in range(_MAX_TRIES):
            if not len(rejected):
                return out
            u = _scramble(u)
            redrawn = self.base.sample(u[rejected])
            for column, new in zip(out, redrawn, strict=True):
                column[rejected] = new
            rejected = rejected[self.excluded.contains(redrawn)]
        raise ValueError(
            f"{_MAX_TRIES} draws from {self} were all excluded; make the excluded space smaller"
        )

    def contains(self, factors: Factors) -> Bools:
        """Return which combinations are in `base` but not in `excluded`."""
        return self.base.contains(factors) & ~self.excluded.contains(factors)


@dataclass(frozen=True)
class Mixture:
    """A weighted mixture of spaces, for correlated factors."""

    components: tuple[Space, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check that every component has a positive weight."""
        object.__setattr__(self, "components", tuple(self.components))
        object.__setattr__(
            self, "weights", tuple(check_finite(w, "a weight") for w in self.weights)
        )
        count = len(self.components)
        if not count or count != len(self.weights) or min(self.weights) <= 0:
            raise ValueError(
                f"Mixture needs one positive weight per component, found {count} components and "
                f"weights {self.weights}"
            )

    @property
    def size(self) -> None:
        """None: a list of combinations would lose the weights."""
        return None

    def points(self) -> Factors:
        """Raise ValueError: a mixture can only be sampled."""
        _require_finite(self)
        raise AssertionError

    def sample(self, u: Floats) -> Factors:
        """Select a component by the last uniform number, then sample it by the others."""
        bounds = np.cumsum(self.weights) / np.sum(self.weights)
        last = len(self.components) - 1
        selected = np.minimum(np.searchsorted(bounds, u[:, -1], side="right"), last)
        reused = _rescale_selector(u[:, -1], bounds, selected)
        inner = np.concatenate((u[:, :-1], reused[:, None]), axis=1)
        out = _to_factors([np.zeros(len(u)) for _ in FACTOR_NAMES])
        for index, component in enumerate(self.components):
            rows = np.flatnonzero(selected == index)
            drawn = component.sample(inner[rows])
            for column, new in zip(out, drawn, strict=True):
                column[rows] = new
        return out

    def contains(self, factors: Factors) -> Bools:
        """Return which combinations are in any component."""
        return reduce(np.logical_or, [part.contains(factors) for part in self.components])


def _rescale_selector(u: Floats, bounds: Floats, selected: NDArray[np.int64]) -> Floats:
    """Stretch the number that selected a component back to [0, 1), for mixtures of mixtures."""
    low = np.concatenate(([0.0], bounds))[selected]
    return np.clip((u - low) / (bounds[selected] - low), 0.0, np.nextafter(1.0, 0.0))


def _scramble(u: Floats) -> Floats:
    """Map numbers in [0, 1) to other, again uniform, numbers by mixing their 53 bits."""
    bits = (u * 2.0**53).astype(np.uint64)
    with np.errstate(over="ignore"):
        mixed = (bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(
            0x9E3779B97F4A7C15
        )
        mixed = mixed ^ (mixed >> np.uint64(32))
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _require_finite(space: Space) -> None:
    if space.size is None:
        raise ValueError(f"only a finite space has a list of points; sample {space} instead")


def _to_factors(columns: list[Floats]) -> Factors:
    return Factors(columns[0].astype(np.int64), *columns[1:])
