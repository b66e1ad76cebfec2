"""Disentangled continual learning (Dziadzio et al. 2023, arXiv 2312.16731).

A net tells the affine map from an image's class exemplar to the image; the image seen through it is
compared with one exemplar a class. Weights hold no class, the memory holds no weights. What differs
from the paper is in docs/methods/dcl.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from everlearn.border import check_number, check_whole
from everlearn.learner import Pace, count_steps, lessons
from everlearn.memory import Exemplars, Found
from everlearn.nets import build_net, fast
from everlearn.philox import Purpose, uniform
from everlearn.settings import setting
from everlearn.stream import Batch, Stream, Task
from everlearn.warp import compose, invert, normalise, similarities


@dataclass(frozen=True)
class Settings:
    """What DCL can be told. The paper's: a constant rate, no jitter."""

    pace: Pace = Pace(final_rate=1e-5)
    net: str = setting("resnet18", "which net tells the map")
    image_loss: float = setting(0.0, "weight of the loss between normalised image and exemplar")
    masked: int = setting(0, "entries of the map, of six, that a step leaves out of its loss")
    fresh: bool = setting(True, "start the optimiser afresh with every task")
    average: float = setting(
        0.0, "answer with the mean of the nets after past tasks, this slow; 0.9"
    )
    crop: float | None = setting(None, "compare a central part only, of this half-width; 0.36 say")
    sigma: float = setting(0.8, "an image is new when d1 > sigma * d2, its two nearest distances")
    jitter: float = setting(0.0, "part of each batch that is moved at random; 0.5 say")
    jitter_scale: float = setting(0.25, "its scale goes from exp(-this) to exp(this)")
    jitter_turn: float = setting(36.0, "its rotation, degrees either way")
    jitter_shift: float = setting(0.15, "its shift either way; the image is 2 wide")

    def __post_init__(self) -> None:
        """Check every setting."""
        check_number(self.image_loss, "image_loss", 0, 1e6)
        check_whole(self.masked, "masked", 0, 5)
        check_number(self.average, "average", 0, 0.9999)
        check_number(self.sigma, "sigma", 0, 1)
        check_number(self.jitter, "jitter", 0, 1)
        check_number(self.jitter_scale, "jitter_scale", 0, 2)
        check_number(self.jitter_turn, "jitter_turn", 0, 180)
        check_number(self.jitter_shift, "jitter_shift", 0, 1)


