"""A contact sheet of pictures, in plain numpy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

GAP = 2
_BETWEEN = 128


def contact_sheet(pictures: NDArray[np.uint8], columns: int) -> NDArray[np.uint8]:
    """Lay pictures (N, C, H, W) in rows: (H', W') for one channel, (H', W', 3) for three."""
    count, channels, height, width = pictures.shape
    columns = min(columns, count)
    rows = -(-count // columns)
    size = (rows * (height + GAP) - GAP, columns * (width + GAP) - GAP, channels)
    sheet = np.full(size, _BETWEEN, np.uint8)
    for place, picture in enumerate(pictures.transpose(0, 2, 3, 1)):
        top, left = place // columns * (height + GAP), place % columns * (width + GAP)
        sheet[top : top + height, left : left + width] = picture
    return sheet[:, :, 0] if channels == 1 else sheet
