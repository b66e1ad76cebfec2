"""Inference of environments (eq. 6 and Algorithm 1 of VASE; what differs is in docs/methods/vase.md)."""

from __future__ import annotations

import torch
from torch import Tensor

from everlearn.methods.vase.atypicality import hysteresis, keep_one
from everlearn.methods.vase.environment_state import (
    LARGEST,
    NONE,
    SLOTS,
    EnvironmentState,
    select_row,
)
from everlearn.methods.vase.running_stats import BatchStats, Context, ReferenceStats, RunningStats
from everlearn.methods.vase.settings import Settings


class Environments:
    """The environments seen so far and the active one; the first exists from the start."""

    def __init__(self, settings: Settings, device: str) -> None:
        """Start in the first environment, where every latent applies."""
        self.settings = settings
        self.state = EnvironmentState.create(settings, device)
        self.stats = RunningStats(self.state, settings)
        self._ids = torch.arange(settings.max_environments, device=device)
        self._slots = torch.arange(SLOTS, device=device)

    @property
    def known(self) -> Tensor:
        """Which environments exist, (E,)."""
        return self._ids < self.state.count

    @property
    def opened(self) -> Tensor:
        """Which environment the last batch opened, if any, (E,)."""
        return self.state.opened_at == self.state.steps

    @property
    def slot(self) -> Tensor:
        """The reference batch of this step, (): the slots take turns."""
        return self.state.steps % SLOTS

    def capacity(self) -> Tensor:
        """Return C of the active environment, (): it grows linearly with its age up to the capacity."""
        objective = self.settings.objective
        progress = select_row(self.state.age, self.state.active) / objective.capacity_steps
        start = select_row(self.state.start_capacity, self.state.active)
        return start + (objective.capacity - start) * progress.clamp(max=1.0)

    def candidate(self, probabilities: Tensor) -> Tensor:
        """Return the environment to judge a batch in, (): the active one or, in a search, the next untried.

        Args:
            probabilities: of every environment by the classifier, (E,).
        """
        likeliest = probabilities.masked_fill(~self._untried(), -1.0).argmax()
        return torch.where(self._is_searching(), likeliest, self.state.active)

    def _untried(self) -> Tensor:
        return self.known & ~self.state.tried

    def _is_searching(self) -> Tensor:
        return self.state.surprises_in_a_row >= self.settings.inference.patience

    def reference_is_valid(self, size: int) -> Tensor:
        """Whether this step's reference batch has a size and is of the active environment, ().

        The slots must have been renewed since it was entered: an environment taken for a known one may yet
        turn out to be another.
        """
        renewed = self.state.visit_age >= max(self.settings.inference.running_mean_batches, SLOTS)
        return renewed & (select_row(self.state.reference_sizes, self.slot) == size)

    def announce(self, environment: int) -> None:
        """Say which environment the next batch is of; one that does not exist is opened."""
        self.state.given.fill_(environment)

    def update(
        self, candidate: Tensor, batch: BatchStats, reference: ReferenceStats | None = None
    ) -> Tensor:
        """Stay, switch or open an environment; return 1.0 if the batch is to be learned, else 0.0.

        Algorithm 1 decides by one batch. Here a surprising batch is not learned; after `patience` of them
        in a row the other environments are tried, one per batch; where none fits, a new one is opened. All
        decisions are tensors: nothing waits for the GPU.

        Args:
            candidate: the environment that the batch is judged in, ().
            reference: of the batch in `slot`; it is typical of the active environment, too.
        """
        state = self.state
        stats = self.stats
        context = Context(state.active, reference)
        state.steps.add_(1)
        if not self.settings.environments:
            stats.update(batch, torch.ones_like(batch.error), context)
            self._update_mask(batch.atypicality)
            return torch.ones_like(batch.error)

        # Eq. 6: L > kappa L_s, or a(x) u != a^s u. Not before the active environment is mature: while C
        # grows, both tests fail for every candidate, and each batch would open an environment.
        is_given = state.given >= 0
        searching = self._is_searching()
        surprising = stats.is_mature(state.active) & stats.is_surprising(candidate, batch, context)
        surprising = surprising & self.settings.infers
        # L_s must not see a batch of another environment: one would ruin the test against kappa.
        learned = ~(surprising | searching | is_given)
        stats.update(batch, learned.float(), context)
        self._count_surprises(surprising, searching, candidate)
        self._track_nearest(candidate, batch.error, surprising | is_given)

        # Algorithm 1: no known environment fits: s = r + 1; else s is the candidate that fits.
        exhausted = self._is_searching() & ~self._untried().any()
        has_room = state.count < self.settings.max_environments
        opens = torch.where(is_given, state.given >= state.count, exhausted) & has_room
        enters = torch.where(is_given, state.given < state.count, searching & ~surprising)
        target = torch.where(is_given, state.given, candidate)
        state.switched.copy_(opens | (enters & (target != state.active)))
        # Without room the active environment has to take in what fits nowhere.
        stats.accept(exhausted & ~has_room, batch, state.active)

        # Eq. 5, judged by the environment that is left, hence before the switch.
        mask = self._mask(batch, context)
        self._enter(enters, target)
        self._open(opens, batch, mask)
        ended = opens | enters | exhausted
        self._reset_search(ended)
        self._choose_slot(learned, batch.size)
        state.visit_age.copy_(torch.where(ended, 0, state.visit_age + learned))
        return learned.float()

    def _count_surprises(self, surprising: Tensor, searching: Tensor, candidate: Tensor) -> None:
        """Count surprises in a row; during a search remember where they have been tried."""
        state = self.state
        state.surprises.add_(surprising)
        failed = (self._ids == candidate) & surprising
        in_a_row = torch.where(surprising, state.surprises_in_a_row + 1, 0)
        state.surprises_in_a_row.copy_(torch.where(searching, state.surprises_in_a_row, in_a_row))
        state.tried.copy_(torch.where(self._is_searching(), state.tried | failed, False))

    def _track_nearest(self, candidate: Tensor, error: Tensor, condition: Tensor) -> None:
        """Remember the environment in which surprising batches had the lowest error."""
        state = self.state
        better = condition & (error < state.lowest_error)
        state.nearest.copy_(torch.where(better, candidate, state.nearest))
        state.lowest_error.copy_(torch.where(better, error, state.lowest_error))

    def _reset_search(self, ended: Tensor) -> None:
        state = self.state
        state.surprises_in_a_row.masked_fill_(ended, 0)
        state.tried.masked_fill_(ended, False)
        state.given.fill_(NONE)
        in_doubt = state.surprises_in_a_row > 0
        state.lowest_error.copy_(torch.where(in_doubt, state.lowest_error, LARGEST))

    def _choose_slot(self, learned: Tensor, size: int) -> None:
        """Choose the slot that stores the batch, if any: one learned batch in so many.

        There are several slots, so that neither an odd batch nor the first of another environment, learned
        by mistake, decides whether several batches in a row are surprising.
        """
        state = self.state
        period = max(self.settings.inference.running_mean_batches // SLOTS, 1)
        age = select_row(state.age, state.active)
        chosen = self._slots == age // period % SLOTS
        state.stored.copy_(chosen & learned & (age % period == 0))
        state.reference_sizes.copy_(torch.where(state.stored, size, state.reference_sizes))

    def _update_mask(self, atypicality: Tensor) -> None:
        """Without environments: mask by the batch, with two thresholds (appendix of the paper)."""
        masks = self.state.masks
        inference = self.settings.inference
        if self.settings.masks:
            mask = hysteresis(masks[0], atypicality, inference.mask_low, inference.mask_high)
            masks[0] = torch.where(self.stats.is_mature(self.state.active), mask, masks[0])

    def _mask(self, batch: BatchStats, context: Context) -> Tensor:
        """Return a^s of the environment that a batch would open (eq. 5), (N,).

        A latent that no environment uses stays free to be used, however atypical it is of unseen images.
        """
        if not self.settings.masks:
            return torch.ones_like(batch.atypicality)
        applies = (~self.stats.atypical_latents(batch, context)).float()
        return keep_one(applies, batch.atypicality)

    def _enter(self, condition: Tensor, target: Tensor) -> None:
        state = self.state
        state.switches.add_(condition & (target != state.active))
        state.active.copy_(torch.where(condition, target, state.active))

    def _open(self, condition: Tensor, batch: BatchStats, mask: Tensor) -> None:
        state = self.state
        new = (self._ids == state.count) & condition
        state.masks.copy_(torch.where(new[:, None], mask, state.masks))
        # C starts at the KL of the unmasked latents: from 0 it would erase the latents that are shared.
        kl = (mask * batch.kl).sum().clamp(max=self.settings.objective.capacity)
        state.start_capacity.copy_(torch.where(new, kl, state.start_capacity))
        state.opened_at.copy_(torch.where(new, state.steps, state.opened_at))
        state.active.copy_(torch.where(condition, state.count, state.active))
        state.count.add_(condition)
        state.switches.add_(condition)

    def diagnostics(self) -> dict[str, float | Tensor]:
        """Return how many environments exist, which is active, when each opened, and the surprises."""
        state = self.state
        opened_at = torch.where(state.opened_at >= 0, state.opened_at.double(), torch.nan)
        return {
            "environments": state.count,
            "active": state.active,
            "switches": state.switches,
            "surprises": state.surprises,
            **{f"opened_{s}": opened_at[s] for s in range(1, self.settings.max_environments)},
        }
