"""Running statistics of each environment of VASE, and whether a batch is atypical of one (eqs. 4 to 6)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from everlearn.methods.vase.environment_state import EnvironmentState, select_row
from everlearn.methods.vase.settings import Settings

_FAST_BATCHES = 5


class BatchStats(NamedTuple):
    """Statistics of one batch of images.

    Attributes:
        error: mean reconstruction error in nats, ().
        atypicality: alpha of each latent (eq. 4), (N,).
        kl: mean KL of each latent to the prior in nats, (N,).
        mean: of the codes over the batch, (N,).
        variance: of the codes over the batch, (N,).
        size: number of images.
    """

    error: Tensor
    atypicality: Tensor
    kl: Tensor
    mean: Tensor
    variance: Tensor
    size: int


class ReferenceStats(NamedTuple):
    """Statistics by the current net of a batch that was learned a while ago.

    They tell a net that has changed from an environment that has.

    Attributes:
        valid: whether the batch is of the active environment and of the current batch size, ().
    """

    error: Tensor
    atypicality: Tensor
    valid: Tensor


class Context(NamedTuple):
    """The active environment and, if there is one, its reference batch."""

    active: Tensor
    reference: ReferenceStats | None = None


class RunningStats:
    """Slow means of error, atypicality and KL, one set per environment."""

    def __init__(self, state: EnvironmentState, settings: Settings) -> None:
        """Work on the tensors of a state, in place."""
        self.state = state
        self.settings = settings
        self._ids = torch.arange(settings.max_environments, device=state.error.device)

    @property
    def used(self) -> Tensor:
        """Whether each latent is informative and unmasked in each environment: u^s, (E, N)."""
        return (self.state.kl > self.settings.inference.min_latent_kl) & (self.state.masks > 0)

    def is_mature(self, environment: Tensor) -> Tensor:
        """Whether an environment has been learned for min_environment_steps, ()."""
        return select_row(self.state.age, environment) >= self.settings.min_environment_steps

    def surprising(self, error: Tensor, atypicality: Tensor) -> Tensor:
        """In which environments a batch would open a new one (eq. 6), (E,).

        Args:
            error: of the batch, () or, reconstructed in each environment, (E,).
        """
        return self._exceeds(error, self.state.error) | self.mask_differs(atypicality)

    def mask_differs(self, atypicality: Tensor) -> Tensor:
        """In which environments the mask of a batch differs on used latents: a(x) u != a^s u, (E,)."""
        return self._mask_differs(atypicality, self.state.atypicality, self.state.atypicality)

    def is_surprising(self, environment: Tensor, batch: BatchStats, context: Context) -> Tensor:
        """Whether a batch would open a new environment, judged in one environment (eq. 6), ()."""
        error, low, high = self._typical_range(context)
        harder = self._exceeds(batch.error, error)
        return select_row(harder | self._mask_differs(batch.atypicality, low, high), environment)

    def atypical_latents(self, batch: BatchStats, context: Context) -> Tensor:
        """Which latents used in any environment are atypical in a batch, by the active one, (N,)."""
        _, _, high = self._typical_range(context)
        atypical = select_row(self._is_atypical(batch.atypicality, high), context.active)
        return atypical & self.used.any(0)

    def _exceeds(self, error: Tensor, typical: Tensor) -> Tensor:
        """L > kappa L_s (eq. 6) and, beyond the paper, L > L_s + num_deviations deviations; (E,)."""
        inference = self.settings.inference
        spread = inference.num_deviations * self.state.error_deviation
        return error > typical + spread.maximum((inference.kappa - 1) * typical)

    def _mask_differs(self, atypicality: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Where a used latent leaves its typical range from low to high, on either side; (E,)."""
        left = (atypicality < low - self._margin) | self._is_atypical(atypicality, high)
        return (left & self.used).any(1) & self.settings.masks

    def _is_atypical(self, atypicality: Tensor, high: Tensor) -> Tensor:
        """alpha > lambda (eq. 5) and, beyond the paper, a rise above the typical alpha; (E, N)."""
        threshold = self.settings.inference.atypicality_threshold
        raised = (high + self._margin).clamp(min=threshold)
        # A masked latent is always atypical in its environment, so its running mean says nothing.
        return atypicality > torch.where(self.state.masks > 0, raised, threshold)

    @property
    def _margin(self) -> Tensor:
        inference = self.settings.inference
        spread = inference.num_deviations * self.state.atypicality_deviation
        return spread.clamp(min=inference.atypicality_rise)

    def _typical_range(self, context: Context) -> tuple[Tensor, Tensor, Tensor]:
        """Return the largest typical error, and the smallest and largest typical atypicality.

        These are the running means, (E,) and twice (E, N). In the active environment the range also covers
        what the current net makes of the reference batch: a net that has changed is no new environment.
        """
        state = self.state
        if context.reference is None:
            return state.error, state.atypicality, state.atypicality
        reference = context.reference
        row = (self._ids == context.active) & reference.valid
        rows = row[:, None]
        alpha = state.atypicality
        return (
            torch.where(row, state.error.maximum(reference.error), state.error),
            torch.where(rows, alpha.minimum(reference.atypicality), alpha),
            torch.where(rows, alpha.maximum(reference.atypicality), alpha),
        )

    def update(self, batch: BatchStats, learned: Tensor, context: Context) -> None:
        """Move the running means of the active environment towards a batch, and count it.

        Args:
            learned: 1.0 if the batch is learned, else 0.0, which changes nothing, ().
        """
        state = self.state
        # Weight of the batch: 5 / (age + 5) at first, to forget the untrained net faster than a plain mean
        # (1 / age) does; then that of an exponential mean over running_mean_batches.
        weight = learned * (
            _FAST_BATCHES / (select_row(state.age, context.active) + _FAST_BATCHES)
        ).clamp(min=1 / self.settings.inference.running_mean_batches)
        active = self._ids == context.active
        typical_error = state.error
        typical_alpha = state.atypicality
        if context.reference is not None:
            # Two batches under one net: the distance to the mean would also measure how the net moves.
            valid = context.reference.valid
            typical_error = torch.where(valid, context.reference.error, typical_error)
            typical_alpha = torch.where(valid, context.reference.atypicality, typical_alpha)
        # Deviations first: they are taken from the means before this batch.
        updates = [
            (state.error_deviation, (batch.error - typical_error).abs()),
            (state.atypicality_deviation, (batch.atypicality - typical_alpha).abs()),
            (state.error, batch.error),
            (state.atypicality, batch.atypicality),
            (state.kl, batch.kl),
            (state.mean, batch.mean),
            (state.variance, batch.variance),
        ]
        for running, value in updates:
            moved = running + weight * (value - running)
            rows = active if running.ndim == 1 else active[:, None]
            running.copy_(torch.where(rows, moved, running))
        state.age.add_(active * learned.to(torch.int64))

    def accept(self, condition: Tensor, batch: BatchStats, active: Tensor) -> None:
        """Where a condition () holds, take a batch as typical of the active environment at once."""
        rows = (self._ids == active) & condition
        error = self.state.error
        error.copy_(torch.where(rows, batch.error, error))
        alpha = self.state.atypicality
        alpha.copy_(torch.where(rows[:, None], batch.atypicality, alpha))
