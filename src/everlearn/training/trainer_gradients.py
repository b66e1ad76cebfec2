"""Gradients and Fisher information of a trainer's net, for methods that constrain its updates."""

from __future__ import annotations

import torch
from torch import Tensor

from everlearn.nets.precision import frozen_running_stats
from everlearn.stream import Task
from everlearn.training import fisher
from everlearn.training.trainer import Trainer


def loss_gradients(trainer: Trainer, images: Tensor, targets: Tensor) -> tuple[Tensor, ...]:
    """Return the gradients of the cross-entropy, one tensor per weight; the net does not change."""
    with frozen_running_stats(trainer.net):
        loss = trainer.loss(trainer.logits(images), targets)
        return torch.autograd.grad(loss, trainer.weights)


def fisher_diagonal(
    trainer: Trainer, task: Task, samples: int, true_labels: bool = False
) -> list[Tensor]:
    """Estimate the Fisher information on images of a task, with sampled or with true labels."""
    batch, uniforms = fisher.draw_samples(task, samples, trainer.device)
    among = None if trainer.settings.include_unseen else trainer.model.seen
    if true_labels:
        targets = trainer.model.targets(batch.labels)
        return fisher.empirical(trainer.net, batch.images, targets, among)
    return fisher.diagonal(trainer.net, batch.images, uniforms, among)
