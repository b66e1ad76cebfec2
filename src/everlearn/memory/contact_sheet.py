"""A contact sheet of images, in numpy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

GAP = 2  # pixels between images
_GAP_LEVEL = 128


def contact_sheet(images: NDArray[np.uint8], columns: int) -> NDArray[np.uint8]:
    """Arrange images (N, C, H, W) in a grid: (H', W') for one channel, (H', W', 3) for three."""
    count, channels, height, width = images.shape
    columns = min(columns, count)
    rows = -(-count // columns)
    size = (rows * (height + GAP) - GAP, columns * (width + GAP) - GAP, channels)
    sheet = np.full(size, _GAP_LEVEL, np.uint8)
    for index, image in enumerate(images.transpose(0, 2, 3, 1)):
        row, column = divmod(index, columns)
        top = row * (height + GAP)
        left = column * (width + GAP)
        sheet[top : top + height, left : left + width] = image
    return sheet[:, :, 0] if channels == 1 else sheet
