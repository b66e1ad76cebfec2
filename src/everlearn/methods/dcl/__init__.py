"""Disentangled continual learning (Dziadzio et al. 2023, arXiv 2312.16731).

A net tells the affine map from an image's class exemplar to the image; the image seen through it is
compared with one exemplar a class. Weights hold no class, the memory holds no weights. What differs
from the paper is in docs/methods/dcl.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, TypeVar

import torch
from torch import Tensor

from everlearn.learner import check_passes, lessons
from everlearn.memory import Exemplars, Found
from everlearn.methods.dcl import fit
from everlearn.methods.dcl.chance import Chance, draw_chance, move, rehearse
from everlearn.methods.dcl.settings import Settings
from everlearn.nets import build_net, fast
from everlearn.nets.norm import count_own
from everlearn.philox import Purpose, permutation
from everlearn.stream import Batch, Stream, Task
from everlearn.warp import normalise

__all__ = ["DCL", "Settings"]

_POOL = 4096
Maps = TypeVar("Maps")


class DCL:
    """Regresses maps, keeps exemplars."""

    def __init__(self, stream: Stream, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed, and an empty memory."""
        check_passes(stream, settings.pace)
        check_maps(stream[0].canonical.theta)
        canvas = stream.canvas
        self.settings, self.device = settings, device
        self.batch_size = settings.pace.batch_size
        net = build_net(settings.net, canvas.channels, 6, canvas.size, stream.seed)
        self.net = fast.place(net, device)
        self.answering = deepcopy(self.net).requires_grad_(False) if settings.average else self.net
        count_own(self.answering, settings.own)
        self.tasks = 0
        self.memory = Exemplars(canvas.shape, device, settings.crop)
        self.optimizer = fast.adam(self.net.parameters(), settings.pace.rate)
        changed = fast.changed(self.net, self.optimizer)
        self._step = fast.Step(self._learn_batch, changed)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Remember the exemplars of new classes, then learn the maps of all images."""
        shown = task.exemplars(self.device)
        check_maps(shown.theta)
        self.batch_size = min(self.settings.pace.batch_size, len(task.train))
        self._remember(shown)
        if self.settings.fresh:
            fast.forget(self.optimizer)
        pool = self._pool(task)
        chance = draw_chance(self.settings, task, len(pool)).to(self.device)
        self.net.train()
        for batch, step, rate in lessons(task, self.settings.pace, self.device):
            fast.set_rate(self.optimizer, rate)
            now = Chance(*(part[step] for part in chance))
            targets = self._targets(batch, shown)
            theta = check_maps(batch.theta)
            yield self._step(batch.images, theta, pool[now.recalled], *now[1:], *targets)
        self._average()

    def _average(self) -> None:
        """Move the answering net towards the one that learns, the less the more tasks there were.

        Young nets are poor: the mean is of about the last sixth of all tasks (polynomial decay,
        Shamir and Zhang 2013), until that is as slow as it may be.
        """
        self.tasks += 1
        if self.settings.average:
            share = max(1.0 - self.settings.average, 6.0 / (self.tasks + 5.0))
            slow, now = self.answering.state_dict(), self.net.state_dict()
            torch._foreach_lerp_(list(slow.values()), list(now.values()), share)

    def _remember(self, shown: Batch) -> None:
        labels = shown.labels.tolist()
        new = [place for place, label in enumerate(labels) if label not in self.memory]
        self.memory.add([labels[place] for place in new], shown.images[new])

    def _pool(self, task: Task) -> Tensor:
        """Exemplars that may be rehearsed in a task: all, or so many at random when there are more."""
        labels = self.memory.labels if self.settings.rehearse else []
        if len(labels) > _POOL:
            order = permutation(task.seed, Purpose.REHEARSAL, task.index, len(labels))
            labels = [labels[place] for place in order[:_POOL]]
        return self.memory.pictures(torch.tensor(labels, dtype=torch.int64, device=self.device))

    def _targets(self, batch: Batch, shown: Batch) -> list[Tensor]:
        """The exemplar of each image, where the loss asks for it."""
        if not self.settings.image_loss:
            return []
        same = batch.labels[:, None] == shown.labels[None, :]
        return [shown.images[same.int().argmax(1)]]

    def _learn_batch(
        self,
        images: Tensor,
        theta: Tensor,
        recalled: Tensor,
        views: Tensor,
        moves: Tensor,
        kept: Tensor,
        *exemplars: Tensor,
    ) -> Tensor:
        """One step: mean of (theta_hat - theta)^2 over batch and entries."""
        images, theta = move(images, theta, moves)
        images, theta = rehearse(images, theta, recalled, views)
        found = fast.forward(self.net, images).reshape(-1, 2, 3)
        loss = ((found - theta) * kept).square().mean()
        if exemplars:
            seen, count = normalise(images, found), len(images) - len(views)
            error = (seen[:count] - exemplars[0][:count]).square().mean()
            loss = loss + self.settings.image_loss * error
        return fast.descend(self.optimizer, loss)

    def theta(self, images: Tensor) -> Tensor:
        """Tell the map of each image, (B, 2, 3)."""
        with fast.evaluating(self.answering):
            return fast.forward(self.answering, images).reshape(-1, 2, 3)

    def codes(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """The six numbers of each map as a code, (B, 6), which is sure: its deviation is 0."""
        theta = self.theta(images).flatten(1)
        return theta, torch.zeros_like(theta)

    def normalise(self, images: Tensor) -> Tensor:
        """Bring images to canonical form."""
        return normalise(images, self.theta(images))

    def match(self, images: Tensor, memory: Exemplars, k: int = 2) -> Found:
        """Find the nearest exemplars of any memory, or those that fit best."""
        maps = self.theta(images)
        if self.settings.fit:
            return fit.match(images, maps, memory, k, self.settings.fit)
        return memory.search(normalise(images, maps), k)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class of the nearest exemplar, of all or of those asked about; -1 for none."""
        memory = self.memory
        if among is not None:
            memory = memory.part([label for label in among if label in memory])
        if not len(memory):
            return torch.full((len(images),), -1, device=images.device)
        return self.match(images, memory, 1).labels[:, 0]

    def score(self, images: Tensor) -> Tensor:
        """d1 / d2 of the two nearest exemplars: near 1 for an image of no known class."""
        return self.match(images, self.memory).novelty

    def is_new(self, images: Tensor) -> Tensor:
        """Whether an image seems to be of no known class: d1 > sigma * d2."""
        first, second = self.match(images, self.memory).distances.unbind(1)
        return first > self.settings.sigma * second

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


def check_maps(theta: Maps | None) -> Maps:
    """Return true maps, or say that the data have none."""
    if theta is None:
        raise ValueError(
            "dcl learns the affine map of each image, and this stream has none; use a stream of "
            "sprites (or dsprites), or another method"
        )
    return theta
