"""Refresh learning (Wang et al. 2024, arXiv 2403.13249): unlearn a batch a little before learning it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

_FISHER = 1e-3  # what the Fisher diagonal counts beside 1, in the authors' code
_DECAY = 1e-5  # what that of tasks before counts, tau in the authors' code
_TINY = 1e-20


class Refresh:
    """Moves weights against what they are about to learn, less where they matter for the task before.

    Args:
        delta: how far, as a fraction of each tensor's own length.

    Attributes:
        changed: every tensor beside the weights that `unlearn` changes.
    """

    def __init__(self, weights: Sequence[Tensor], delta: float) -> None:
        """Start without knowing what matters."""
        self._weights, self._delta = list(weights), delta
        self._fisher = [torch.zeros_like(one) for one in self._weights]
        self._damping = [torch.ones_like(one) for one in self._weights]
        self.changed = [torch.zeros_like(one) for one in self._weights]

    def unlearn(self, slopes: Sequence[Tensor], images: int) -> None:
        """Go up a loss, whose slopes are the mean over so many images, and note their squares."""
        climb(self._weights, slopes, self._damping, self._delta)
        torch._foreach_addcmul_(self.changed, list(slopes), list(slopes), value=images)

    def end_task(self, steps: int) -> None:
        """Take the squares noted in so many steps as the Fisher diagonal of a task."""
        torch._foreach_mul_(self._fisher, _DECAY)
        torch._foreach_add_(self._fisher, self.changed, alpha=1 / steps)
        torch._foreach_zero_(self.changed)
        self._damp()

    def _damp(self) -> None:
        torch._foreach_copy_(self._damping, torch._foreach_mul(self._fisher, _FISHER))
        torch._foreach_add_(self._damping, 1.0)

    def state(self) -> list[Tensor]:
        """The Fisher diagonal, at the end of a task."""
        return self._fisher

    def load_state(self, state: Any) -> None:
        """Go on from a state."""
        torch._foreach_copy_(self._fisher, list(state))
        torch._foreach_zero_(self.changed)
        self._damp()


@torch.no_grad()
def climb(
    weights: Sequence[Tensor], slopes: Sequence[Tensor], damping: Sequence[Tensor], delta: float
) -> None:
    """w += delta v / damping, in place, where v is the slope of w with the length of w."""
    lengths = torch._foreach_norm(list(weights))
    steepness = torch._foreach_clamp_min(torch._foreach_norm(list(slopes)), _TINY)
    scaled = torch._foreach_mul(list(slopes), torch._foreach_div(lengths, steepness))
    torch._foreach_addcdiv_(list(weights), scaled, list(damping), value=delta)
