"""How long to pre-train, how fast, and on what."""

from __future__ import annotations

from dataclasses import dataclass

from everlearn.border import check_number, check_whole
from everlearn.nets.halves import HALVES
from everlearn.nets.vit import CONFIGS
from everlearn.philox import check_seed
from everlearn.pretraining.pace import TIMED, UNTIMED, cosine_rate
from everlearn.settings import setting


@dataclass(frozen=True)
class Settings:
    """How long and how fast to pre-train a transformer."""

    steps: int | None = setting(None, "optimiser steps; none: as many as fit into the time")
    seconds: float = setting(240.0, "the time, where steps are not given")
    seed: int = setting(0, "first weights, order and moves follow from it")
    batch_size: int = setting(256, "images a step, half of each data set")
    rate: float = setting(1e-3, "of Adam, after the warm-up; it ends at 0 along a cosine")
    warm_up: int = setting(200, "steps in which the rate rises")
    test_images: int = setting(20_000, "of the official test images, at most, to test on")
    net: str = setting("vit-lite", "which transformer")

    def __post_init__(self) -> None:
        """Check every setting."""
        _check_pace(self)
        if self.net not in CONFIGS:
            raise ValueError(f"unknown net {self.net!r}; known: {', '.join(CONFIGS)}")

    def rate_at(self, step: int, steps: int | None) -> float:
        """The learning rate of a step, the first being 0; all steps need not be known in the warm-up."""
        return cosine_rate(self.rate, self.warm_up, step, steps)


@dataclass(frozen=True)
class ShapeSettings:
    """How long and how fast to pre-train an extractor, on which shapes and images of which size."""

    steps: int | None = setting(None, "optimiser steps; none: as many as fit into the time")
    seconds: float = setting(120.0, "the time, where steps are not given")
    seed: int = setting(0, "first weights, shapes and their factors follow from it")
    batch_size: int = setting(1024, "images a step")
    rate: float = setting(1e-3, "of AdamW, after the warm-up; it ends at 0 along a cosine")
    warm_up: int = setting(100, "steps in which the rate rises")
    test_images: int = setting(20_000, "fresh images to test on")
    net: str = setting("resnet18-slim", "which net of two halves")
    decay: float = setting(0.01, "of the weights, a step, times the rate")
    shapes: int = setting(500, "how many shapes to tell apart; no stream shows them")
    channels: int = setting(1, "of an image: 1 (grey) or 3")
    size: int = setting(64, "side of an image in pixels")
    maps: float = setting(0.0, "what telling the map of an image counts, beside naming its shape")

    def __post_init__(self) -> None:
        """Check every setting; size and channels are for the canvas to check."""
        _check_pace(self)
        check_number(self.decay, "decay", 0, 10)
        check_number(self.maps, "maps", 0, 1e6)
        check_whole(self.shapes, "shapes", 2, 100_000)
        if self.net not in HALVES:
            raise ValueError(f"unknown net {self.net!r}; known: {', '.join(HALVES)}")

    def rate_at(self, step: int, steps: int | None) -> float:
        """The learning rate of a step, the first being 0; all steps need not be known in the warm-up."""
        return cosine_rate(self.rate, self.warm_up, step, steps)


def _check_pace(settings: Settings | ShapeSettings) -> None:
    """Check the settings that every pre-training has."""
    if settings.steps is not None:
        check_whole(settings.steps, "steps", 1, 10**9)
    check_number(settings.seconds, "seconds", 1, 10**6)
    check_seed(settings.seed)
    check_whole(settings.batch_size, "batch_size", 2, 100_000)
    check_number(settings.rate, "rate", 0, 1)
    check_whole(settings.warm_up, "warm_up", UNTIMED + TIMED, 10**6)
    check_whole(settings.test_images, "test_images", 2, 10**6)
