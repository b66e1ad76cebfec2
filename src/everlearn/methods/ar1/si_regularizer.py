"""Synaptic intelligence as in the AR1 code: gradients of the total loss, bounded importances."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from everlearn.training.flat_params import FlatParams
from everlearn.training.path_integral import PathIntegral
from everlearn.training.quadratic_penalty import QuadraticPenalty

_DAMPING = 1e-7  # added to squared displacements


class SIRegularizer:
    """Penalises the distance of weights from the end of the last experience, by their importance.

    Attributes:
        total: what each weight has contributed so far, times `importance_scale`; flat.
        omega: its contribution in this experience, flat; a training step changes it in place.
    """

    def __init__(
        self,
        weights: Sequence[Tensor],
        strength: float,
        max_importance: float,
        importance_scale: float,
    ) -> None:
        """Start with importances of 0."""
        self._penalty = QuadraticPenalty(weights, strength / 2)
        self._path = PathIntegral(weights)
        self._max_importance = max_importance
        self._importance_scale = importance_scale
        self.total = FlatParams(weights).flat
        self.omega = self._path.omega.flat
        self._penalty.recenter()

    def before_step(self) -> Tensor:
        """Add the penalty's gradients, then record weights and total gradients; return the penalty."""
        penalty = self._penalty.add_gradients()
        self._path.before_step()
        return penalty

    def after_step(self) -> None:
        """Add the step to the path integral."""
        self._path.after_step()

    def end_experience(self) -> None:
        """Add the experience's importances and penalise the distance from here."""
        importance = self.omega / (self._penalty.displacement().square() + _DAMPING)
        self.total += self._importance_scale * importance
        self._recenter()

    def load(self, total: Tensor) -> None:
        """Continue from importances; the weights must be those of the end of that experience."""
        self.total.copy_(total)
        self._recenter()

    def _recenter(self) -> None:
        """Centre the penalty at the current weights, with importances between 0 and the bound."""
        torch.clamp(self.total, 0.0, self._max_importance, out=self._penalty.importance.flat)
        self._penalty.recenter()
        self.omega.zero_()
