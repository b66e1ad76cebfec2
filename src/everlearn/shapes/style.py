"""The distribution of random shapes, by default that of the Infinite dSprites paper and its code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from everlearn.core.validate import check_int, check_number


@dataclass(frozen=True)
class ShapeStyle:
    """Distribution of random shapes; the defaults are those of the Infinite dSprites paper and its code.

    Args:
        vertices: minimum and maximum number of vertices; at least 4, so that neighbours are less than
            half a turn apart.
        radius_std: standard deviation of the vertices' distance from the centre; its mean is 1.
        radius_clip: bounds of that distance.
        angle_std: standard deviation of the vertices' angle, as a fraction of half a sector.
        orders: spline orders to draw from: 1 (straight lines), 3 (cubic).
        align: rotate the long axis upright.
        stretch: fit the unit box in both directions (True) or keep the aspect ratio (False).
        center: put the origin at the centroid of the area ("mass") or the middle of the box ("box").
        min_distance: redraw a shape closer than this (1 - intersection over union, canonical form)
            to an earlier shape of its block of ids; 0 never redraws.
        block: number of consecutive ids in a block.
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
        """Check every field."""
        fewest, most = (check_int(n, "vertices", 4, 64) for n in self._tuple("vertices", 2))
        self._set("vertices", (fewest, most))
        clip = (
            check_number(end, "radius_clip", 0.001, 1000) for end in self._tuple("radius_clip", 2)
        )
        near, far = clip
        self._set("radius_clip", (near, far))
        if fewest > most or not near <= 1 <= far:
            raise ValueError(
                f"vertices must be (low, high) in order and radius_clip must contain 1, found "
                f"{self.vertices} and {self.radius_clip}"
            )
        orders = self._tuple("orders")
        if not orders or any(order not in (1, 3) for order in orders):
            raise ValueError(f"orders must be chosen from 1 and 3, found {self.orders}")
        self._set("orders", tuple(int(order) for order in orders))
        for name, limit in (("radius_std", 1000), ("angle_std", 1000), ("min_distance", 0.5)):
            self._set(name, check_number(getattr(self, name), name, 0, limit))
        for name in ("align", "stretch"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be true or false, found {getattr(self, name)!r}")
        if self.center not in ("mass", "box"):
            raise ValueError(f"center must be 'mass' or 'box', found {self.center!r}")
        self._set("block", check_int(self.block, "block", 2, 512))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _tuple(self, name: str, count: int | None = None) -> tuple[Any, ...]:
        value = getattr(self, name)
        if not isinstance(value, (tuple, list)) or count not in (None, len(value)):
            raise TypeError(f"{name} must be {count or 'some'} numbers, found {value!r}")
        return tuple(value)


PAPER_STYLE = ShapeStyle()
