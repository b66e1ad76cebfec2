"""DCL: regress the affine map of every image, keep one exemplar per class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from everlearn.core.random import Purpose, permutation
from everlearn.memory import Exemplars, SearchResult
from everlearn.methods.dcl import color, fit
from everlearn.methods.dcl.edges import change_edges, change_hard_edges, find_background
from everlearn.methods.dcl.extra_exemplars import add_extra_exemplars, search_classes
from everlearn.methods.dcl.random_draws import (
    jitter,
    replay_exemplars,
    step_draws,
)
from everlearn.methods.dcl.settings import Settings
from everlearn.nets import build_net
from everlearn.nets.layers.norm import use_instance_stats
from everlearn.nets.precision import eval_mode, forward_pass, to_device
from everlearn.render.affine import transform_images
from everlearn.stream import Batch, Task, TaskStream
from everlearn.training.adam import Adam
from everlearn.training.captured_step import CapturedStep
from everlearn.training.optimizer_step import (
    load_optimizer_state,
    optimizer_state,
    optimizer_step,
    reset_optimizer,
    set_learning_rate,
    training_state,
)
from everlearn.training.schedule import training_batches
from everlearn.training.stream_checks import check_epochs
from everlearn.training.weight_average import WeightAverage

_MAX_REPLAYED_CLASSES = 4096  # per task
_ENTRIES = 6  # of a map
Maps = TypeVar("Maps")


class DCL:
    """A net that regresses affine maps, and a memory of exemplars."""

    def __init__(self, stream: TaskStream, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed, and an empty memory."""
        check_epochs(stream, settings.schedule)
        check_maps(stream[0].canonical.theta)
        self.settings = settings
        self.device = device
        self.batch_size = settings.schedule.batch_size
        canvas = stream.canvas
        self.background = find_background(canvas, device) if settings.hard_edge_jitter else None
        self.palette = color.build_palette(canvas, device) if settings.regress_color else None
        outputs = _ENTRIES + (color.CHANNELS if settings.regress_color else 0)
        net = build_net(settings.net, canvas.channels, outputs, canvas.size, stream.seed)
        self.net = to_device(net, device)
        self.average = WeightAverage(self.net, settings.weight_averaging)
        self.averaged_net = self.average.net
        use_instance_stats(self.averaged_net, settings.instance_stats)
        self.memory = Exemplars(canvas.shape, device, settings.crop)
        self.extra_exemplars = self.memory.empty()
        self.optimizer = Adam(self.net.parameters(), settings.schedule.learning_rate)
        self._step = CapturedStep(self._train_step, training_state(self.net, self.optimizer))

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Store the exemplars of new classes, then train on the maps of all images."""
        exemplars = task.exemplars(self.device)
        check_maps(exemplars.theta)
        self.batch_size = min(self.settings.schedule.batch_size, len(task.train))
        self._store(task, exemplars)
        if self.settings.reset_optimizer:
            reset_optimizer(self.optimizer)
        pool = self._replay_pool(task)
        draws = step_draws(self.settings, task, len(pool), self.device)
        self.net.train()
        batches = training_batches(task, self.settings.schedule, self.device)
        for (batch, _, learning_rate), now in zip(batches, draws, strict=True):
            set_learning_rate(self.optimizer, learning_rate)
            targets = self._image_targets(batch, exemplars)
            theta = check_maps(batch.theta)
            colors = self._color_targets(batch, len(now.replayed))
            yield self._step(batch.images, theta, colors, pool[now.replayed], *now[1:], *targets)
        self.average.update()

    def _store(self, task: Task, exemplars: Batch) -> None:
        labels = exemplars.labels.tolist()
        new = [place for place, label in enumerate(labels) if label not in self.memory]
        new_labels = [labels[place] for place in new]
        self.memory.add(new_labels, exemplars.images[new])
        extra = self.settings.exemplars_per_class - 1
        if extra:
            add_extra_exemplars(self.extra_exemplars, task, new_labels, extra, self.device)

    def _replay_pool(self, task: Task) -> Tensor:
        """Return the exemplars that may be replayed in a task: all, or a random choice of many."""
        labels = self.memory.labels if self.settings.exemplar_replay else []
        if len(labels) > _MAX_REPLAYED_CLASSES:
            order = permutation(task.seed, Purpose.REHEARSAL, task.index, len(labels))
            labels = [labels[place] for place in order[:_MAX_REPLAYED_CLASSES]]
        return self.memory.gather(torch.tensor(labels, dtype=torch.int64, device=self.device))

    def _image_targets(self, batch: Batch, exemplars: Batch) -> list[Tensor]:
        """Return the exemplar of each image in a list; an empty list without an image loss."""
        if not self.settings.image_loss_weight:
            return []
        same = batch.labels[:, None] == exemplars.labels[None, :]
        return [exemplars.images[same.int().argmax(1)]]

    def _color_targets(self, batch: Batch, replayed: int) -> Tensor:
        """Return the colour of each shape (B, 3), replayed exemplars last; empty if it is not regressed."""
        if self.palette is None:
            return batch.images.new_zeros((0, color.CHANNELS))
        assert batch.factors is not None  # sprites have factors
        indices = batch.factors.color.long()
        places = torch.arange(len(indices), device=indices.device)
        is_replayed = places >= len(indices) - replayed
        return self.palette.shapes[indices.masked_fill(is_replayed, 0)]

    def _train_step(
        self,
        images: Tensor,
        theta: Tensor,
        colors: Tensor,
        replayed: Tensor,
        views: Tensor,
        moves: Tensor,
        edges: Tensor,
        mask: Tensor,
        *image_targets: Tensor,
    ) -> Tensor:
        """Take one step on the mean of (theta_hat - theta)^2 over batch and entries, and other losses."""
        images, theta = jitter(images, theta, moves)
        images, theta = replay_exemplars(images, theta, replayed, views)
        predicted = forward_pass(self.net, self._jitter_edges(images, edges))
        maps = predicted[:, :_ENTRIES].reshape(-1, 2, 3)
        loss = self.settings.map_loss_weight * ((maps - theta) * mask).square().mean()
        if self.palette is not None:
            loss = loss + (predicted[:, _ENTRIES:] - colors).square().mean()
        for targets in image_targets:
            new = len(images) - len(views)  # the last images are replayed exemplars
            canonical = transform_images(images, maps)
            error = (canonical[:new] - targets[:new]).square().mean()
            loss = loss + self.settings.image_loss_weight * error
        return optimizer_step(self.optimizer, loss)

    def _jitter_edges(self, images: Tensor, edges: Tensor) -> Tensor:
        if self.background is None:
            return change_edges(images, edges)
        return change_hard_edges(images, edges, self.background)

    def theta(self, images: Tensor) -> Tensor:
        """Predict the affine map of each image, (B, 2, 3)."""
        return self._regress(images)[:, :_ENTRIES].reshape(-1, 2, 3)

    def _regress(self, images: Tensor) -> Tensor:
        """Predict the six entries of maps and, where they are regressed, colours, (B, 6 or 9)."""
        with eval_mode(self.averaged_net):
            return forward_pass(self.averaged_net, images)

    def _regress_and_recolor(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return the images in the colour of exemplars, and their predicted maps."""
        predicted = self._regress(images)
        if self.palette is not None:
            images = color.recolor(images, predicted[:, _ENTRIES:], self.palette)
        return images, predicted[:, :_ENTRIES].reshape(-1, 2, 3)

    def codes(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return the six numbers of each map as a code, (B, 6), with standard deviations of 0."""
        theta = self.theta(images).flatten(1)
        return theta, torch.zeros_like(theta)

    def canonicalize(self, images: Tensor) -> Tensor:
        """Bring images to canonical pose, and colour if it is regressed, by their predicted maps."""
        return transform_images(*self._regress_and_recolor(images))

    def match(self, images: Tensor, memory: Exemplars, k: int = 2) -> SearchResult:
        """Find the k nearest classes of a memory; with `fit_candidates`, those that fit best."""
        images, maps = self._regress_and_recolor(images)
        if self.settings.fit_candidates:
            return fit.match(images, maps, memory, k, self.settings.fit_candidates)
        canonical = transform_images(images, maps)
        extra = self.settings.exemplars_per_class - 1
        if extra:
            return search_classes(memory, self.extra_exemplars, extra, canonical, k)
        return memory.search(canonical, k)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the class of the nearest exemplar for each image; -1 where there is none."""
        memory = self.memory
        if among is not None:
            memory = memory.subset([label for label in among if label in memory])
        if not len(memory):
            return torch.full((len(images),), -1, device=images.device)
        return self.match(images, memory, 1).labels[:, 0]

    def novelty(self, images: Tensor) -> Tensor:
        """Return d1 / d2 of the two nearest exemplars: near 1 for an image of an unknown class."""
        return self.match(images, self.memory).novelty

    def is_new(self, images: Tensor) -> Tensor:
        """Decide for each image whether its class is unknown: d1 > sigma * d2."""
        first, second = self.match(images, self.memory).distances.unbind(1)
        return first > self.settings.sigma * second

    def state(self) -> dict[str, Any]:
        """Return weights and exemplars and, where used, averaged weights and the optimizer's state."""
        several = self.settings.exemplars_per_class > 1
        return {
            "net": self.net.state_dict(),
            "optimizer": [] if self.settings.reset_optimizer else optimizer_state(self.optimizer),
            "memory": self.memory.state(),
            "extra_exemplars": self.extra_exemplars.state() if several else {},
            **self.average.state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.net.load_state_dict(state["net"])
        self.average.load_state(state)
        load_optimizer_state(self.optimizer, state["optimizer"])
        self.memory.load_state(state["memory"])
        if self.settings.exemplars_per_class > 1:
            self.extra_exemplars.load_state(state["extra_exemplars"])


def check_maps(theta: Maps | None) -> Maps:
    """Return true affine maps, or raise where the data have none."""
    if theta is None:
        raise ValueError(
            "dcl learns the affine map of each image, and this stream has none; use a stream of "
            "sprites (or dsprites), or another method"
        )
    return theta
