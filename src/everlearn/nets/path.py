"""The path of weights through a loss, for synaptic intelligence (Zenke et al. 2017, arXiv 1703.04200)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from everlearn.nets.anchor import Row
from everlearn.nets.gradients import slopes_of
from everlearn.nets.norm import Norm
from everlearn.nets.renorm import Renorm


class Path:
    """What each weight did for the loss on its way: omega_k = -sum of g_k dw_k (eq. 3).

    The moves are what the weights really did, whatever the optimiser: with Adam they are not -rate * g.
    """

    def __init__(self, weights: Sequence[Tensor]) -> None:
        """Stand at the start."""
        self._weights = list(weights)
        self.omega, self._slopes = Row(weights), Row(weights)
        self._before, self._after = Row(weights), Row(weights)

    def depart(self) -> None:
        """Note where the weights are, and their slopes."""
        self._before.read(self._weights)
        self._slopes.read(slopes_of(self._weights))

    def arrive(self) -> None:
        """Count the move since."""
        move = self._after.read(self._weights).sub_(self._before.all)
        self.omega.all.addcmul_(self._slopes.all, move, value=-1)


def without_norms(net: nn.Module) -> list[Tensor]:
    """The weights of all layers but normalisations."""
    layers = [layer for layer in net.modules() if not isinstance(layer, (Norm, Renorm))]
    return [weight for layer in layers for weight in layer.parameters(recurse=False)]
