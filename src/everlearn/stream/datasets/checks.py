"""Checks of the settings of an ArrayStream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.core.validate import check_int, check_number
from everlearn.stream.datasets.scenario import ORDERS

if TYPE_CHECKING:
    from everlearn.stream.datasets.stream import ArrayStream

_MAX_HELD_OUT = 0.9


def check_settings(stream: ArrayStream) -> None:
    """Raise where a setting has the wrong type or is out of range."""
    if stream.class_order not in ORDERS:
        raise ValueError(
            f"class_order must be one of {', '.join(ORDERS)}, found {stream.class_order!r}"
        )
    if not isinstance(stream.online, bool):
        raise TypeError(f"online must be true or false, found {stream.online!r}")
    check_number(stream.imbalance, "imbalance", 1, 1e6)
    for name in ("tasks", "classes_per_task", "first_classes", "size", "rows"):
        if getattr(stream, name) is not None:
            check_int(getattr(stream, name), name, 1, 2**31)


def check_shares(val: float, test: float) -> None:
    """Raise where validation and test rows would leave too little for training."""
    check_number(val, "val_share", 0, _MAX_HELD_OUT)
    check_number(test, "test_share", 0, _MAX_HELD_OUT)
    if val + test > _MAX_HELD_OUT:
        raise ValueError(
            f"val_share and test_share may sum to at most {_MAX_HELD_OUT}, found {val} and {test}"
        )


def check_latents(stream: ArrayStream, channels: int, side: int) -> None:
    """Raise where settings would change the latents."""
    if (stream.channels, stream.size, stream.dtype) != (channels, side, "float32"):
        raise ValueError(
            f"{stream.name} holds latents of {channels} x {side} x {side}, which are used unchanged as "
            f"float32; leave channels, size and dtype out, found {stream.channels}, {stream.size} and "
            f"{stream.dtype!r}"
        )
