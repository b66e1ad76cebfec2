"""How shapes are drawn: the settings, with the defaults of the Infinite dSprites paper and its code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from everlearn.border import check_number, check_whole


@dataclass(frozen=True)
class ShapeStyle:
    """How shapes are drawn; the defaults are those of the Infinite dSprites paper and its code.

    Args:
        vertices: fewest and most vertices, both included; 4 at least, so that no gap between two is
            wider than half a turn.
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
        low, high = self._several("vertices", 2)
        self._set(
            "vertices", (check_whole(low, "vertices", 4, 64), check_whole(high, "vertices", 4, 64))
        )
        near, far = self._several("radius_clip", 2)
        near, far = (check_number(end, "radius_clip", 0.001, 1000) for end in (near, far))
        self._set("radius_clip", (near, far))
        if low > high or not near <= 1 <= far:
            raise ValueError(
                f"vertices must be (low, high) in order and radius_clip must hold 1, found "
                f"{self.vertices} and {self.radius_clip}"
            )
        orders = self._several("orders", None)
        if not orders or any(order not in (1, 3) for order in orders):
            raise ValueError(f"orders must be chosen from 1 and 3, found {self.orders}")
        self._set("orders", tuple(int(order) for order in orders))
        for name, most in (("radius_std", 1000), ("angle_std", 1000), ("min_distance", 0.5)):
            self._set(name, check_number(getattr(self, name), name, 0, most))
        for name in ("align", "stretch"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be true or false, found {getattr(self, name)!r}")
        if self.center not in ("mass", "box"):
            raise ValueError(f"center must be 'mass' or 'box', found {self.center!r}")
        self._set("block", check_whole(self.block, "block", 2, 512))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _several(self, name: str, count: int | None) -> tuple[Any, ...]:
        value = getattr(self, name)
        if not isinstance(value, (tuple, list)) or count not in (None, len(value)):
            raise TypeError(f"{name} must be {count or 'some'} numbers, found {value!r}")
        return tuple(value)


PAPER_STYLE = ShapeStyle()
