"""Dreaming: a snapshot generates images of past environments, and the net stays close to it (eq. 7)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple

import torch
from torch import Tensor

from everlearn.losses.divergences import bernoulli_kl, squared_wasserstein
from everlearn.methods.vase.atypicality import apply_mask
from everlearn.methods.vase.environments import Environments
from everlearn.methods.vase.settings import Settings
from everlearn.nets.vae import VAE, BorrowedWeights, Code


class Dream(NamedTuple):
    """A batch of dreams, and what the snapshot makes of them.

    Attributes:
        weight: 1.0, or 0.0 while there is no environment to dream of, ().
        images: x', (B, C, H, W).
        z: the codes they were decoded from, (B, N).
        environments: s' of each, (B,).
        logits: of the images, by the snapshot.
        code: of the images, by the snapshot.
    """

    weight: Tensor
    images: Tensor
    z: Tensor
    environments: Tensor
    logits: Tensor
    code: Code


class Dreamer:
    """A snapshot of a net, and the number of environments it knows."""

    def __init__(self, net: VAE, environments: Environments, settings: Settings) -> None:
        """Start with a snapshot that knows no environment."""
        self.net = net
        self.environments = environments
        self.settings = settings
        self.snapshot = deepcopy(net).requires_grad_(False)
        self.known = torch.zeros_like(environments.state.count)

    def sync(self) -> None:
        """Copy the net into the snapshot."""
        torch._foreach_copy_(self._weights, list(self.net.state_dict().values()))
        self.known.copy_(self.environments.state.count)

    @torch.no_grad()
    def sync_if(self, condition: Tensor) -> None:
        """Copy the net into the snapshot where a condition () is true, without a device sync."""
        for old, new in zip(self._weights, self.net.state_dict().values(), strict=True):
            torch.where(condition, new, old, out=old)
        self.known.copy_(torch.where(condition, self.environments.state.count, self.known))

    @property
    def _weights(self) -> list[Tensor]:
        return list(self.snapshot.state_dict().values())

    @property
    def tensors(self) -> list[Tensor]:
        """Every tensor that a sync changes."""
        return [*self._weights, self.known]

    @torch.no_grad()
    def dream(self, z: Tensor, noise: Tensor, draws: Tensor) -> Dream:
        """Generate images x' of past environments: z ~ N(0, I), x' = decoder'(z^s', s').

        Args:
            z: from N(0, I), (B, N).
            noise: for masked latents, from N(0, I), (B, N).
            draws: uniform in [0, 1); they choose the environments, (B,).
        """
        state = self.environments.state
        candidates = self._candidates()
        # s' is the k-th candidate, k uniform: the first place where the running count reaches k.
        counts = candidates.cumsum(0)
        rank = (draws * counts[-1]).floor().to(torch.int64) + 1
        environments = torch.searchsorted(counts, rank).clamp(max=len(counts) - 1)
        if self.settings.environments:
            # Beyond the paper: codes are distributed as those of s' were, not as the prior.
            z = state.mean[environments] + state.variance[environments].sqrt() * z
        z = apply_mask(z, state.masks[environments], noise)
        snapshot = BorrowedWeights(self.snapshot)
        logits = snapshot.decode(z, environments)
        images = logits.sigmoid()
        weight = candidates.any().float()
        return Dream(weight, images, z, environments, logits, snapshot.encode(images))

    def _candidates(self) -> Tensor:
        """Which environments to dream of, (E,): those the snapshot knows, except the active one."""
        ids = torch.arange(self.settings.max_environments, device=self.known.device)
        known = ids < self.known
        if not self.settings.environments:
            return known
        return known & (ids != self.environments.state.active)

    def proximity(self, dream: Dream, code: Code, logits: Tensor) -> Tensor:
        """Return the distance of the net to its snapshot on dreams (eq. 7), ().

        Args:
            code: of the dreamt images, by the net.
            logits: decoded from the codes of the dreams, by the net.
        """
        settings = self.settings
        old = dream.code
        distance = settings.encoder_weight * squared_wasserstein(
            code.mean, code.log_variance, old.mean, old.log_variance
        )
        if settings.decoder_weight:
            distance = distance + settings.decoder_weight * bernoulli_kl(dream.logits, logits)
        return dream.weight * distance.mean()

    def state(self) -> dict[str, Any]:
        """Return the snapshot's weights and the number of environments it knows."""
        return {"net": dict(self.snapshot.state_dict()), "known": self.known}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the snapshot."""
        self.snapshot.load_state_dict(state["net"])
        self.known.copy_(state["known"])
