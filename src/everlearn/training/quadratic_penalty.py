"""A quadratic penalty on weights that leave a center, each by its importance.

Its gradient is added to those of the loss after the backward pass, for all weights by a few kernels. So the
gradients of the loss alone can be read before that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from everlearn.training.flat_params import FlatParams
from everlearn.training.gradients import gradients_of
from everlearn.training.optimizers import Optimizer

_TINY = torch.finfo(torch.float32).tiny


class QuadraticPenalty:
    """strength * (constant + sum_k importance_k (w_k - center_k)^2).

    Attributes:
        constant: the part that does not depend on the weights, ().
    """

    def __init__(self, weights: Sequence[Tensor], strength: float) -> None:
        """Start with no importance."""
        self.strength = strength
        self._weights = list(weights)
        self.center = FlatParams(weights)
        self.importance = FlatParams(weights)
        self.constant = torch.zeros((), device=weights[0].device)
        self._displacement = FlatParams(weights)
        self._gradient = FlatParams(weights)

    @torch.no_grad()
    def add_gradients(self) -> Tensor:
        """Add the gradient of the penalty to the weights' gradients, and return the penalty, ()."""
        displacement = self.displacement()
        gradient = self._gradient.flat
        torch.mul(displacement, self.importance.flat, out=gradient)
        gradients = gradients_of(self._weights)
        torch._foreach_add_(gradients, self._gradient.views, alpha=2 * self.strength)
        # Summed in float64, where zeros of classes to come do not change the sum by another order.
        total = displacement.mul_(gradient).sum(dtype=torch.float64).float()
        return self.strength * (self.constant + total)

    def displacement(self) -> Tensor:
        """w - center as a vector; the next call overwrites it."""
        return self._displacement.copy_from(self._weights).sub_(self.center.flat)

    def recenter(self) -> None:
        """Move the center to the current weights."""
        self.center.copy_from(self._weights)

    @torch.no_grad()
    def add_quadratic(self, importance: Tensor) -> None:
        """Add a penalty centered at the current weights: the sum of two quadratics is one and a constant.

        With importances A and F and centers m and w, A (v - m)^2 + F (v - w)^2 is
        (A + F) (v - m - s (w - m))^2 + A s (w - m)^2 where s = F / (A + F).

        Args:
            importance: F, a vector.
        """
        old = self.importance.flat
        displacement = self.displacement()
        share = importance / (old + importance).clamp(min=_TINY)
        self.constant += (old * share * displacement.square()).sum(dtype=torch.float64)
        self.center.flat.lerp_(displacement.add_(self.center.flat), share)
        old.add_(importance)

    def state(self) -> dict[str, Any]:
        """Importance, center and constant."""
        return {
            "importance": self.importance.flat,
            "center": self.center.flat,
            "constant": self.constant,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore a state."""
        self.importance.flat.copy_(state["importance"])
        self.center.flat.copy_(state["center"])
        self.constant.copy_(state["constant"])


def penalized_step(
    optimizer: Optimizer, loss: Tensor, penalties: Sequence[QuadraticPenalty]
) -> Tensor:
    """Take one optimiser step on a loss and its penalties, and return their sum."""
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    for penalty in penalties:
        loss = loss.detach() + penalty.add_gradients()
    optimizer.step()
    return loss
