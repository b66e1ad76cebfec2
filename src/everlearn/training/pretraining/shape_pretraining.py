"""Pre-training of an extractor on shapes that no stream shows, with new factors in every batch.

On one type of machine, the seed and the number of steps determine the weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss, one_hot

from everlearn.core.provenance import provenance
from everlearn.core.random import Purpose, uniform
from everlearn.factors import UNIFORMS_PER_SAMPLE, continuous_space, theta
from everlearn.nets.extractor import save_extractor
from everlearn.nets.layers.head import Head
from everlearn.nets.layers.renorm import INITIAL_MOMENTUM, end_renorm_warmup
from everlearn.nets.nearest_mean import extract_features, nearest_class
from everlearn.nets.precision import deterministic, eval_mode, forward_pass, to_device
from everlearn.nets.seeded import seeded
from everlearn.nets.split_net import SplitNet, build_split_net
from everlearn.render.canvas import Canvas
from everlearn.shapes import outlines
from everlearn.stream import Split
from everlearn.stream.sprites.images import SpriteImages
from everlearn.training.adam import Adam
from everlearn.training.captured_step import CapturedStep
from everlearn.training.device import gpu_name
from everlearn.training.optimizer_step import optimizer_step, training_state
from everlearn.training.pretraining.schedule import Score, TrainingProgress, take_steps
from everlearn.training.pretraining.settings import ShapeSettings

MAKER = "everlearn pretrain"
FIRST_SHAPE = 10**9  # streams of one seed and fewer classes show other shapes
TRANSFER_SHAPES = 50  # shapes that the extractor never learned, to test its features on
_MAP_SIZE = 6  # elements of an affine map
_CHUNK = 64  # steps whose factors are drawn at once
_FINAL_MOMENTUM = 0.1  # of running statistics when they are re-estimated


class ExtractorWithHead(nn.Module):
    """An extractor, and a head on its features."""

    def __init__(self, extractor: SplitNet, outputs: int) -> None:
        """Add a head with torch's default initialisation."""
        super().__init__()
        self.extractor = extractor
        self.head = Head(extractor.width, outputs)

    def features(self, images: Tensor) -> Tensor:
        """(B, width)."""
        return self.extractor.features(images)

    def forward(self, images: Tensor) -> Tensor:
        """(B, outputs)."""
        out: Tensor = self.head(self.features(images))
        return out


