"""Configurations of vision transformers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    """The sizes of a transformer, and the standardisation of its images.

    Attributes:
        size: side of the images that it was trained on, in pixels.
        channels: 1 (grey) or 3.
        scaled: whether each branch has a LayerScale, as in DINOv2.
        mean: subtracted from each channel before the first layer.
        std: divides each channel after that.
    """

    width: int
    depth: int
    heads: int
    patch: int
    size: int
    hidden: int
    channels: int = 3
    scaled: bool = False
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.5, 0.5, 0.5)

    @property
    def grid(self) -> int:
        """Patches along a side."""
        return self.size // self.patch


IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
CONFIGS = {
    "vit-test": Config(64, 2, 1, 8, 32, 128, 1, mean=(0.5,), std=(0.5,)),
    "vit-lite": Config(192, 6, 3, 8, 64, 768, 1, mean=(0.5,), std=(0.5,)),
    "vit-s14": Config(384, 12, 6, 14, 518, 1536, 3, True, IMAGENET_MEAN, IMAGENET_STD),
    "vit-b16": Config(768, 12, 12, 16, 224, 3072),
}
