"""One training step of VASE: the capacity objective on a batch, the proximity to a snapshot on dreams."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from everlearn.losses.divergences import bernoulli_entropy, bernoulli_nll, kl_per_latent
from everlearn.methods.vase.assignment import environment_probabilities
from everlearn.methods.vase.atypicality import apply_mask, kl_to_prior, marginal
from everlearn.methods.vase.dreams import Dream, Dreamer
from everlearn.methods.vase.environment_state import SLOTS, select_row
from everlearn.methods.vase.running_stats import BatchStats, ReferenceStats
from everlearn.nets.cvae import reparameterize
from everlearn.nets.vae import BorrowedWeights, Code
from everlearn.training.optimizer_step import optimizer_step
from everlearn.training.optimizers import Optimizer


class TrainingStep:
    """Updates the net, its environments and its snapshot from one batch, all on the device.

    Attributes:
        reference_images: batches that were learned a while ago, (SLOTS, B, C, H, W). Where these become
            surprising, it is the net that has changed and not the environment.
    """

    def __init__(
        self, dreamer: Dreamer, optimizer: Optimizer, batch_shape: tuple[int, ...]
    ) -> None:
        """Store no reference image yet."""
        self.net = dreamer.net
        self.environments = dreamer.environments
        self.settings = dreamer.settings
        self.dreamer = dreamer
        self.optimizer = optimizer
        self.reference_images = torch.zeros((SLOTS, *batch_shape), device=dreamer.known.device)

    def learn_batch(self, dreaming: bool, images: Tensor, noise: Tensor, draws: Tensor) -> Tensor:
        """Take one optimizer step on a batch and, if dreaming, on as many dreams."""
        dream = self.dreamer.dream(noise[2], noise[3], draws) if dreaming else None
        net = BorrowedWeights(self.net)
        current = slice(0, len(images))
        dreamt = slice(len(images), None)
        code = net.encode(images if dream is None else torch.cat([images, dream.images]))
        batch_code = code.select(current)
        reference = self._reference_stats(net, noise) if self.settings.infers else None
        environment = self.environments.candidate(environment_probabilities(self.net, batch_code))
        z = self._sample_masked(batch_code, environment, noise)
        logits = self._decode(net, z, environment, dream)
        loss = self._batch_loss(images, batch_code, logits[current], environment, reference)
        if dream is not None:
            loss = loss + self.dreamer.proximity(dream, code.select(dreamt), logits[dreamt])
            classified = self.net.environment_logits(code.features[dreamt])
            loss = loss + dream.weight * cross_entropy(classified, dream.environments)
        loss = optimizer_step(self.optimizer, loss)
        self.net.copy_environment(self.environments.state.nearest, self.environments.opened)
        if self.settings.dreams and self.settings.snapshot_period is None:
            self.dreamer.sync_if(self.environments.state.switched)
        return loss

    @torch.no_grad()
    def _reference_stats(self, net: BorrowedWeights, noise: Tensor) -> ReferenceStats:
        """Measure the reference batch of this step in the active environment, with the current net."""
        size = noise.shape[1]
        environments = self.environments
        images = select_row(self.reference_images, environments.slot)[:size]
        code = net.encode(images)
        active = environments.state.active
        logits = net.decode(self._sample_masked(code, active, noise), active)
        error = self._excess(images, bernoulli_nll(images, logits).mean())
        alpha = kl_to_prior(*marginal(code.mean, code.log_variance))
        return ReferenceStats(error, alpha, environments.reference_is_valid(size))

    def _sample_masked(self, code: Code, environment: Tensor, noise: Tensor) -> Tensor:
        """Draw z^s: codes from q(z | x), with noise in masked latents."""
        z = reparameterize(code.mean, code.log_variance, noise[0])
        return apply_mask(z, select_row(self.environments.state.masks, environment), noise[1])

    def _decode(
        self, net: BorrowedWeights, z: Tensor, environment: Tensor, dream: Dream | None
    ) -> Tensor:
        """Return the logits of the batch's codes and, in the same pass, of dreams."""
        if dream is None:
            return net.decode(z, environment)
        environments = torch.cat([environment.expand(len(z)), dream.environments])
        return net.decode(torch.cat([z, dream.z]), environments)

    def _batch_loss(
        self,
        images: Tensor,
        code: Code,
        logits: Tensor,
        environment: Tensor,
        reference: ReferenceStats | None,
    ) -> Tensor:
        """Return error + gamma (KL - C)^2 + the environment classifier's loss; 0 for a surprising batch."""
        environments = self.environments
        mask = select_row(environments.state.masks, environment)
        capacity = environments.capacity()
        error = bernoulli_nll(images, logits).mean()
        kl = kl_per_latent(code.mean, code.log_variance).mean(0)
        classified = self.net.environment_logits(code.features)
        classifier_loss = cross_entropy(classified, environment.expand(len(images)))
        stats = self._batch_stats(images, code, error, kl)
        learned = environments.update(environment, stats, reference)
        if self.settings.infers:
            stored = environments.state.stored[:, None, None, None, None]
            slots = self.reference_images[:, : len(images)]
            slots.copy_(torch.where(stored, images, slots))
        return learned * (error + self._kl_penalty((mask * kl).sum(), capacity) + classifier_loss)

    def _batch_stats(self, images: Tensor, code: Code, error: Tensor, kl: Tensor) -> BatchStats:
        mean, variance = marginal(code.mean.detach(), code.log_variance.detach())
        alpha = kl_to_prior(mean, variance)
        excess = self._excess(images, error.detach())
        return BatchStats(excess, alpha, kl.detach(), mean, variance, len(images))

    def _excess(self, images: Tensor, error: Tensor) -> Tensor:
        """Return the error above the entropy of the images, which no decoder can go below."""
        lowest = bernoulli_entropy(images).mean() if self.settings.inference.excess_error else 0.0
        return error - lowest

    def _kl_penalty(self, kl: Tensor, capacity: Tensor) -> Tensor:
        """Return gamma (KL - C)^2 above the capacity (eq. 2), or beta KL."""
        objective = self.settings.objective
        if objective.beta is not None:
            return objective.beta * kl
        gap = kl - capacity
        return objective.gamma * (gap if objective.force_capacity else gap.clamp(min=0)).square()
