"""What is usual in each environment of VASE, and whether a batch is far from it.

Everything is a tensor that is changed in place: which environment is active is never read back from a GPU.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from everlearn.methods.vase.settings import Settings

_FORGETS = 5
_RENEWALS = 4  # of the batch that is kept, within the batches of a slow mean


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


class Usual:
    """Slow means of what batches show, environment by environment, and one batch of the active one."""

    def __init__(self, settings: Settings, device: str) -> None:
        """Begin in the first environment, where every latent applies."""
        self.settings, most = settings, settings.most
        self.tensors: dict[str, Tensor] = {
            "masks": torch.ones((most, settings.z), device=device),
            "alpha": torch.zeros((most, settings.z), device=device),
            "kl": torch.zeros((most, settings.z), device=device),
            "centre": torch.zeros((most, settings.z), device=device),
            "variance": torch.ones((most, settings.z), device=device),
            "error": torch.zeros(most, device=device),
            "alpha_spread": torch.zeros((most, settings.z), device=device),
            "error_spread": torch.zeros(most, device=device),
            "age": torch.zeros(most, dtype=torch.int64, device=device),
            **{name: whole(0, device) for name in ("active", "stay", "kept")},
            "count": whole(1, device),
            "renewed": torch.zeros((), dtype=torch.bool, device=device),
            "looked": torch.zeros((), dtype=torch.bool, device=device),
            "error_now": torch.zeros((), device=device),
            "alpha_now": torch.zeros(settings.z, device=device),
        }
        self._numbers = torch.arange(most, device=device)

    def __getattr__(self, name: str) -> Tensor:
        """Each tensor by its name."""
        try:
            found: Tensor = self.__dict__["tensors"][name]
        except KeyError:
            raise AttributeError(name) from None
        return found

    @property
    def known(self) -> Tensor:
        """Which environments there are, (most,)."""
        return self._numbers < self.count

    @property
    def used(self) -> Tensor:
        """Which latents say something where they apply, (most, z)."""
        return (self.kl > self.settings.inference.least) & (self.masks > 0)

    def _settled(self) -> Tensor:
        """Whether the quiet steps of the active environment are over."""
        return at(self.age, self.active) >= self.settings.quiet

    def look_back(self, look: Look) -> None:
        """See a batch again that was learned a while ago: with the net as it is now, that is usual, too.

        Not at once in an environment that was taken for a known one: it may yet turn out to be another.
        """
        long = self.stay >= self.settings.inference.slow
        self.looked.copy_(long & (self.kept == look.images))
        self.error_now.copy_(look.error)
        self.alpha_now.copy_(look.alpha)

    def _keep(self, learned: Tensor, images: int) -> None:
        """Say whether the batch is to be kept and looked back on: now and then one that was learned.

        If the first of another environment was learned by mistake, those after it still surprise.
        """
        often = max(self.settings.inference.slow // _RENEWALS, 1)
        self.renewed.copy_(learned & (at(self.age, self.active) % often == 0))
        self.kept.copy_(torch.where(self.renewed, images, self.kept))

    def _unusual(self, alpha: Tensor, means: Tensor) -> Tensor:
        """Which latents do not apply to a batch, if it is of an environment, (most, z)."""
        limit = self.settings.inference.limit
        usual = (means + self._rise).clamp(min=limit)
        # A latent that is masked there is always unusual there: what is usual says nothing.
        return alpha > torch.where(self.masks > 0, usual, limit)

    def strange(self, alpha: Tensor) -> Tensor:
        """In which environments a batch has used latents that are others than usual, (most,)."""
        return self._strange(alpha, self.alpha, self.alpha)

    def _strange(self, alpha: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Likewise, where what is usual goes from low to high."""
        other = (alpha < low - self._rise) | self._unusual(alpha, high)
        return (other & self.used).any(1) & self.settings.masks

    @property
    def _rise(self) -> Tensor:
        own = self.settings.inference
        return (own.spreads * self.alpha_spread).clamp(min=own.rise)

    def surprises(self, error: Tensor, alpha: Tensor) -> Tensor:
        """In which environments a batch is too hard, or its latents are not those that apply, (most,).

        Args:
            error: of the batch, () or (most,) if it was drawn in each.
        """
        return self._hard(error, self.error) | self.strange(alpha)

    def _hard(self, error: Tensor, means: Tensor) -> Tensor:
        own = self.settings.inference
        return error > means + (own.spreads * self.error_spread).maximum((own.kappa - 1) * means)

    def _is_new(self, candidate: Tensor, look: Look) -> Tensor:
        """Whether a batch surprises, with the net as it is now."""
        _, error = self._range(self.error, self.error_now)
        low, high = self._range(self.alpha, self.alpha_now)
        return at(self._hard(look.error, error) | self._strange(look.alpha, low, high), candidate)

    def _range(self, means: Tensor, now: Tensor) -> tuple[Tensor, Tensor]:
        """What is usual in each environment; in the active one also what the batch looked back on shows."""
        here = (self._numbers == self.active) & self.looked
        here = here if means.ndim == 1 else here[:, None]
        low, high = (
            torch.where(here, bound, means) for bound in (means.minimum(now), means.maximum(now))
        )
        return low, high

    def _keep_usual(self, look: Look, share: Tensor) -> None:
        """Move the slow means of the active environment towards what a batch of it shows; and its age."""
        age = at(self.age, self.active)
        # At first faster than a plain mean, which would not forget how it all began.
        rate = share * (_FORGETS / (age + _FORGETS)).clamp(min=1 / self.settings.inference.slow)
        here = self._numbers == self.active
        # How far batches are apart, by one net if there is one to compare with: else it may be the net.
        error = torch.where(self.looked, self.error_now, self.error)
        alpha = torch.where(self.looked, self.alpha_now, self.alpha)
        pairs = [
            (self.error_spread, (look.error - error).abs()),
            (self.alpha_spread, (look.alpha - alpha).abs()),
            (self.error, look.error), (self.alpha, look.alpha), (self.kl, look.kl),
            (self.centre, look.centre), (self.variance, look.variance),
        ]  # fmt: skip
        for mean, value in pairs:
            chosen = here if mean.ndim == 1 else here[:, None]
            mean.copy_(torch.where(chosen, mean + rate * (value - mean), mean))
        self.age.add_(here * share.to(torch.int64))

    def _settle_for(self, now: Tensor, look: Look) -> None:
        """Take a batch as usual in the active environment."""
        here = (self._numbers == self.active) & now
        self.error.copy_(torch.where(here, look.error, self.error))
        self.alpha.copy_(torch.where(here[:, None], look.alpha, self.alpha))


def at(values: Tensor, place: Tensor) -> Tensor:
    """The row of an environment whose number () lies on a device; plain indexing would wait for it."""
    return values.index_select(0, place.reshape(1))[0]


def whole(value: int, device: str) -> Tensor:
    """A number that lies on a device."""
    return torch.tensor(value, dtype=torch.int64, device=device)
