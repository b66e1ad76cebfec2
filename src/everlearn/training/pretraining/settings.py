"""Settings of pre-training."""

from __future__ import annotations

from dataclasses import dataclass

from everlearn.core.random import check_seed
from everlearn.core.settings import setting
from everlearn.core.validate import check_int, check_number
from everlearn.nets.split_net import SPLIT_NETS
from everlearn.nets.vit import CONFIGS
from everlearn.training.pretraining.schedule import TIMED, UNTIMED, cosine_schedule


@dataclass(frozen=True)
class Settings:
    """Settings of the pre-training of a transformer."""

    steps: int | None = setting(None, "optimiser steps; none: as many as fit into the time")
    seconds: float = setting(240.0, "time for training, where steps is none")
    seed: int = setting(0, "determines initial weights, order and maps")
    batch_size: int = setting(256, "images per step, half from each data set")
    learning_rate: float = setting(
        1e-3, "learning rate of Adam after the warm-up; it falls to 0 along a cosine"
    )
    warm_up: int = setting(200, "steps in which the learning rate rises linearly")
    test_images: int = setting(20_000, "maximum number of official test images to test on")
    net: str = setting("vit-lite", "transformer to train")

    def __post_init__(self) -> None:
        """Check every setting."""
        _check_schedule(self)
        if self.net not in CONFIGS:
            raise ValueError(f"unknown net {self.net!r}; known: {', '.join(CONFIGS)}")

    def learning_rate_at(self, step: int, steps: int | None) -> float:
        """The learning rate of a step, counted from 0; `steps` may be unknown in the warm-up."""
        return cosine_schedule(self.learning_rate, self.warm_up, step, steps)


@dataclass(frozen=True)
class ShapeSettings:
    """Settings of the pre-training of an extractor on shapes."""

    steps: int | None = setting(None, "optimiser steps; none: as many as fit into the time")
    seconds: float = setting(120.0, "time for training, where steps is none")
    seed: int = setting(0, "determines initial weights, shapes and factors")
    batch_size: int = setting(1024, "images per step")
    learning_rate: float = setting(
        1e-3, "learning rate of AdamW after the warm-up; it falls to 0 along a cosine"
    )
    warm_up: int = setting(100, "steps in which the learning rate rises linearly")
    test_images: int = setting(20_000, "new images to test on")
    net: str = setting("resnet18-slim", "split net to train")
    weight_decay: float = setting(0.01, "decoupled weight decay of AdamW")
    shapes: int = setting(500, "number of shapes to classify; no stream shows them")
    channels: int = setting(1, "channels of an image: 1 (grey) or 3")
    size: int = setting(64, "side of an image in pixels")
    map_loss_weight: float = setting(
        0.0, "weight of the error of an image's affine map, beside the classification loss"
    )

    def __post_init__(self) -> None:
        """Check every setting; the canvas checks size and channels."""
        _check_schedule(self)
        check_number(self.weight_decay, "weight_decay", 0, 10)
        check_number(self.map_loss_weight, "map_loss_weight", 0, 1e6)
        check_int(self.shapes, "shapes", 2, 100_000)
        if self.net not in SPLIT_NETS:
            raise ValueError(f"unknown net {self.net!r}; known: {', '.join(SPLIT_NETS)}")

    def learning_rate_at(self, step: int, steps: int | None) -> float:
        """The learning rate of a step, counted from 0; `steps` may be unknown in the warm-up."""
        return cosine_schedule(self.learning_rate, self.warm_up, step, steps)


def _check_schedule(settings: Settings | ShapeSettings) -> None:
    """Check the settings that both pre-trainings have."""
    if settings.steps is not None:
        check_int(settings.steps, "steps", 1, 10**9)
    check_number(settings.seconds, "seconds", 1, 10**6)
    check_seed(settings.seed)
    check_int(settings.batch_size, "batch_size", 2, 100_000)
    check_number(settings.learning_rate, "learning_rate", 0, 1)
    check_int(settings.warm_up, "warm_up", UNTIMED + TIMED, 10**6)
    check_int(settings.test_images, "test_images", 2, 10**6)
