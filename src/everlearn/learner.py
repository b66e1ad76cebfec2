"""What a learner is: two methods, and a state that can be saved. No base class, no hooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from everlearn.memory import Exemplars, SearchResult
from everlearn.stream import Task


@runtime_checkable
class Learner(Protocol):
    """Learns one task after another and predicts the class of any image.

    Attributes:
        device: where it expects images.
        batch_size: training images per step; fewer if a task has no more.
    """

    device: str
    batch_size: int

    def learn(self, task: Task) -> Iterator[float | Tensor]:
        """Learn a task; yield the loss after every optimizer step, without waiting for a GPU."""

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the global class id of each image, chosen from the classes `among` if they are given."""

    def state(self) -> dict[str, Any]:
        """Return everything that was learned: tensors and plain values, by name."""

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore a state, so that learning continues bit for bit."""


@runtime_checkable
class HasMemory(Protocol):
    """A learner with one exemplar per class in a memory that can be read and edited."""

    memory: Exemplars

    def match(self, images: Tensor, memory: Exemplars, k: int = 2) -> SearchResult:
        """Find the k nearest exemplars of each image in a memory, the learner's or another."""

    def novelty(self, images: Tensor) -> Tensor:
        """Return how new the class of each image seems, from 0 (well known) to 1, (B,)."""


@runtime_checkable
class PredictsTheta(Protocol):
    """A learner that predicts the affine map of an image."""

    def theta(self, images: Tensor) -> Tensor:
        """Return the maps from canonical to image coordinates, (B, 2, 3)."""


@runtime_checkable
class Encodes(Protocol):
    """A learner that encodes an image as a normal distribution over a few latents."""

    def codes(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation of the code of each image, (B, N) each."""


@runtime_checkable
class Reconstructs(Protocol):
    """A learner that reconstructs an image from its code."""

    def reconstruction_errors(self, images: Tensor) -> Tensor:
        """Return the error of each image in nats (B,), in the environment inferred for all of them."""


@runtime_checkable
class InfersEnvironments(Protocol):
    """A learner that infers environments, and which latents apply in each."""

    def environment(self, images: Tensor) -> Tensor:
        """Infer the environment of images that belong together: one int64."""

    def mask(self, images: Tensor) -> Tensor:
        """Return whether each latent applies in their environment, (N,) bool."""

    def used(self, images: Tensor) -> Tensor:
        """Return whether each latent is used to draw images in their environment, (N,) bool."""


@runtime_checkable
class ReportsDiagnostics(Protocol):
    """A learner that reports numbers about itself, which are kept after every task."""

    def diagnostics(self) -> dict[str, float | Tensor]:
        """Return numbers by name; a tensor of one number may be on a GPU."""
