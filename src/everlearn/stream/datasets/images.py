"""Images of a data set, from arrays or files, resized to a canvas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from everlearn.render.canvas import Canvas
from everlearn.stream.datasets.files import Images, Ints
from everlearn.stream.levels import level_decoder
from everlearn.stream.synthetic.points import FeatureCanvas


@dataclass(frozen=True, eq=False)
class DatasetImages:
    """Row r shows images[rows[r]], with the size, channels and dtype of a canvas."""

    images: Images
    rows: Ints
    canvas: Canvas | FeatureCanvas

    def loader(self, device: str) -> Callable[[Tensor], Tensor]:
        """Return a function from row numbers to images, both on the device.

        Images in memory are copied to a GPU once; images in files are read for every batch.
        """
        decode = level_decoder(self.canvas.dtype, device)
        if device == "cpu" or not isinstance(self.images, np.ndarray):
            return lambda rows: decode(self._widen(self._take(rows.cpu().numpy()).to(device)))
        table = self._take(np.arange(len(self.rows))).to(device)
        return lambda rows: decode(self._widen(table[rows]))

    def _take(self, rows: Ints) -> Tensor:
        """Return rows as uint8 (B, C, size, size), with one channel where the data are grey."""
        images = torch.from_numpy(self.images[self.rows[rows]])
        if images.shape[1] > self.canvas.channels:
            images = images.float().mean(1, keepdim=True).round().to(torch.uint8)
        return resize(images, self.canvas.size)

    def _widen(self, images: Tensor) -> Tensor:
        return images.expand(-1, self.canvas.channels, -1, -1).contiguous()


def resize(images: Tensor, size: int) -> Tensor:
    """Resize uint8 images (B, C, H, W) to a square, bilinear with antialiasing.

    uint8 makes the result of an image independent of its batch.
    """
    if images.shape[2:] == (size, size) or len(images) == 0:
        return images.reshape(-1, images.shape[1], size, size)
    return interpolate(images, (size, size), mode="bilinear", antialias=True)
