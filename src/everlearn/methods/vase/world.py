"""The environments met so far, and which of them a batch is of (eq. 6 and Algorithm 1 of VASE)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from everlearn.methods.vase.settings import Settings
from everlearn.methods.vase.usual import Look, Usual, at, whole
from everlearn.nets.atypical import hysteresis, keep_one

_NEVER = -1
_MOST = float(torch.finfo(torch.float32).max)


class World(Usual):
    """What is known of every environment; the first is there from the start."""

    def __init__(self, settings: Settings, device: str) -> None:
        """Begin in the first environment."""
        super().__init__(settings, device)
        most = settings.most
        self.tensors |= {
            "start": torch.zeros(most, device=device),
            "opened": torch.full((most,), _NEVER, dtype=torch.int64, device=device),
            **{name: whole(0, device) for name in ("doubt", "switches", "steps", "nearest")},
            "told": whole(_NEVER, device),
            "least": torch.full((), _MOST, device=device),
            "tried": torch.zeros(most, dtype=torch.bool, device=device),
        }

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

    def _mask_again(self, alpha: Tensor) -> None:
        """Masks without environments: of the batch, with memory."""
        own = self.settings.inference
        if self.settings.masks:
            found = hysteresis(self.masks[0], alpha, own.low, own.high)
            self.masks[0] = torch.where(self._settled(), found, self.masks[0])

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