class ShapePretraining:
    """Trains an extractor with a head to classify shapes and, if set, to regress their affine maps."""

    def __init__(self, settings: ShapeSettings, device: str) -> None:
        """Start with random weights."""
        self.settings = settings
        self.device = device
        self.canvas = Canvas(settings.size, settings.channels)
        self.extractor = build_split_net(
            settings.net, settings.channels, settings.size, settings.seed
        )
        outputs = settings.shapes + (_MAP_SIZE if settings.map_loss_weight else 0)
        with seeded(settings.seed):
            net = ExtractorWithHead(self.extractor, outputs)
        self.net = to_device(net, device)
        self.optimizer = Adam(self.net.parameters(), settings.learning_rate, settings.weight_decay)
        self._step = CapturedStep(self._train_step, training_state(self.net, self.optimizer))
        self.done = 0

    @property
    def shapes(self) -> range:
        """The ids of the shapes to learn."""
        return range(FIRST_SHAPE, FIRST_SHAPE + self.settings.shapes)

    def learn(self) -> Iterator[TrainingProgress]:
        """Train, and yield the progress after every step; then re-estimate the running statistics."""
        self.net.train()
        for progress in take_steps(self.settings, self._batches(), self.optimizer, self._step):
            self.done = progress.step
            yield progress
        self._estimate_running_stats()

    def _estimate_running_stats(self) -> None:
        """Estimate the running statistics in float32, in which the net is used.

        A GPU trains in bfloat16, which rounds the uniform background to another grey. With statistics from
        there, errors grow from layer to layer until a fifth of the features is wrong.
        """
        end_renorm_warmup(self.net, _FINAL_MOMENTUM)
        with torch.no_grad(), deterministic():
            for images, _, _ in islice(self._batches(self.done), _CHUNK):
                self.net(images.contiguous(memory_format=torch.channels_last))
        end_renorm_warmup(self.net, INITIAL_MOMENTUM)

    def _batches(self, start: int = 0) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Images, labels and maps; the host draws factors while a GPU trains."""
        size = self.settings.batch_size
        rows = torch.arange(_CHUNK * size, device=self.device).reshape(_CHUNK, size)
        for first in count(start, _CHUNK):
            steps = range(first, first + _CHUNK)
            views = draw_views(
                self.settings.seed, self.shapes, self.canvas, Purpose.FACTORS, steps, size
            )
            on_device = views.to(self.device)
            for batch in map(on_device.batch, rows):
                assert batch.theta is not None
                yield batch.images, batch.labels, batch.theta

    def _train_step(self, images: Tensor, labels: Tensor, maps: Tensor) -> Tensor:
        out = forward_pass(self.net, images)
        shapes = self.settings.shapes
        loss = cross_entropy(out[:, :shapes], labels)
        if self.settings.map_loss_weight:
            map_loss = mse_loss(out[:, shapes:], maps.flatten(1))
            loss = loss + self.settings.map_loss_weight * map_loss
        return optimizer_step(self.optimizer, loss)

    def test(self) -> Score:
        """Classify the learned shapes with factors that no step showed."""
        correct = torch.zeros((), dtype=torch.int64, device=self.device)
        views = self._test_views(self.shapes, 0)
        for batch in views.batches(self.settings.batch_size, self.device):
            with eval_mode(self.net):
                logits = forward_pass(self.net, batch.images)[:, : self.settings.shapes]
            correct += (logits.argmax(1) == batch.labels).sum()
        return Score(int(correct), len(views))

    def transfer(self) -> Score:
        """Classify new shapes by the nearest class mean of their features."""
        new_shapes = range(self.shapes.stop, self.shapes.stop + TRANSFER_SHAPES)
        support, support_labels = self._features(self._test_views(new_shapes, 1))
        queries, query_labels = self._features(self._test_views(new_shapes, 2))
        members = one_hot(support_labels, TRANSFER_SHAPES).T.float()
        counts = members.sum(1, keepdim=True)
        means = members @ support / counts.clamp(min=1.0)
        predicted = nearest_class(queries, means, counts[:, 0] > 0, range(TRANSFER_SHAPES))
        return Score(int((predicted == query_labels).sum()), len(query_labels))

    def _test_views(self, shapes: range, number: int) -> Split:
        steps = range(number, number + 1)
        size = self.settings.test_images
        return draw_views(
            self.settings.seed, shapes, self.canvas, Purpose.TEST_FACTORS, steps, size
        )

    def _features(self, views: Split) -> tuple[Tensor, Tensor]:
        """Features (N, width) and labels of all views."""
        batches = views.batches(self.settings.batch_size, self.device)
        pairs = [(extract_features(self.net, batch.images), batch.labels) for batch in batches]
        features, labels = zip(*pairs, strict=True)
        return torch.cat(features), torch.cat(labels)

    def save(self, path: Path, score: Score, transfer: Score) -> Path:
        """Write the extractor without its head, and its provenance."""
        about: dict[str, Any] = {
            "maker": MAKER,
            "net": self.settings.net,
            "channels": self.settings.channels,
            "size": self.settings.size,
            "settings": asdict(self.settings),
            "shapes": [self.shapes.start, self.shapes.stop],
            "steps": self.done,
            "test": score._asdict(),
            "transfer": {"shapes": TRANSFER_SHAPES, **transfer._asdict()},
            "provenance": provenance(gpu_name(self.device)),
        }
        return save_extractor(path, self.extractor, about)


def draw_views(
    seed: int, shapes: range, canvas: Canvas, purpose: Purpose, steps: range, size: int
) -> Split:
    """Draw random shapes with random factors, `size` per step; label 0 is the first shape.

    A row depends on (seed, purpose, step, row of the step) alone, and no stream that ends before these
    shapes draws the same numbers.
    """
    step, row = np.divmod(np.arange(len(steps) * size), size)
    drawn = uniform(
        seed, purpose, FIRST_SHAPE + steps.start + step, row, count=UNIFORMS_PER_SAMPLE + 1
    )
    factors = continuous_space().sample(drawn[:, :UNIFORMS_PER_SAMPLE])
    labels = (drawn[:, UNIFORMS_PER_SAMPLE] * len(shapes)).astype(np.int64)
    maps = theta(factors)
    images = SpriteImages(outlines(seed, np.array(shapes)), labels, maps, factors.color, canvas)
    return Split(labels, images, factors, maps)
