"""How shapes are drawn: the settings, with the defaults of the Infinite dSprites paper and its code."""

from __future__ import annotations

import math
from dataclasses import dataclass

from everlearn.border import check_number, check_whole


@dataclass(frozen=True)
class ShapeStyle:
    """How shapes are drawn; the defaults are those of the Infinite dSprites paper and its code.

    Args:
        vertices: fewest and most vertices, both included.
        radius_std: spread of the vertices' distance from the centre, around 1.
        radius_clip: bounds of that distance.
        angle_std: spread of the vertices' angle, as a share of half the sector of each.
        orders: spline orders to choose from: 1 (straight lines), 3 (cubic).
        align: turn the long axis upright.
        stretch: fit the unit box in both directions (True) or keep the proportions (False).
        center: put the origin at the centroid of the area ("mass") or the middle of the box ("box").
        min_distance: redraw a shape nearer than this (1 - intersection over union, canonical form)
            to an earlier shape of its own block of ids; 0 never redraws.
        block: how many consecutive ids make a block.
    """

    vertices: tuple[int, int] = (5, 8)
    radius_std: float = 0.4
    radius_clip: tuple[float, float] = (0.1, 1.9)
    angle_std: float = 0.5
    orders: tuple[int, ...] = (1, 3)
    align: bool = True
    stretch: bool = True
    center: str = "mass"
    min_distance: float = 0.0
    block: int = 64

    def __post_init__(self) -> None:
        """Check every field at the border."""
        for name in ("vertices", "radius_clip", "orders"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        low, high = self._pair("vertices", int)
        if not 3 <= low <= high <= 64:
            raise ValueError(f"vertices must satisfy 3 <= low <= high <= 64, found {self.vertices}")
        near, far = self._pair("radius_clip", float)
        if not 0 < near <= 1 <= far < math.inf:
            raise ValueError(
                f"radius_clip must satisfy 0 < low <= 1 <= high, found {self.radius_clip}"
            )
        for name, most in (
            ("radius_std", math.inf),
            ("angle_std", math.inf),
            ("min_distance", 0.5),
        ):
            check_number(getattr(self, name), name, 0, most)
        if not self.orders or not set(self.orders) <= {1, 3}:
            raise ValueError(f"orders must be chosen from 1 and 3, found {self.orders}")
        for name in ("align", "stretch"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be true or false, found {getattr(self, name)!r}")
        if self.center not in ("mass", "box"):
            raise ValueError(f"center must be 'mass' or 'box', found {self.center!r}")
        check_whole(self.block, "block", 2, 4096)

    def _pair(self, name: str, kind: type) -> tuple[float, float]:
        value = getattr(self, name)
        numbers = int if kind is int else (int, float)
        if len(value) != 2 or any(isinstance(v, bool) or not isinstance(v, numbers) for v in value):
            raise TypeError(f"{name} must be two numbers (low, high), found {value!r}")
        return value[0], value[1]


PAPER_STYLE = ShapeStyle()
