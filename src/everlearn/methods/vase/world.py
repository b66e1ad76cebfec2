"""The environments met so far, and which of them a batch is of (eq. 6 and Algorithm 1 of VASE)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from everlearn.methods.vase.settings import Settings
from everlearn.methods.vase.usual import Back, Here, Look, Usual, at
from everlearn.nets.atypical import hysteresis, keep_one

_NEVER = -1
_COUNTS = ("active", "stay", "doubt", "surprises", "switches", "steps", "nearest")
SLOTS = 4  # batches that are kept, within those of a slow mean
_MOST = float(torch.finfo(torch.float32).max)


class World:
    """What is known of every environment; the first is there from the start."""

    def __init__(self, settings: Settings, device: str) -> None:
        """Begin in the first environment, where every latent applies."""
        self.settings, self.usual, most = settings, Usual(settings, device), settings.most
        self.tensors: dict[str, Tensor] = {
            **self.usual.tensors,
            "start": torch.zeros(most, device=device),
            "opened": torch.full((most,), _NEVER, dtype=torch.int64, device=device),
            **{name: _whole(0, device) for name in _COUNTS},
            "count": _whole(1, device),
            "told": _whole(_NEVER, device),
            "least": torch.full((), _MOST, device=device),
            "tried": torch.zeros(most, dtype=torch.bool, device=device),
            "kept": torch.zeros(SLOTS, dtype=torch.int64, device=device),
            "renewed": torch.zeros(SLOTS, dtype=torch.bool, device=device),
            "changed": torch.zeros((), dtype=torch.bool, device=device),
        }
        self._numbers, self._slots = (torch.arange(many, device=device) for many in (most, SLOTS))

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
        return self.usual.used

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

    @property
    def slot(self) -> Tensor:
        """Which of the batches that are kept is looked back on, (): at every step another."""
        return self.steps % SLOTS

    def turn(self, candidate: Tensor, look: Look, back: Look | None = None) -> Tensor:
        """Open an environment, change to one or stay; 1 where the batch is to be learned, else 0.

        A batch that surprises in the active environment is not learned. After some in a row the others are
        tried, one a batch; where none is found in which a batch is usual, a new one is opened.

        Args:
            back: the batch of the slot, with the net as it is now: that is usual, too.
        """
        here = Here(self.active, None if back is None else Back(back, self._is_near(back)))
        self.steps.add_(1)
        if not self.settings.environments:
            self.usual.learn(look, torch.ones_like(look.error), here)
            self._mask_again(look.alpha)
            return torch.ones_like(look.error)
        told, trying = self.told >= 0, self._trying()
        surprised = self.usual.settled(self.active) & self.usual.is_new(candidate, look, here)
        surprised = surprised & self.infers
        learned = ~(surprised | trying | told)
        self.usual.learn(look, learned.float(), here)
        self._doubt(surprised, trying, candidate)
        self._compare(candidate, look.error, surprised | told)
        lost = self._trying() & ~self._untried().any()
        room = self.count < self.settings.most
        opens = torch.where(told, self.told >= self.count, lost) & room
        found = torch.where(told, self.told < self.count, trying & ~surprised)
        place = torch.where(told, self.told, candidate)
        self.changed.copy_(opens | (found & (place != self.active)))
        self.usual.settle_for(lost & ~room, look, self.active)
        mask = self._mask(look, here)
        self._go(found, place)
        self._open(opens, look, mask)
        self._calm(opens | found | lost)
        self._keep(learned, look.images)
        self.stay.copy_(torch.where(opens | found | lost, 0, self.stay + learned))
        return learned.float()

    def _is_near(self, back: Look) -> Tensor:
        """Whether the batch of the slot is of the active environment, and of such a size.

        Not at once in an environment that was taken for a known one: it may yet turn out to be another.
        """
        renewed = self.stay >= max(self.settings.inference.slow, SLOTS)
        return renewed & (at(self.kept, self.slot) == back.images)

    def _keep(self, learned: Tensor, images: int) -> None:
        """Say in which slot the batch is to be kept, if any: now and then one that was learned.

        There are several, so that neither an odd batch nor the first of another environment, if it is
        learned by mistake, decides whether some in a row surprise.
        """
        often = max(self.settings.inference.slow // SLOTS, 1)
        age = at(self.age, self.active)
        chosen = self._slots == age // often % SLOTS
        self.renewed.copy_(chosen & learned & (age % often == 0))
        self.kept.copy_(torch.where(self.renewed, images, self.kept))

    def _doubt(self, surprised: Tensor, trying: Tensor, candidate: Tensor) -> None:
        """Count surprises in a row; remember which environments were tried."""
        self.surprises.add_(surprised)
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

    def _mask_again(self, alpha: Tensor) -> None:
        """Masks without environments: of the batch, with memory."""
        own = self.settings.inference
        if self.settings.masks:
            found = hysteresis(self.masks[0], alpha, own.low, own.high)
            self.masks[0] = torch.where(self.usual.settled(self.active), found, self.masks[0])

    def _mask(self, look: Look, here: Here) -> Tensor:
        """Which latents apply in an environment that a batch opens, (z,): those not unusual in it.

        What says nothing anywhere is free to be used there, whatever it makes of images never seen.
        """
        if not self.settings.masks:
            return torch.ones_like(look.alpha)
        return keep_one((~self.usual.unusual(look, here)).float(), look.alpha)

    def _open(self, now: Tensor, look: Look, mask: Tensor) -> None:
        here = (self._numbers == self.count) & now
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
        """How many environments there are, which is active, when each was opened, and what surprised."""
        opened = torch.where(self.opened >= 0, self.opened.double(), torch.nan)
        return {
            "environments": self.count,
            "active": self.active,
            "switches": self.switches,
            "surprises": self.surprises,
            **{f"opened_{number}": opened[number] for number in range(1, self.settings.most)},
        }

    def load(self, tensors: dict[str, Any]) -> None:
        """Go on from what was known."""
        for name, tensor in self.tensors.items():
            tensor.copy_(tensors[name])


def _whole(value: int, device: str) -> Tensor:
    return torch.tensor(value, dtype=torch.int64, device=device)
