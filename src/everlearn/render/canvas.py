"""Canvas: the size, colours and data type of images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Color = tuple[int, int, int]
COLORS: dict[str, Color] = {
    "black": (0, 0, 0),
    "white": (255, 255, 255),
    "gray": (128, 128, 128),
    "darkgray": (169, 169, 169),
    "lightgray": (211, 211, 211),
    "red": (255, 0, 0),
    "orange": (255, 165, 0),
    "yellow": (255, 255, 0),
    "green": (0, 128, 0),
    "lime": (0, 255, 0),
    "cyan": (0, 255, 255),
    "blue": (0, 0, 255),
    "purple": (128, 0, 128),
    "magenta": (255, 0, 255),
    "pink": (255, 192, 203),
    "brown": (165, 42, 42),
}
DTYPES = ("float32", "uint8")
MAX_SIZE = 1024


def parse_color(color: object) -> Color:
    """Convert a colour name, "#rrggbb" or three whole numbers from 0 to 255 to levels."""
    if isinstance(color, str):
        if color in COLORS:
            return COLORS[color]
        digits = color[1:]
        if (
            color.startswith("#")
            and len(digits) == 6
            and set(digits.lower()) <= set("0123456789abcdef")
        ):
            return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16)
    elif isinstance(color, (tuple, list)) and len(color) == 3 and all(map(_is_level, color)):
        return color[0], color[1], color[2]
    raise ValueError(
        f"unknown colour {color!r}; give '#rrggbb', three whole numbers from 0 to 255, or one of: "
        + ", ".join(COLORS)
    )


def _is_level(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 255


class Levels(NamedTuple):
    """8-bit levels of every channel: background (C,), shape (K, C), mark (K, C)."""

    background: NDArray[np.int32]
    shape: NDArray[np.int32]
    mark: NDArray[np.int32]


@dataclass(frozen=True)
class Canvas:
    """Size and colours of images. Pixel centres lie at index + 0.5; y points down.

    Args:
        size: side in pixels.
        channels: 1 (grey, the mean of red, green and blue) or 3 (RGB).
        background: colour behind the shape.
        colors: shape colours; the factor `color` is an index into them.
        mark: colour of the half of the shape that shows its orientation; None for no mark.
        dtype: "uint8", or "float32" in [0, 1], which is the uint8 image divided by 255.
        parity: render like the original package: integer vertices, no anti-aliasing.
    """

    size: int = 64
    channels: int = 1
    background: Any = "darkgray"
    colors: Any = ("white",)
    mark: Any = "black"
    dtype: str = "float32"
    parity: bool = False

    def __post_init__(self) -> None:
        """Check every field and convert colours to levels."""
        if isinstance(self.size, bool) or not isinstance(self.size, int):
            raise TypeError(f"canvas size must be a whole number of pixels, found {self.size!r}")
        if not 4 <= self.size <= MAX_SIZE:
            raise ValueError(f"canvas size must lie in 4 .. {MAX_SIZE} pixels, found {self.size}")
        if (
            self.channels not in (1, 3)
            or not isinstance(self.channels, int)
            or self.channels is True
        ):
            raise ValueError(f"channels must be 1 (grey) or 3 (RGB), found {self.channels!r}")
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, found {self.dtype!r}")
        if not isinstance(self.parity, bool):
            raise TypeError(f"parity must be true or false, found {self.parity!r}")
        if (
            isinstance(self.colors, str)
            or not isinstance(self.colors, (tuple, list))
            or not self.colors
        ):
            raise ValueError(f"colors must be a list of one colour or more, found {self.colors!r}")
        object.__setattr__(self, "background", parse_color(self.background))
        object.__setattr__(self, "colors", tuple(parse_color(c) for c in self.colors))
        object.__setattr__(self, "mark", None if self.mark is None else parse_color(self.mark))

    @property
    def shape(self) -> tuple[int, int, int]:
        """(channels, height, width) of an image."""
        return self.channels, self.size, self.size

    @property
    def bits(self) -> int:
        """Bits that store a pixel without loss: 8, since float pixels are n / 255."""
        return 8

    @property
    def levels(self) -> Levels:
        """Levels of all colours; without a mark, its levels are those of the shape."""
        shape = self._channels(self.colors)
        mark = (
            shape
            if self.mark is None
            else np.broadcast_to(self._channels([self.mark]), shape.shape)
        )
        return Levels(self._channels([self.background])[0], shape, mark.copy())

    def _channels(self, colors: Any) -> NDArray[np.int32]:
        table = np.array(colors, np.int32)
        if self.channels == 1:
            table = np.rint(table.mean(axis=1, keepdims=True)).astype(np.int32)
        return table

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values, colours as '#rrggbb'."""
        return {
            "size": self.size,
            "channels": self.channels,
            "background": _hex(self.background),
            "colors": [_hex(color) for color in self.colors],
            "mark": None if self.mark is None else _hex(self.mark),
            "dtype": self.dtype,
            "parity": self.parity,
        }


def _hex(color: Color) -> str:
    return "#{:02x}{:02x}{:02x}".format(*color)
