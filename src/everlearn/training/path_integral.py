"""The path integral of synaptic intelligence (Zenke et al. 2017, arXiv 1703.04200)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from everlearn.nets.layers.norm import Norm
from everlearn.nets.layers.renorm import Renorm
from everlearn.training.flat_params import FlatParams
from everlearn.training.gradients import gradients_of


class PathIntegral:
    """The contribution of each weight to the fall of the loss: omega_k = -sum of g_k dw_k (eq. 3).

    dw is the actual change of the weights, whatever the optimiser: with Adam it is not -learning_rate g.
    """

    def __init__(self, weights: Sequence[Tensor]) -> None:
        """Start with zeros."""
        self._weights = list(weights)
        self.omega = FlatParams(weights)
        self._gradients = FlatParams(weights)
        self._before = FlatParams(weights)
        self._after = FlatParams(weights)

    def before_step(self) -> None:
        """Record the weights and their gradients."""
        self._before.copy_from(self._weights)
        self._gradients.copy_from(gradients_of(self._weights))

    def after_step(self) -> None:
        """Add the contribution of the step."""
        change = self._after.copy_from(self._weights).sub_(self._before.flat)
        self.omega.flat.addcmul_(self._gradients.flat, change, value=-1)


def without_norms(net: nn.Module) -> list[Tensor]:
    """The weights of all layers except normalisations."""
    layers = [layer for layer in net.modules() if not isinstance(layer, (Norm, Renorm))]
    return [weight for layer in layers for weight in layer.parameters(recurse=False)]
