"""Pre-training of an extractor on shapes that no stream shows; every batch shows them in new factors.

The weights follow from the seed and the number of steps alone, on one kind of machine.
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

from everlearn.exam.costs import gpu_of
from everlearn.factors import UNIFORMS, continuous_space, theta
from everlearn.nets import fast
from everlearn.nets.extractor import save_halves
from everlearn.nets.halves import Halves, build_halves
from everlearn.nets.head import Head
from everlearn.nets.means import features, name_nearest
from everlearn.nets.renorm import RATE, settle
from everlearn.nets.seeded import seeded
from everlearn.philox import Purpose, uniform
from everlearn.pretraining.pace import Moment, Score, take_steps
from everlearn.pretraining.settings import ShapeSettings
from everlearn.provenance import provenance
from everlearn.render.canvas import Canvas
from everlearn.shapes import outlines
from everlearn.stream import Split
from everlearn.stream.sprites import Sprites

MAKER = "everlearn pretrain"
FIRST_SHAPE = 10**9  # streams of one seed and fewer classes show other shapes
OTHERS = 50  # shapes that the extractor never learned, to test its features on
_MAP = 6  # numbers of an affine map
_AT_ONCE = 64  # steps whose factors are drawn at once
_SETTLING = 0.1  # how far kept moments move a batch at the end, in every layer


class Naming(nn.Module):
    """An extractor, and a head over its features."""

    def __init__(self, halves: Halves, outputs: int) -> None:
        """Put the head, as it comes, behind the halves."""
        super().__init__()
        self.halves = halves
        self.head = Head(halves.width, outputs)

    def features(self, images: Tensor) -> Tensor:
        """(B, width)."""
        return self.halves.features(images)

    def forward(self, images: Tensor) -> Tensor:
        """(B, outputs)."""
        out: Tensor = self.head(self.features(images))
        return out


class ShapePretraining:
    """An extractor with a head that learns to tell shapes apart and, if asked, what maps they lie under."""

    def __init__(self, settings: ShapeSettings, device: str) -> None:
        """Start with random weights."""
        self.settings, self.device = settings, device
        self.canvas = Canvas(settings.size, settings.channels)
        self.halves = build_halves(settings.net, settings.channels, settings.size, settings.seed)
        with seeded(settings.seed):
            net = Naming(self.halves, settings.shapes + (_MAP if settings.maps else 0))
        self.net = fast.place(net, device)
        self.optimizer = fast.adam(self.net.parameters(), settings.rate, settings.decay)
        self._step = fast.Step(self._learn_batch, fast.changed(self.net, self.optimizer))
        self.done = 0

    @property
    def shapes(self) -> range:
        """The ids of the shapes to learn."""
        return range(FIRST_SHAPE, FIRST_SHAPE + self.settings.shapes)

    def learn(self) -> Iterator[Moment]:
        """Go through all steps; then let the net keep the moments of its last weights."""
        self.net.train()
        for now in take_steps(self.settings, self._batches(), self.optimizer, self._step):
            self.done = now.step
            yield now
        self._settle()

    def _settle(self) -> None:
        """Keep moments as they are in float32, which the net is used in.

        A GPU learns in bfloat16, where the even background is another grey. Kept from there, moments are
        off by so much more in every layer that a fifth of the features is wrong.
        """
        settle(self.net, _SETTLING)
        with torch.no_grad(), fast.steady():
            for images, _, _ in islice(self._batches(self.done), _AT_ONCE):
                self.net(images.contiguous(memory_format=torch.channels_last))
        settle(self.net, RATE)

    def _batches(self, start: int = 0) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Images, labels and maps; what the host draws, it draws while a GPU learns."""
        size = self.settings.batch_size
        rows = torch.arange(_AT_ONCE * size, device=self.device).reshape(_AT_ONCE, size)
        for first in count(start, _AT_ONCE):
            steps = range(first, first + _AT_ONCE)
            views = draw_views(
                self.settings.seed, self.shapes, self.canvas, Purpose.FACTORS, steps, size
            )
            placed = views.on(self.device)
            for batch in map(placed.batch, rows):
                assert batch.theta is not None
                yield batch.images, batch.labels, batch.theta

    def _learn_batch(self, images: Tensor, labels: Tensor, maps: Tensor) -> Tensor:
        told, shapes = fast.forward(self.net, images), self.settings.shapes
        loss = cross_entropy(told[:, :shapes], labels)
        if self.settings.maps:
            loss = loss + self.settings.maps * mse_loss(told[:, shapes:], maps.flatten(1))
        return fast.descend(self.optimizer, loss)

    def test(self) -> Score:
        """Name the learned shapes in factors that no step showed."""
        right = torch.zeros((), dtype=torch.int64, device=self.device)
        views = self._test_views(self.shapes, 0)
        for batch in views.batches(self.settings.batch_size, self.device):
            with fast.evaluating(self.net):
                told = fast.forward(self.net, batch.images)[:, : self.settings.shapes]
            right += (told.argmax(1) == batch.labels).sum()
        return Score(int(right), len(views))

    def transfer(self) -> Score:
        """Name shapes never learned by the nearest class mean of their features."""
        others = range(self.shapes.stop, self.shapes.stop + OTHERS)
        (seen, labels), (asked, truth) = (
            self._features(self._test_views(others, number)) for number in (1, 2)
        )
        share = one_hot(labels, OTHERS).T.float()
        count = share.sum(1, keepdim=True)
        means = share @ seen / count.clamp(min=1.0)
        named = name_nearest(asked, means, count[:, 0] > 0, range(OTHERS))
        return Score(int((named == truth).sum()), len(truth))

    def _test_views(self, shapes: range, number: int) -> Split:
        steps, size = range(number, number + 1), self.settings.test_images
        return draw_views(
            self.settings.seed, shapes, self.canvas, Purpose.TEST_FACTORS, steps, size
        )

    def _features(self, views: Split) -> tuple[Tensor, Tensor]:
        """Features (N, width) and labels of all views."""
        batches = views.batches(self.settings.batch_size, self.device)
        parts = [(features(self.net, batch.images), batch.labels) for batch in batches]
        seen, labels = zip(*parts, strict=True)
        return torch.cat(seen), torch.cat(labels)

    def save(self, path: Path, score: Score, transfer: Score) -> Path:
        """Write the extractor without its head, and what it comes from."""
        about: dict[str, Any] = {
            "maker": MAKER,
            "net": self.settings.net,
            "channels": self.settings.channels,
            "size": self.settings.size,
            "settings": asdict(self.settings),
            "shapes": [self.shapes.start, self.shapes.stop],
            "steps": self.done,
            "test": score._asdict(),
            "transfer": {"shapes": OTHERS, **transfer._asdict()},
            "provenance": provenance(gpu_of(self.device)),
        }
        return save_halves(path, self.halves, about)


def draw_views(
    seed: int, shapes: range, canvas: Canvas, purpose: Purpose, steps: range, size: int
) -> Split:
    """Shapes at random in random factors, `size` a step, label 0 being the first shape.

    A row follows from (seed, purpose, step, place in the step): no stream that ends before these shapes
    draws the same numbers.
    """
    step, row = np.divmod(np.arange(len(steps) * size), size)
    drawn = uniform(seed, purpose, FIRST_SHAPE + steps.start + step, row, count=UNIFORMS + 1)
    factors = continuous_space().sample(drawn[:, :UNIFORMS])
    which = (drawn[:, UNIFORMS] * len(shapes)).astype(np.int64)
    maps, curves = theta(factors), outlines(seed, np.array(shapes))
    return Split(which, Sprites(curves, which, maps, factors.color, canvas), factors, maps)
