"""The environments met so far, and whether a batch is of one of them (eq. 6 and Algorithm 1 of VASE).

Everything is a tensor that is changed in place: which environment is active is never read back from a GPU.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from everlearn.methods.vase.settings import Settings
from everlearn.nets.atypical import hysteresis, keep_one

_NEVER = -1
_COUNTS = ("active", "doubt", "switches", "steps", "kept", "stay")
_FORGETS = 5
_RENEWALS = 4  # of the batch that is kept, within the batches of a slow mean
_MOST = float(torch.finfo(torch.float32).max)


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


class World:
    """What is known of every environment; the first is there from the start."""

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
            "start": torch.zeros(most, device=device),
            "age": torch.zeros(most, dtype=torch.int64, device=device),
            "opened": torch.full((most,), _NEVER, dtype=torch.int64, device=device),
            **{name: _whole(0, device) for name in _COUNTS},
            "count": _whole(1, device),
            "told": _whole(_NEVER, device),
            "nearest": _whole(0, device),
            "least": torch.full((), _MOST, device=device),
            "tried": torch.zeros(most, dtype=torch.bool, device=device),
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

    def capacity(self) -> Tensor:
        """How many nats a code may say now; in a new environment no fewer than it said at first."""
        own = self.settings.objective
        grown = (at(self.age, self.active) / own.capacity_steps).clamp(max=1.0)
        start = at(self.start, self.active)
        return start + (own.capacity - start) * grown

    def candidate(self, chances: Tensor) -> Tensor:
        """The environment to take a batch for: the active one or, after surprises, the next to be tried.

        Args:
            chances: of every environment, (most,).
        """
        untried = chances.masked_fill(~self._untried(), -1.0).argmax()
        return torch.where(self._trying(), untried, self.active)

    def _untried(self) -> Tensor:
        return self.known & ~self.tried

    def _trying(self) -> Tensor:
        return self.doubt >= self.settings.inference.patience

    @property
    def infers(self) -> bool:
        """Whether environments are to be found out."""
        return self.settings.environments and self.settings.inference.switches == "inferred"

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

    def turn(self, candidate: Tensor, look: Look) -> Tensor:
        """Open an environment, change to one or stay; 1 where the batch is to be learned, else 0.

        A batch that surprises in the active environment is not learned. After some in a row the others are
        tried, one a batch; where none is found in which a batch is usual, a new one is opened.
        """
        self.steps.add_(1)
        if not self.settings.environments:
            self._keep_usual(look, torch.ones_like(look.error))
            self._mask_again(look.alpha)
            return torch.ones_like(look.error)
        told, trying = self.told >= 0, self._trying()
        surprised = self._settled() & self._is_new(candidate, look) & self.infers
        learned = ~(surprised | trying | told)
        self._keep_usual(look, learned.float())
        self._doubt(surprised, trying, candidate)
        self._compare(candidate, look.error, surprised | told)
        lost = self._trying() & ~self._untried().any()
        room = self.count < self.settings.most
        opens = torch.where(told, self.told >= self.count, lost) & room
        found = torch.where(told, self.told < self.count, trying & ~surprised)
        self._settle_for(lost & ~room, look)
        self._go(found, torch.where(told, self.told, candidate))
        self._open(opens, look)
        self._calm(opens | found | lost)
        self._keep(learned, look.images)
        self.stay.copy_(torch.where(opens | found, 0, self.stay + learned))
        return learned.float()

    def _keep(self, learned: Tensor, images: int) -> None:
        """Say whether the batch is to be kept and looked back on: now and then one that was learned.

        If the first of another environment was learned by mistake, those after it still surprise.
        """
        often = max(self.settings.inference.slow // _RENEWALS, 1)
        self.renewed.copy_(learned & (at(self.age, self.active) % often == 0))
        self.kept.copy_(torch.where(self.renewed, images, self.kept))

    def _doubt(self, surprised: Tensor, trying: Tensor, candidate: Tensor) -> None:
        """Count surprises in a row; remember which environments were tried."""
        failed = (self._numbers == candidate) & surprised
        more = torch.where(surprised, self.doubt + 1, 0)
        self.doubt.copy_(torch.where(trying, self.doubt, more))
        self.tried.copy_(torch.where(self._trying(), self.tried | failed, False))

    def _compare(self, candidate: Tensor, error: Tensor, now: Tensor) -> None:
        """Remember the environment in which batches that surprise had the least error."""
        better = now & (error < self.least)
        self.nearest.copy_(torch.where(better, candidate, self.nearest))
        self.least.copy_(torch.where(better, error, self.least))

    def _calm(self, now: Tensor) -> None:
        self.doubt.masked_fill_(now, 0)
        self.tried.masked_fill_(now, False)
        self.told.fill_(_NEVER)
        self.least.copy_(torch.where(self.doubt > 0, self.least, _MOST))

    def opened_now(self) -> Tensor:
        """Which environment was opened by the last batch, (most,)."""
        return self.opened == self.steps

    def changed_now(self) -> Tensor:
        """Whether the environment is another one since the last batch that was learned, ()."""
        return self.stay == 0

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

    def _mask_again(self, alpha: Tensor) -> None:
        """Masks without environments: of the batch, with memory."""
        own = self.settings.inference
        if self.settings.masks:
            found = hysteresis(self.masks[0], alpha, own.low, own.high)
            self.masks[0] = torch.where(self._settled(), found, self.masks[0])

    def _settle_for(self, now: Tensor, look: Look) -> None:
        """Take a batch as usual in the active environment."""
        here = (self._numbers == self.active) & now
        self.error.copy_(torch.where(here, look.error, self.error))
        self.alpha.copy_(torch.where(here[:, None], look.alpha, self.alpha))

    def _open(self, now: Tensor, look: Look) -> None:
        """Open an environment whose latents are those that are not unusual in this batch."""
        here = (self._numbers == self.count) & now
        # What says nothing anywhere is free to be used here, whatever it makes of images never seen.
        _, usual = self._range(self.alpha, self.alpha_now)
        unusual = at(self._unusual(look.alpha, usual), self.active) & self.used.any(0)
        mask = keep_one((~unusual).float(), look.alpha)
        if not self.settings.masks:
            mask = torch.ones_like(mask)
        self.masks.copy_(torch.where(here[:, None], mask, self.masks))
        says = (mask * look.kl).sum().clamp(max=self.settings.objective.capacity)
        self.start.copy_(torch.where(here, says, self.start))
        self.opened.copy_(torch.where(here, self.steps, self.opened))
        self.active.copy_(torch.where(now, self.count, self.active))
        self.count.add_(now)
        self.switches.add_(now)

    def _go(self, now: Tensor, place: Tensor) -> None:
        self.switches.add_(now & (place != self.active))
        self.active.copy_(torch.where(now, place, self.active))

    def tell(self, number: int) -> None:
        """Say that the next batch is of an environment, by number; one that is not there is opened."""
        self.told.fill_(number)

    def notes(self) -> dict[str, float | Tensor]:
        """How many environments there are, which is active, and when each was opened."""
        opened = torch.where(self.opened >= 0, self.opened.double(), torch.nan)
        return {
            "environments": self.count,
            "active": self.active,
            "switches": self.switches,
            **{f"opened_{number}": opened[number] for number in range(1, self.settings.most)},
        }

    def load(self, tensors: dict[str, Any]) -> None:
        """Go on from what was known."""
        for name, tensor in self.tensors.items():
            tensor.copy_(tensors[name])


def at(values: Tensor, place: Tensor) -> Tensor:
    """The row of an environment whose number () lies on a device; plain indexing would wait for it."""
    return values.index_select(0, place.reshape(1))[0]


def _whole(value: int, device: str) -> Tensor:
    return torch.tensor(value, dtype=torch.int64, device=device)
