"""Checks of the settings of an array stream that need no data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.border import check_number, check_whole
from everlearn.stream.arrays.plan import ORDERS

if TYPE_CHECKING:
    from everlearn.stream.arrays.spec import ArrayStream

_MOST_HELD_BACK = 0.9


def check_settings(stream: ArrayStream) -> None:
    """Raise where a setting is of the wrong kind or out of its range."""
    if stream.class_order not in ORDERS:
        raise ValueError(
            f"class_order must be one of {', '.join(ORDERS)}, found {stream.class_order!r}"
        )
    if not isinstance(stream.online, bool):
        raise TypeError(f"online must be true or false, found {stream.online!r}")
    check_number(stream.imbalance, "imbalance", 1, 1e6)
    for name in ("tasks", "classes_per_task", "first_classes", "size", "rows"):
        if getattr(stream, name) is not None:
            check_whole(getattr(stream, name), name, 1, 2**31)


def check_shares(val: float, test: float) -> None:
    """Raise where validation and test would leave too little for training."""
    check_number(val, "val_share", 0, _MOST_HELD_BACK)
    check_number(test, "test_share", 0, _MOST_HELD_BACK)
    if val + test > _MOST_HELD_BACK:
        raise ValueError(
            f"val_share and test_share may add up to {_MOST_HELD_BACK}, found {val} and {test}"
        )


def check_latents(stream: ArrayStream, channels: int, side: int) -> None:
    """Raise where latents would have to be changed."""
    if (stream.channels, stream.size, stream.dtype) != (channels, side, "float32"):
        raise ValueError(
            f"{stream.name} holds latents of {channels} x {side} x {side}, given as they are, in float32; "
            f"leave channels, size and dtype out, found {stream.channels}, {stream.size} and "
            f"{stream.dtype!r}"
        )
