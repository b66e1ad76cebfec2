"""The contrastive baseline of the DCL paper (Dziadzio et al. 2023, arXiv 2312.16731, appendix A.4).

A net embeds images near the exemplar of their class and away from those of other classes; the nearest
exemplar gives the class. What differs is in docs/methods/contrastive.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from everlearn.core.settings import setting
from everlearn.core.validate import check_int, check_number
from everlearn.losses.contrastive import contrastive_loss, nearest_keys
from everlearn.memory import Exemplars, FloatExemplars, SearchResult, draw_replay_rows
from everlearn.memory.search import full_precision
from everlearn.nets.precision import forward_pass, to_device
from everlearn.nets.projection_net import build_projection_net, embed, to_float
from everlearn.stream import Task, TaskStream
from everlearn.training.adam import Adam
from everlearn.training.captured_step import CapturedStep
from everlearn.training.early_stopping import EarlyStopping
from everlearn.training.optimizer_step import (
    load_optimizer_state,
    optimizer_state,
    optimizer_step,
    reset_optimizer,
    set_learning_rate,
    training_state,
)
from everlearn.training.schedule import Schedule, count_steps, training_batches
from everlearn.training.stream_checks import check_epochs

_MAX_SIMILARITIES = 2**27  # at once: 512 MiB


@dataclass(frozen=True)
class Settings:
    """Settings of the contrastive baseline; the paper states none of them."""

    schedule: Schedule = Schedule(epochs=20, final_learning_rate=1e-5)
    net: str = setting("resnet18", "backbone, without its last layer")
    temperature: float = setting(0.5, "temperature of the similarities (the paper's code: 0.5)")
    patience: int = setting(
        3, "end a task after so many epochs without a lower validation loss; 0: never"
    )
    negative_exemplars: int = setting(
        0, "exemplars of earlier classes that a step uses as negatives"
    )
    reset_optimizer: bool = setting(False, "reset the optimizer's state at every task")
    exemplar_loss_weight: float = setting(
        1.0, "weight of l2, which repels exemplars from each other; 0: l1 only"
    )

    def __post_init__(self) -> None:
        """Check every setting."""
        check_number(self.temperature, "temperature", 1e-3, 1e3)
        check_int(self.patience, "patience", 0, 10**6)
        check_int(self.negative_exemplars, "negative_exemplars", 0, 10**6)
        check_number(self.exemplar_loss_weight, "exemplar_loss_weight", 0, 1e3)


class EmbeddedMemory(NamedTuple):
    """The exemplars of a memory with their embeddings.

    Attributes:
        images: (N, C, H, W) in the order of labels.
        embeddings: (N, D) of length 1.
    """

    labels: list[int]
    images: Tensor
    embeddings: Tensor


class TaskExemplars(NamedTuple):
    """The exemplars that go through the net beside the images of a step.

    Attributes:
        exemplars: of the task's classes, (C, channels, H, W).
        classes: of the exemplars, (C,).
        pool: exemplars of earlier classes, as they are stored.
        rows: (steps, negative_exemplars) rows of the pool for each step; empty without negatives.
    """

    exemplars: Tensor
    classes: Tensor
    pool: Tensor
    rows: Tensor

    def at(self, step: int) -> list[Tensor]:
        """Return the task's exemplars, their classes and, if there are any, negatives of a step."""
        negatives = [to_float(self.pool[rows]) for rows in self.rows[step : step + 1]]
        return [self.exemplars, self.classes, *negatives]