class DCL:
    """Regresses maps, keeps exemplars."""

    def __init__(self, stream: Stream, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed, and an empty memory."""
        canvas = stream.canvas
        self.settings, self.device = settings, device
        self.batch_size = settings.pace.batch_size
        net = build_net(settings.net, canvas.channels, 6, canvas.size, stream.seed)
        self.net = fast.place(net, device)
        self.answering = deepcopy(self.net).requires_grad_(False) if settings.average else self.net
        self.tasks = 0
        self.memory = Exemplars(canvas.shape, device, settings.crop)
        self.optimizer = fast.adam(self.net.parameters(), settings.pace.rate)
        changed = [*self.net.state_dict().values(), *fast.moments(self.optimizer)]
        self._step = fast.Step(self._learn_batch, changed)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Remember the exemplars of new classes, then learn the maps of all images."""
        shown = task.exemplars(self.device)
        maps_of(shown)
        self._remember(shown)
        if self.settings.fresh:
            fast.forget(self.optimizer)
        moves = torch.from_numpy(draw_moves(self.settings, task)).to(self.device)
        kept = torch.from_numpy(draw_kept(self.settings, task)).to(self.device)
        self.net.train()
        for batch, step, rate in lessons(task, self.settings.pace, self.device):
            fast.set_rate(self.optimizer, rate)
            targets = self._targets(batch, shown)
            yield self._step(batch.images, maps_of(batch), moves[step], kept[step], *targets)
        self._average()

    def _average(self) -> None:
        """Move the answering net towards the one that learns; at first it is the plain mean."""
        self.tasks += 1
        if self.settings.average:
            share = max(1.0 - self.settings.average, 1.0 / self.tasks)
            slow, now = self.answering.state_dict(), self.net.state_dict()
            torch._foreach_lerp_(list(slow.values()), list(now.values()), share)

    def _remember(self, shown: Batch) -> None:
        labels = shown.labels.tolist()
        new = [place for place, label in enumerate(labels) if label not in self.memory]
        self.memory.add([labels[place] for place in new], shown.images[new])

    def _targets(self, batch: Batch, shown: Batch) -> list[Tensor]:
        """The exemplar of each image, where the loss asks for it."""
        if not self.settings.image_loss:
            return []
        same = batch.labels[:, None] == shown.labels[None, :]
        return [shown.images[same.int().argmax(1)]]

    def _learn_batch(
        self, images: Tensor, theta: Tensor, moves: Tensor, kept: Tensor, *exemplars: Tensor
    ) -> Tensor:
        """One step: mean of (theta_hat - theta)^2 over batch and entries."""
        images, theta = move(images, theta, moves)
        found = fast.forward(self.net, images).reshape(-1, 2, 3)
        loss = ((found - theta) * kept).square().mean()
        if exemplars:
            seen = normalise(images, found)
            loss = loss + self.settings.image_loss * (seen - exemplars[0]).square().mean()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss

    def theta(self, images: Tensor) -> Tensor:
        """Tell the map of each image, (B, 2, 3)."""
        with fast.evaluating(self.answering):
            return fast.forward(self.answering, images).reshape(-1, 2, 3)

    def normalise(self, images: Tensor) -> Tensor:
        """Bring images to canonical form."""
        return normalise(images, self.theta(images))

    def match(self, images: Tensor, memory: Exemplars, k: int = 2) -> Found:
        """Find the nearest exemplars of any memory."""
        return memory.search(self.normalise(images), k)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class of the nearest exemplar; -1 while there is none."""
        if not len(self.memory):
            return torch.full((len(images),), -1, device=images.device)
        return self.match(images, self._part(among), 1).labels[:, 0]

    def score(self, images: Tensor) -> Tensor:
        """d1 / d2 of the two nearest exemplars: near 1 for an image of no known class."""
        return self.match(images, self.memory).novelty

    def is_new(self, images: Tensor) -> Tensor:
        """Whether an image seems to be of no known class: d1 > sigma * d2."""
        return self.score(images) > self.settings.sigma

    def _part(self, among: Sequence[int] | None) -> Exemplars:
        if among is None:
            return self.memory
        part = self.memory.empty()
        part.add(list(among), self.memory.images(list(among)))
        return part

    def state(self) -> dict[str, Any]:
        """Weights, exemplars and, where they are used, slow weights and what the optimiser keeps."""
        return {
            "net": self.net.state_dict(),
            "average": self.answering.state_dict() if self.settings.average else {},
            "optimizer": [] if self.settings.fresh else fast.moments(self.optimizer),
            "memory": self.memory.state(),
            "tasks": self.tasks,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.net.load_state_dict(state["net"])
        if self.settings.average:
            self.answering.load_state_dict(state["average"])
        fast.load_moments(self.optimizer, state["optimizer"])
        self.memory.load_state(state["memory"])
        self.tasks = state["tasks"]


def move(images: Tensor, theta: Tensor, moves: Tensor) -> tuple[Tensor, Tensor]:
    """See the first images through moves J; their maps become J^-1 theta."""
    count = len(moves)
    if count == 0:
        return images, theta
    moved = normalise(images[:count], moves)
    maps = compose(invert(moves), theta[:count])
    return torch.cat((moved, images[count:])), torch.cat((maps, theta[count:]))


def draw_moves(settings: Settings, task: Task) -> NDArray[np.float32]:
    """Random moves (steps, N, 2, 3) for the first N images of every step of a task."""
    steps = count_steps(task, settings.pace)
    count = round(settings.jitter * min(settings.pace.batch_size, len(task.train)))
    if count == 0:
        return np.zeros((steps, 0, 2, 3), np.float32)
    number = uniform(task.seed, Purpose.JITTER, task.index, np.arange(steps), count=4 * count)
    side = 2.0 * number.reshape(steps, count, 4) - 1.0
    scale = np.exp(settings.jitter_scale * side[..., 0])
    angle = np.deg2rad(settings.jitter_turn) * side[..., 1]
    return similarities(scale, angle, settings.jitter_shift * side[..., 2:])


def draw_kept(settings: Settings, task: Task) -> NDArray[np.float32]:
    """Ones (steps, 2, 3), and zeros at the entries that a step leaves out."""
    steps = count_steps(task, settings.pace)
    kept = np.ones((steps, 6), np.float32)
    order = uniform(task.seed, Purpose.MASK, task.index, np.arange(steps), count=6).argsort(axis=1)
    np.put_along_axis(kept, order[:, : settings.masked], 0, axis=1)
    return kept.reshape(steps, 2, 3)


def maps_of(batch: Batch) -> Tensor:
    """The true maps of a batch, or an error where the data have none."""
    if batch.theta is None:
        raise ValueError(
            "dcl learns the affine map of each image, and this stream has none; use a stream of "
            "sprites (or dsprites), or another method"
        )
    return batch.theta
