"""Spaces of factor combinations: sets that can be sampled and asked for membership.

They combine: `Product` of one set a factor, `Minus` (all of one but what another contains) and
`Mixture` (one of several, by weight). Held-out combinations and correlated factors are spaces, so
they are defined rather than filtered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from everlearn.border import check_finite
from everlearn.factors.sets import Bools, Set, Values, meet
from everlearn.factors.table import NAMES, Factors
from everlearn.philox import Floats

_MOST_TRIES = 64


class Space(Protocol):
    """A set of factor combinations."""

    @property
    def size(self) -> int | None:
        """How many combinations there are; None where they are drawn rather than listed."""

    def points(self) -> Factors:
        """List every combination; only where `size` is a number."""

    def sample(self, u: Floats) -> Factors:
        """Map rows of UNIFORMS numbers in [0, 1) onto combinations."""

    def contains(self, factors: Factors) -> Bools:
        """Tell which combinations belong."""


# One number a factor, and one that chooses among the parts of a mixture.
UNIFORMS = len(NAMES) + 1


@dataclass(frozen=True)
class Product:
    """Every combination of one set a factor."""

    color: Set = Values((0,))
    scale: Set = Values((1.0,))
    orientation: Set = Values((0.0,))
    x: Set = Values((0.5,))
    y: Set = Values((0.5,))

    @property
    def sets(self) -> tuple[Set, ...]:
        """The five sets, in the order of the factors."""
        return (self.color, self.scale, self.orientation, self.x, self.y)

    @property
    def size(self) -> int | None:
        """Multiply the sizes of the sets."""
        sizes = [s.size for s in self.sets]
        return None if None in sizes else math.prod(s for s in sizes if s is not None)

    def points(self) -> Factors:
        """List every combination, colour outermost, y fastest."""
        _require_finite(self)
        axes = [np.array(s.values) for s in self.sets if isinstance(s, Values)]
        grid = np.meshgrid(*axes, indexing="ij")
        return _typed([axis.reshape(-1) for axis in grid])

    def sample(self, u: Floats) -> Factors:
        """Draw every factor from its own set."""
        return _typed([s.at(u[:, i]) for i, s in enumerate(self.sets)])

    def meet(self, other: Product) -> Product | None:
        """What two products have in common; None where that is nothing."""
        sets = [meet(a, b) for a, b in zip(self.sets, other.sets, strict=True)]
        found = [s for s in sets if s is not None]
        return Product(*found) if len(found) == len(sets) else None

    def contains(self, factors: Factors) -> Bools:
        """A combination belongs where every factor does."""
        inside = [s.contains(column) for s, column in zip(self.sets, factors, strict=True)]
        return reduce(np.logical_and, inside)


@dataclass(frozen=True)
class Minus:
    """All of `whole` but what `hole` contains."""

    whole: Space
    hole: Space

    @property
    def size(self) -> int | None:
        """Count what is left."""
        return None if self.whole.size is None else len(self.points().color)

    def points(self) -> Factors:
        """List what is left of the whole, in its order."""
        everything = self.whole.points()
        return everything.take(~self.hole.contains(everything))

    def sample(self, u: Floats) -> Factors:
        """Draw from the whole; a draw that falls into the hole is moved on until it does not."""
        out = self.whole.sample(u)
        wrong = np.flatnonzero(self.hole.contains(out))
        for _ in range(_MOST_TRIES):
            if not len(wrong):
                return out
            u = _shuffle_bits(u)
            again = self.whole.sample(u[wrong])
            for column, new in zip(out, again, strict=True):
                column[wrong] = new
            wrong = wrong[self.hole.contains(again)]
        raise ValueError(
            f"found nothing left after {_MOST_TRIES} draws; make the hole smaller: {self}"
        )

    def contains(self, factors: Factors) -> Bools:
        """Inside the whole and outside the hole."""
        return self.whole.contains(factors) & ~self.hole.contains(factors)


@dataclass(frozen=True)
class Mixture:
    """One of several spaces, chosen by weight: correlated factors."""

    parts: tuple[Space, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check that every part has its weight."""
        object.__setattr__(self, "parts", tuple(self.parts))
        object.__setattr__(
            self, "weights", tuple(check_finite(w, "a weight") for w in self.weights)
        )
        if not self.parts or len(self.parts) != len(self.weights) or min(self.weights) <= 0:
            raise ValueError(
                f"Mixture needs one positive weight a part, found {len(self.parts)} parts and "
                f"weights {self.weights}"
            )

    @property
    def size(self) -> None:
        """A mixture is drawn, not listed: its weights matter."""
        return None

    def points(self) -> Factors:
        """A mixture has no list."""
        _require_finite(self)
        raise AssertionError

    def sample(self, u: Floats) -> Factors:
        """Choose a part by the last number, then draw from it by the others."""
        bounds = np.cumsum(self.weights) / np.sum(self.weights)
        choice = np.minimum(np.searchsorted(bounds, u[:, -1], side="right"), len(self.parts) - 1)
        rest = np.concatenate((u[:, :-1], _inner_share(u[:, -1], bounds, choice)[:, None]), axis=1)
        out = _typed([np.zeros(len(u)) for _ in NAMES])
        for index, part in enumerate(self.parts):
            rows = np.flatnonzero(choice == index)
            drawn = part.sample(rest[rows])
            for column, new in zip(out, drawn, strict=True):
                column[rows] = new
        return out

    def contains(self, factors: Factors) -> Bools:
        """Inside any part."""
        return reduce(np.logical_or, [part.contains(factors) for part in self.parts])


def _inner_share(u: Floats, bounds: Floats, choice: NDArray[np.int64]) -> Floats:
    """Spread the number that chose a part over [0, 1) again, for mixtures of mixtures."""
    low = np.concatenate(([0.0], bounds))[choice]
    return np.clip((u - low) / (bounds[choice] - low), 0.0, np.nextafter(1.0, 0.0))


def _shuffle_bits(u: Floats) -> Floats:
    """Move numbers of [0, 1) to other ones, evenly: a fixed odd multiple of their 53 bits."""
    bits = (u * 2.0**53).astype(np.uint64)
    with np.errstate(over="ignore"):
        mixed = (bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(
            0x9E3779B97F4A7C15
        )
        mixed = mixed ^ (mixed >> np.uint64(32))
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _require_finite(space: Space) -> None:
    if space.size is None:
        raise ValueError(f"only a finite space has a list of points; draw from {space} instead")


def _typed(columns: list[Floats]) -> Factors:
    return Factors(columns[0].astype(np.int64), *columns[1:])
