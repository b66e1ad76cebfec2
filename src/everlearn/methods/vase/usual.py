"""What is usual in each environment of VASE, and whether a batch is far from it.

Everything is a tensor that is changed in place: which environment is active is never read back from a GPU.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from everlearn.methods.vase.settings import Settings

_FORGETS = 5
_KEPT = (
    "masks", "alpha", "kl", "centre", "variance", "error", "alpha_spread", "error_spread", "age"
)  # fmt: skip


class Look(NamedTuple):
    """What a batch of images shows: its mean error (), and of each latent (z,) these.

    Attributes:
        alpha: atypicality.
        kl: nats said.
        centre: mean over the batch; and the variance around it.
    """

    error: Tensor
    alpha: Tensor
    kl: Tensor
    centre: Tensor
    variance: Tensor
    images: int


class Back(NamedTuple):
    """What a batch that was learned a while ago shows by the net as it is now.

    Attributes:
        near: whether it is of the active environment, ().
    """

    look: Look
    near: Tensor


class Here(NamedTuple):
    """The active environment, and what is looked back on there, if anything is."""

    active: Tensor
    back: Back | None = None


class Usual:
    """Slow means of what batches show, environment by environment."""

    def __init__(self, settings: Settings, device: str) -> None:
        """Begin with nothing known; every latent applies everywhere."""
        self.settings, most = settings, settings.most
        self.masks = torch.ones((most, settings.z), device=device)
        self.variance = torch.ones_like(self.masks)
        self.alpha, self.alpha_spread, self.kl, self.centre = (
            torch.zeros_like(self.masks) for _ in range(4)
        )
        self.error, self.error_spread = (torch.zeros(most, device=device) for _ in range(2))
        self.age = torch.zeros(most, dtype=torch.int64, device=device)
        self._numbers = torch.arange(most, device=device)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All that is kept, by name."""
        return {name: getattr(self, name) for name in _KEPT}

    @property
    def used(self) -> Tensor:
        """Which latents say something where they apply, (most, z)."""
        return (self.kl > self.settings.inference.least) & (self.masks > 0)

    def settled(self, place: Tensor) -> Tensor:
        """Whether the quiet steps of an environment are over."""
        return at(self.age, place) >= self.settings.quiet

    def surprises(self, error: Tensor, alpha: Tensor) -> Tensor:
        """In which environments a batch is too hard, or its latents are not those that apply, (most,).

        Args:
            error: of the batch, () or (most,) if it was drawn in each.
        """
        return self._hard(error, self.error) | self.strange(alpha)

    def strange(self, alpha: Tensor) -> Tensor:
        """In which environments a batch has used latents that are others than usual, (most,)."""
        return self._strange(alpha, self.alpha, self.alpha)

    def is_new(self, place: Tensor, look: Look, here: Here) -> Tensor:
        """Whether a batch surprises in an environment, with the net as it is now."""
        error, low, high = self._usual(here)
        return at(self._hard(look.error, error) | self._strange(look.alpha, low, high), place)

    def unusual(self, look: Look, here: Here) -> Tensor:
        """Which latents used anywhere do not apply to a batch, as the active environment has it, (z,)."""
        _, _, high = self._usual(here)
        return at(self._above(look.alpha, high), here.active) & self.used.any(0)

    def _hard(self, error: Tensor, usual: Tensor) -> Tensor:
        own = self.settings.inference
        return error > usual + (own.spreads * self.error_spread).maximum((own.kappa - 1) * usual)

    def _strange(self, alpha: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Where used latents are others, if what is usual goes from low to high."""
        other = (alpha < low - self._rise) | self._above(alpha, high)
        return (other & self.used).any(1) & self.settings.masks

    def _above(self, alpha: Tensor, high: Tensor) -> Tensor:
        limit = self.settings.inference.limit
        usual = (high + self._rise).clamp(min=limit)
        # A latent that is masked there is always unusual there: what is usual says nothing.
        return alpha > torch.where(self.masks > 0, usual, limit)

    @property
    def _rise(self) -> Tensor:
        own = self.settings.inference
        return (own.spreads * self.alpha_spread).clamp(min=own.rise)

    def _usual(self, here: Here) -> tuple[Tensor, Tensor, Tensor]:
        """Up to which error, and from which to which atypicality, batches are usual in each environment.

        These are the means; in the active one also what the batch that is looked back on shows.
        """
        if here.back is None:
            return self.error, self.alpha, self.alpha
        back, near = here.back
        chosen = (self._numbers == here.active) & near
        each = chosen[:, None]
        return (
            torch.where(chosen, self.error.maximum(back.error), self.error),
            torch.where(each, self.alpha.minimum(back.alpha), self.alpha),
            torch.where(each, self.alpha.maximum(back.alpha), self.alpha),
        )

    def learn(self, look: Look, share: Tensor, here: Here) -> None:
        """Move the slow means of the active environment towards what a batch of it shows; and its age."""
        age = at(self.age, here.active)
        # At first faster than a plain mean, which would not forget how it all began.
        rate = share * (_FORGETS / (age + _FORGETS)).clamp(min=1 / self.settings.inference.slow)
        chosen = self._numbers == here.active
        error, alpha = self.error, self.alpha
        if here.back is not None:
            # How far batches are apart by one net: else it may be the net that moves.
            back, near = here.back
            error = torch.where(near, back.error, error)
            alpha = torch.where(near, back.alpha, alpha)
        pairs = [
            (self.error_spread, (look.error - error).abs()),
            (self.alpha_spread, (look.alpha - alpha).abs()),
            (self.error, look.error), (self.alpha, look.alpha), (self.kl, look.kl),
            (self.centre, look.centre), (self.variance, look.variance),
        ]  # fmt: skip
        for mean, value in pairs:
            moved = mean + rate * (value - mean)
            here_alone = chosen if mean.ndim == 1 else chosen[:, None]
            mean.copy_(torch.where(here_alone, moved, mean))
        self.age.add_(chosen * share.to(torch.int64))

    def settle_for(self, now: Tensor, look: Look, active: Tensor) -> None:
        """Take a batch as usual in the active environment, if so."""
        here = (self._numbers == active) & now
        self.error.copy_(torch.where(here, look.error, self.error))
        self.alpha.copy_(torch.where(here[:, None], look.alpha, self.alpha))


def at(values: Tensor, place: Tensor) -> Tensor:
    """The row of an environment whose number () lies on a device; plain indexing would wait for it."""
    return values.index_select(0, place.reshape(1))[0]