class Contrastive:
    """A backbone with a projector, and a memory of exemplars."""

    def __init__(self, stream: TaskStream, settings: Settings, device: str) -> None:
        """Start with random weights that follow from the stream's seed, and an empty memory."""
        check_epochs(stream, settings.schedule)
        canvas = stream.canvas
        self.settings = settings
        self.device = device
        self.batch_size = settings.schedule.batch_size
        net = build_projection_net(settings.net, canvas.channels, canvas.size, stream.seed)
        self.net = to_device(net, device)
        self.memory: Exemplars | FloatExemplars
        if canvas.bits == 8:
            self.memory = Exemplars(canvas.shape, device)
        else:
            self.memory = FloatExemplars(canvas.shape, device)
        self.optimizer = Adam(self.net.parameters(), settings.schedule.learning_rate)
        changed = training_state(self.net, self.optimizer)
        self._step = CapturedStep(self._learn_batch, changed)
        self._embedded: EmbeddedMemory | None = None

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Store the exemplars of new classes, then learn until the validation loss stops falling."""
        schedule = self.settings.schedule
        self.batch_size = min(schedule.batch_size, len(task.train))
        exemplars = self._collect_exemplars(task)
        if self.settings.reset_optimizer:
            reset_optimizer(self.optimizer)
        early_stopping = EarlyStopping(self.net, self.settings.patience)
        epoch_steps = count_steps(task, schedule) // schedule.epochs
        self.net.train()
        for batch, step, learning_rate in training_batches(task, schedule, self.device):
            set_learning_rate(self.optimizer, learning_rate)
            loss = self._step(batch.images, batch.labels, *exemplars.at(step))
            self._embedded = None
            yield loss
            if (step + 1) % epoch_steps == 0 and self._should_stop(task, exemplars, early_stopping):
                break
        early_stopping.restore()
        self._embedded = None

    def _collect_exemplars(self, task: Task) -> TaskExemplars:
        """Store the exemplars of new classes; return those of the task as stored, and negatives."""
        batch = task.exemplars(self.device)
        known = set(self.memory.labels)
        new = [row for row, label in enumerate(task.classes) if label not in known]
        self.memory.add([task.classes[row] for row in new], batch.images[new])
        exemplars = to_float(self.memory.images(list(task.classes)))
        old = sorted(known - set(task.classes)) if self.settings.negative_exemplars else []
        rows = self._draw_negatives(task, len(old))
        return TaskExemplars(exemplars, batch.labels, self.memory.images(old), rows)

    def _draw_negatives(self, task: Task, count: int) -> Tensor:
        """Draw rows of `count` old exemplars for each step, (steps, negative_exemplars); empty for 0."""
        steps = count_steps(task, self.settings.schedule)
        rows = draw_replay_rows(
            task.seed, task.index, count, steps, self.settings.negative_exemplars
        )
        return torch.from_numpy(rows).to(self.device)

    def _learn_batch(
        self,
        images: Tensor,
        labels: Tensor,
        exemplars: Tensor,
        classes: Tensor,
        *negatives: Tensor,
    ) -> Tensor:
        """Take a step; images and exemplars go through the net together."""
        inputs = (images, exemplars, *negatives)
        embeddings = forward_pass(self.net, torch.cat(inputs))
        z, e, *n = torch.split(embeddings, [len(part) for part in inputs])
        loss = self._loss(z, labels, e, classes, *n)
        return optimizer_step(self.optimizer, loss)

    def _loss(
        self, images: Tensor, labels: Tensor, exemplars: Tensor, classes: Tensor, *negatives: Tensor
    ) -> Tensor:
        return contrastive_loss(
            images,
            labels,
            exemplars,
            classes,
            self.settings.temperature,
            torch.cat(negatives) if negatives else None,
            self.settings.exemplar_loss_weight,
        )

    def _should_stop(
        self, task: Task, exemplars: TaskExemplars, early_stopping: EarlyStopping
    ) -> bool:
        """Whether the validation loss has stopped falling; never without validation images."""
        if not (self.settings.patience and len(task.val)):
            return False
        return early_stopping.should_stop(float(self._validate(task, *exemplars.at(0))))

    def _validate(
        self, task: Task, exemplars: Tensor, classes: Tensor, *negatives: Tensor
    ) -> Tensor:
        """Return the mean loss of the validation images, in batches spread over all classes."""
        count = len(task.val)
        batches = -(-count // self.settings.schedule.batch_size)
        e, *n = (embed(self.net, images) for images in (exemplars, *negatives))
        total = torch.zeros((), device=self.device)
        for first in range(batches):
            batch = task.val.batch(slice(first, None, batches), self.device)
            z = embed(self.net, batch.images)
            loss = self._loss(z, batch.labels, e, classes, *n)
            total += loss * len(batch.labels)
        return total / count

    def match(self, images: Tensor, memory: Exemplars | FloatExemplars, k: int = 2) -> SearchResult:
        """Return the nearest exemplars of any memory; distances are 1 - cosine."""
        return self._search(images, self._embed(memory), k)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the class of the nearest exemplar, among all or some classes; -1 without any."""
        return self._search(images, self._embed(self.memory), 1, among).labels[:, 0]

    def novelty(self, images: Tensor) -> Tensor:
        """Return d1 / d2 of the two nearest exemplars: near 1 for an image of no known class."""
        return self.match(images, self.memory).novelty

    def _embed(self, memory: Exemplars | FloatExemplars) -> EmbeddedMemory:
        """Return the embeddings of a memory; computed again when the net or an exemplar has changed.

        Anyone may edit a memory at any time, so its images are compared with those of the last call.
        """
        labels = memory.labels
        images = memory.images()
        last = self._embedded
        if last is None or last.labels != labels or not torch.equal(last.images, images):
            last = EmbeddedMemory(labels, images, embed(self.net, images))
            self._embedded = last
        return last

    def _search(
        self, images: Tensor, memory: EmbeddedMemory, k: int, among: Sequence[int] | None = None
    ) -> SearchResult:
        """Return the k exemplars of largest cosine, some images at a time."""
        labels = torch.tensor(memory.labels, dtype=torch.int64, device=self.device)
        excluded = torch.zeros_like(labels, dtype=torch.bool)
        if among is not None:
            excluded = ~torch.isin(labels, labels.new_tensor(list(among)))
        queries = embed(self.net, images)
        chunks = torch.split(queries, max(1, _MAX_SIMILARITIES // max(1, len(labels))))
        with full_precision(queries.device):
            results = [
                nearest_keys(chunk, memory.embeddings, labels, excluded, k) for chunk in chunks
            ]
        return SearchResult(*(torch.cat(parts) for parts in zip(*results, strict=True)))

    def state(self) -> dict[str, Any]:
        """Return weights, exemplars and, unless it is reset, the optimizer's state."""
        return {
            "net": dict(self.net.state_dict()),
            "memory": self.memory.state(),
            "optimizer": [] if self.settings.reset_optimizer else optimizer_state(self.optimizer),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.net.load_state_dict(state["net"])
        self.memory.load_state(state["memory"])
        load_optimizer_state(self.optimizer, state["optimizer"])
        self._embedded = None
