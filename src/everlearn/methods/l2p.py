"""Learning to prompt (Wang et al. 2022, arXiv 2112.08654): a frozen transformer and a pool of prompts.

Two methods share this file: l2p has weights pre-trained elsewhere, l2p-lite those of `everlearn pretrain`.
The defaults are Avalanche's, which the DCL paper's code runs; what differs is in docs/methods/l2p.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_

from everlearn.core.settings import setting
from everlearn.core.validate import check_int, check_number
from everlearn.nets.classifier import Classifier
from everlearn.nets.precision import to_device
from everlearn.nets.prompted_vit import PromptedViT
from everlearn.nets.seeded import seeded
from everlearn.nets.vit import CONFIGS, ViT
from everlearn.nets.vit.weights import load_vit
from everlearn.nets.weights import digest
from everlearn.stream import Task, TaskStream
from everlearn.training.adam import Adam
from everlearn.training.captured_step import CapturedStep
from everlearn.training.optimizer_step import (
    load_optimizer_state,
    optimizer_state,
    reset_optimizer,
    set_learning_rate,
    training_state,
)
from everlearn.training.schedule import Schedule, training_batches
from everlearn.training.stream_checks import check_epochs, finite_class_ids

RANDOM = "random"


@dataclass(frozen=True)
class Settings:
    """Settings of learning to prompt."""

    schedule: Schedule = Schedule(learning_rate=0.03)
    weights: str | None = setting(
        None, "the frozen net: a file, a folder or a hub name; random: a tiny net for tests"
    )
    image_size: int | None = setting(
        None, "resize images to this side; none: the size of the pre-training"
    )
    pool_size: int = setting(20, "prompts in the pool (Avalanche: 20; l2p-pytorch: 10)")
    prompt_length: int = setting(5, "tokens of a prompt (both: 5)")
    top_k: int = setting(5, "prompts selected for an image (both: 5)")
    batchwise_prompts: bool = setting(
        False, "give a training batch the prompts that most of it selected (l2p-pytorch: yes)"
    )
    key_loss_weight: float = setting(
        0.1, "lambda of eq. 5: weight of the selected keys' cosines (both: 0.1)"
    )
    max_gradient_norm: float | None = setting(
        None, "clip the gradient's norm at this (Avalanche: none; l2p-pytorch: 1)"
    )
    reset_optimizer: bool = setting(True, "reset the optimizer at every task (both: yes)")

    def __post_init__(self) -> None:
        """Check every number."""
        check_int(self.pool_size, "pool_size", 1, 100_000)
        check_int(self.prompt_length, "prompt_length", 1, 1000)
        check_int(self.top_k, "top_k", 1, self.pool_size, " (pool_size)")
        check_number(self.key_loss_weight, "key_loss_weight", 0, 1e3)
        if self.image_size is not None:
            check_int(self.image_size, "image_size", 1, 4096)
        if self.max_gradient_norm is not None:
            check_number(self.max_gradient_norm, "max_gradient_norm", 1e-9, 1e9)


def build_l2p(stream: TaskStream, settings: Settings, device: str) -> L2P:
    """Build L2P on weights that were pre-trained elsewhere."""
    net, is_ours = _load(settings.weights, stream.seed, "l2p", "google/vit-base-patch16-224-in21k")
    if is_ours:
        raise ValueError(
            f"{settings.weights} is a net of `everlearn pretrain`, not one L2P is defined on; use l2p-lite"
        )
    return L2P(stream, settings, device, net)


def build_lite(stream: TaskStream, settings: Settings, device: str) -> L2P:
    """Build L2P-lite: the same on a small transformer of `everlearn pretrain`."""
    hint = "out/vit-lite.npz, which `everlearn pretrain` writes"
    net, is_ours = _load(settings.weights, stream.seed, "l2p-lite", hint)
    if not is_ours and settings.weights != RANDOM:
        raise ValueError(f"{settings.weights} is no net of `everlearn pretrain`; use l2p")
    return L2P(stream, settings, device, net)


def _load(weights: str | None, seed: int, name: str, hint: str) -> tuple[ViT, bool]:
    """Return the net to freeze, and whether its weights are of `everlearn pretrain`."""
    if weights is None:
        raise ValueError(
            f"{name} needs a pre-trained vision transformer, found none; give weights, such as {hint}"
        )
    if weights == RANDOM:
        with seeded(seed):
            return ViT(CONFIGS["vit-test"]), False
    net, about = load_vit(weights)
    return net, about.get("maker") == "everlearn pretrain"


class L2P:
    """A frozen net with trained prompts, keys and head.

    Attributes:
        task_classes: (classes,) classes of the current task.
    """

    def __init__(self, stream: TaskStream, settings: Settings, device: str, frozen: ViT) -> None:
        """Start with random prompts, keys and head that follow from the stream's seed."""
        check_epochs(stream, settings.schedule)
        image_size = _check_size(settings.image_size or frozen.config.size, frozen)
        classes = finite_class_ids(stream)
        self.settings = settings
        self.device = device
        self.batch_size = settings.schedule.batch_size
        self.frozen = to_device(frozen.requires_grad_(False).eval(), device)
        self.digest = digest(frozen)
        with seeded(stream.seed):
            self.net = PromptedViT(
                frozen,
                len(classes),
                image_size,
                settings.pool_size,
                settings.prompt_length,
                settings.top_k,
                settings.batchwise_prompts,
            )
        self.model = Classifier(self.net, classes, device)
        self.task_classes = torch.zeros_like(self.model.seen)
        self.optimizer = Adam(
            self.net.parameters(), settings.schedule.learning_rate, fused_on_cpu=False
        )
        changed = training_state(self.net, self.optimizer)
        self._step = CapturedStep(self._learn_batch, changed)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Learn a task."""
        self.model.add_classes(task.classes)
        labels = torch.tensor(task.classes, dtype=torch.int64, device=self.device)
        # In place: a captured step reads this tensor.
        self.task_classes.zero_().index_fill_(0, self.model.targets(labels), True)
        self.batch_size = min(self.settings.schedule.batch_size, len(task.train))
        if self.settings.reset_optimizer:
            reset_optimizer(self.optimizer)
        self.net.train()
        for batch, _, learning_rate in training_batches(task, self.settings.schedule, self.device):
            set_learning_rate(self.optimizer, learning_rate)
            yield self._step(batch.images, self.model.targets(batch.labels))

    def _learn_batch(self, images: Tensor, targets: Tensor) -> Tensor:
        """Take a step on the cross-entropy of the task's classes and the cosines of the keys (eq. 5)."""
        logits, key_match = self.net.logits_and_key_match(images)
        loss = cross_entropy(mask_logits(logits, self.task_classes), targets).float()
        loss = loss - self.settings.key_loss_weight * key_match
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if self.settings.max_gradient_norm is not None:
            clip_grad_norm_(self.net.parameters(), self.settings.max_gradient_norm)
        self.optimizer.step()
        return loss

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the class with the largest logit."""
        return self.model.predict(images, among)

    def state(self) -> dict[str, Any]:
        """Return trained weights, classes seen, the optimizer's state and a digest of the frozen net."""
        optimizer = [] if self.settings.reset_optimizer else optimizer_state(self.optimizer)
        return {**self.model.state(), "optimizer": optimizer, "frozen": self.digest}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state, on the same frozen weights."""
        if state["frozen"] != self.digest:
            raise ValueError(
                f"this state was learned on other frozen weights (digest {state['frozen'][:12]}) than "
                f"{self.settings.weights} (digest {self.digest[:12]}); give the same weights"
            )
        self.model.load_state(state)
        load_optimizer_state(self.optimizer, state["optimizer"])


def mask_logits(logits: Tensor, classes: Tensor) -> Tensor:
    """Set the logits of all classes outside a mask to minus infinity."""
    return logits.masked_fill(~classes, -torch.inf)


def _check_size(size: int, net: ViT) -> int:
    if size % net.config.patch:
        raise ValueError(
            f"image_size must be a multiple of the patches' {net.config.patch} pixels, found {size}"
        )
    return size
