"""What a learner is: two verbs, and a state that can be kept. No base class, no hooks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from everlearn.border import check_number, check_whole
from everlearn.render import check_device
from everlearn.settings import setting
from everlearn.stream import Batch, Task


@runtime_checkable
class Learner(Protocol):
    """Learns one task after another and names the class of any image.

    Attributes:
        device: where it expects images.
        batch_size: how many training images a step takes; fewer where a task has no more.
    """

    device: str
    batch_size: int

    def learn(self, task: Task) -> Iterator[float | Tensor]:
        """Learn a task; give the loss after every optimiser step, without waiting for a GPU."""

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class of each image, a global class id; among some classes only, if told."""

    def state(self) -> dict[str, Any]:
        """All that was learned: tensors and plain values, by the kind of what they are."""

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state, to the same bits."""


class Matches(Protocol):
    """The nearest exemplars of some images, nearest first."""

    @property
    def labels(self) -> Tensor:
        """Class ids (B, k)."""

    @property
    def distances(self) -> Tensor:
        """(B, k)."""

    @property
    def novelty(self) -> Tensor:
        """d1 / d2 of the two nearest, (B,)."""


@runtime_checkable
class Remembers(Protocol):
    """A learner with one exemplar a class, which can be read and edited."""

    memory: Any

    def match(self, images: Tensor, memory: Any, k: int = 2) -> Matches:
        """Find the nearest exemplars of a memory, its own or another."""

    def score(self, images: Tensor) -> Tensor:
        """How new the class of each image seems, from 0 (well known) to 1."""


@runtime_checkable
class Maps(Protocol):
    """A learner that tells the affine map of an image."""

    def theta(self, images: Tensor) -> Tensor:
        """The map from canonical to image coordinates, (B, 2, 3)."""


@runtime_checkable
class Encodes(Protocol):
    """A learner that makes a code of an image: a normal distribution of a few numbers."""

    def codes(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of the code of each image, (B, N) each."""


@runtime_checkable
class Reconstructs(Protocol):
    """A learner that draws an image again from its code."""

    def errors(self, images: Tensor) -> Tensor:
        """Nats lost of each image (B,), in the environment found for all of them together."""


@runtime_checkable
class Masks(Protocol):
    """A learner that tells environments apart, and which latents apply in each."""

    def environment(self, images: Tensor) -> Tensor:
        """Find the environment of images that belong together: one int64."""

    def mask(self, images: Tensor) -> Tensor:
        """Whether each latent applies there, (N,) bool."""

    def used(self, images: Tensor) -> Tensor:
        """Whether images there are drawn by each latent, (N,) bool."""


@runtime_checkable
class Tells(Protocol):
    """A learner that tells numbers about itself, which are written down after every task."""

    def notes(self) -> dict[str, float | Tensor]:
        """Numbers by name; a tensor of one number may lie on a GPU."""


@dataclass(frozen=True)
class Pace:
    """How a learner goes through a task."""

    batch_size: int = setting(256, "images a step")
    epochs: int = setting(5, "passes over the training images of a task")
    rate: float = setting(1e-3, "learning rate at the start of a task")
    final_rate: float | None = setting(None, "and at its end, along a cosine; none: constant")

    def __post_init__(self) -> None:
        """Check every setting."""
        check_whole(self.batch_size, "batch_size", 1, 1_000_000)
        check_whole(self.epochs, "epochs", 1, 1_000_000)
        check_number(self.rate, "rate", 0, 1e3)
        if self.final_rate is not None:
            check_number(self.final_rate, "final_rate", 0, 1e3)

    def rate_at(self, step: int, steps: int) -> float:
        """The learning rate of a step, the first being 0."""
        if self.final_rate is None:
            return self.rate
        left = 0.5 * (1 + math.cos(math.pi * step / max(1, steps - 1)))
        return self.final_rate + (self.rate - self.final_rate) * left


class Lesson(NamedTuple):
    """A batch to learn from, its place in the task and its learning rate."""

    batch: Batch
    step: int
    rate: float


def lessons(task: Task, pace: Pace, device: str) -> Iterator[Lesson]:
    """Go through a task; an epoch's last batch is left out when it is not full, unless it is alone."""
    steps = count_steps(task, pace)
    drop = len(task.train) >= pace.batch_size
    batches = task.batches(pace.batch_size, pace.epochs, device, drop_last=drop)
    for step, batch in enumerate(batches):
        yield Lesson(batch, step, pace.rate_at(step, steps))


def count_steps(task: Task, pace: Pace) -> int:
    """How many lessons a task has."""
    drop = len(task.train) >= pace.batch_size
    return task.count_batches(pace.batch_size, pace.epochs, drop_last=drop)


def check_passes(stream: Any, pace: Pace) -> None:
    """Raise where a pace goes more than once through tasks that may be seen once only."""
    if stream.online and pace.epochs > 1:
        raise ValueError(
            f"this stream is online: one pass is allowed, found epochs={pace.epochs}; give epochs=1"
        )


def all_classes(stream: Any) -> range:
    """The ids of all classes of a stream, for a net that has an output for each from the start."""
    if stream.tasks is None:
        raise ValueError(
            "this method has an output for each class, and an endless stream has no last one; give "
            "it an end, as in stream.with_changes(tasks=100), or use dcl or contrastive"
        )
    ids: range = stream.class_ids
    return ids


def find_device(device: str) -> str:
    """A device by its name; "auto" is a GPU where there is one."""
    if device != "auto":
        return check_device(device)
    return "cuda" if torch.cuda.is_available() else "cpu"
