"""Dreams: what a snapshot of the net draws of past environments; the net stays close to it (eq. 7)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple

import torch
from torch import Tensor

from everlearn.methods.vase.settings import Settings
from everlearn.methods.vase.world import World
from everlearn.nets.atypical import blend
from everlearn.nets.coder import Code, Coder, Lent
from everlearn.nets.divergence import bernoulli_kl, wasserstein


class Dream(NamedTuple):
    """A batch of dreams, and what the snapshot makes of them.

    Attributes:
        there: 1, or 0 where there is nothing to dream of yet.
        images: (B, C, H, W).
        z: codes they were drawn from, (B, z).
        places: their environments, (B,).
        logits: the snapshot's, of the images.
        code: the snapshot's, of the images.
    """

    there: Tensor
    images: Tensor
    z: Tensor
    places: Tensor
    logits: Tensor
    code: Code


class Dreamer:
    """A snapshot of a net, and the number of environments it knew."""

    def __init__(self, net: Coder, world: World, settings: Settings) -> None:
        """Start with a snapshot that knows nothing."""
        self.net, self.world, self.settings = net, world, settings
        self.old = deepcopy(net).requires_grad_(False)
        self.knew = torch.zeros_like(world.count)

    def sync(self) -> None:
        """Let the snapshot be the net as it is."""
        torch._foreach_copy_(self._weights, list(self.net.state_dict().values()))
        self.knew.copy_(self.world.count)

    @torch.no_grad()
    def sync_if(self, now: Tensor) -> None:
        """Likewise, but only if so; nobody waits to know."""
        new = torch._foreach_mul(list(self.net.state_dict().values()), now.float())
        torch._foreach_mul_(self._weights, (~now).float())
        torch._foreach_add_(self._weights, new)
        self.knew.copy_(torch.where(now, self.world.count, self.knew))

    @property
    def _weights(self) -> list[Tensor]:
        return list(self.old.state_dict().values())

    @property
    def tensors(self) -> list[Tensor]:
        """Everything that a snapshot consists of."""
        return [*self._weights, self.knew]

    @torch.no_grad()
    def dream(self, z: Tensor, noise: Tensor, draws: Tensor) -> Dream:
        """Draw images of past environments.

        Args:
            z: of N(0, I); codes are these, as far from N(0, I) as those of their environment are.
            noise: what masked numbers are instead, likewise.
            draws: numbers in [0, 1) that choose the environments, (B,).
        """
        past = self._past()
        total = past.cumsum(0)
        wanted = (draws * total[-1]).floor().to(torch.int64) + 1
        places = torch.searchsorted(total, wanted).clamp(max=len(total) - 1)
        z = blend(self._as_met(z, places), self.world.masks[places], noise)
        old = Lent(self.old)
        logits = old.decode(z, places)
        images = logits.sigmoid()
        return Dream(past.any().float(), images, z, places, logits, old.encode(images))

    def _as_met(self, z: Tensor, places: Tensor) -> Tensor:
        """Codes as they were in environments, where these are told apart."""
        if not self.settings.environments:
            return z
        return self.world.centre[places] + self.world.variance[places].sqrt() * z

    def _past(self) -> Tensor:
        """What to dream of, (most,): what the snapshot knew, without the active one if that can be told."""
        numbers = torch.arange(self.settings.most, device=self.knew.device)
        past = numbers < self.knew
        return past & (numbers != self.world.active) if self.settings.environments else past

    def distance(self, dream: Dream, code: Code, logits: Tensor) -> Tensor:
        """How far the net is from its snapshot on dreams, (): codes of them, and images drawn again."""
        own, old = self.settings, dream.code
        far = own.encoder_weight * wasserstein(
            code.mean, code.log_variance, old.mean, old.log_variance
        )
        if own.decoder_weight:
            far = far + own.decoder_weight * bernoulli_kl(dream.logits, logits)
        return dream.there * far.mean()

    def state(self) -> dict[str, Any]:
        """The snapshot's weights, and what it knew."""
        return {"net": dict(self.old.state_dict()), "knew": self.knew}

    def load(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.old.load_state_dict(state["net"])
        self.knew.copy_(state["knew"])
