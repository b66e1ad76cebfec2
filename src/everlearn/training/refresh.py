"""Refresh learning (Wang et al. 2024, arXiv 2403.13249): unlearn a batch a little before learning it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

_FISHER_WEIGHT = 1e-3  # of the Fisher diagonal beside 1, in the authors' code
_DECAY = 1e-5  # of the Fisher diagonal of earlier tasks, tau in the authors' code
_TINY = 1e-20


class Refresh:
    """Moves weights up the loss of the next batch, less where the Fisher information of the past is large.

    Args:
        delta: length of the move, as a fraction of each tensor's norm.

    Attributes:
        squared_gradients: their sum in this task; `unlearn` changes it beside the weights.
    """

    def __init__(self, weights: Sequence[Tensor], delta: float) -> None:
        """Start with no Fisher information."""
        self._weights = list(weights)
        self._delta = delta
        self._fisher = [torch.zeros_like(weight) for weight in self._weights]
        self._damping = [torch.ones_like(weight) for weight in self._weights]
        self.squared_gradients = [torch.zeros_like(weight) for weight in self._weights]

    def unlearn(self, gradients: Sequence[Tensor], images: int) -> None:
        """Ascend a loss with these gradients, a mean over so many images, and record their squares."""
        ascend(self._weights, gradients, self._damping, self._delta)
        torch._foreach_addcmul_(
            self.squared_gradients, list(gradients), list(gradients), value=images
        )

    def end_task(self, steps: int) -> None:
        """Add the mean squared gradients of a task's steps to the Fisher diagonal."""
        torch._foreach_mul_(self._fisher, _DECAY)
        torch._foreach_add_(self._fisher, self.squared_gradients, alpha=1 / steps)
        torch._foreach_zero_(self.squared_gradients)
        self._update_damping()

    def _update_damping(self) -> None:
        torch._foreach_copy_(self._damping, torch._foreach_mul(self._fisher, _FISHER_WEIGHT))
        torch._foreach_add_(self._damping, 1.0)

    def state(self) -> list[Tensor]:
        """The Fisher diagonal, at the end of a task."""
        return self._fisher

    def load_state(self, state: Any) -> None:
        """Restore a state."""
        torch._foreach_copy_(self._fisher, list(state))
        torch._foreach_zero_(self.squared_gradients)
        self._update_damping()


@torch.no_grad()
def ascend(
    weights: Sequence[Tensor], gradients: Sequence[Tensor], damping: Sequence[Tensor], delta: float
) -> None:
    """w += delta v / damping, in place, where v is the gradient of w scaled to the norm of w."""
    norms = torch._foreach_norm(list(weights))
    gradient_norms = torch._foreach_clamp_min(torch._foreach_norm(list(gradients)), _TINY)
    scaled = torch._foreach_mul(list(gradients), torch._foreach_div(norms, gradient_norms))
    torch._foreach_addcdiv_(list(weights), scaled, list(damping), value=delta)
