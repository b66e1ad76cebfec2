"""An anchor: a quadratic penalty on weights that leave a place, each by its importance.

Its slope is added to the weights' own after the way back, for all weights by a few kernels. So whoever
needs the slope without it finds that before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from everlearn.nets.gradients import slopes_of

_TINY = torch.finfo(torch.float32).tiny


class Row:
    """As many numbers as some weights have.

    Attributes:
        all: the numbers in one row, so that one kernel serves all weights.
        parts: the same memory in the shapes of the weights, and laid out as they are.
    """

    def __init__(self, weights: Sequence[Tensor]) -> None:
        """Start with zeros."""
        sizes = [weight.numel() for weight in weights]
        self.all = torch.zeros(sum(sizes), device=weights[0].device)
        self.parts = [
            piece.as_strided(weight.shape, weight.stride())
            for piece, weight in zip(torch.split(self.all, sizes), weights, strict=True)
        ]

    @torch.no_grad()
    def read(self, tensors: Sequence[Tensor]) -> Tensor:
        """Take the numbers of tensors in the shapes of the weights; return them as a row."""
        torch._foreach_copy_(self.parts, list(tensors))
        return self.all


class Anchor:
    """strength * (rest + sum_k importance_k (w_k - at_k)^2).

    Attributes:
        rest: the part that does not depend on the weights, ().
    """

    def __init__(self, weights: Sequence[Tensor], strength: float) -> None:
        """Pull at nothing yet."""
        self.strength, self._weights = strength, list(weights)
        self.at, self.importance = Row(weights), Row(weights)
        self.rest = torch.zeros((), device=weights[0].device)
        self._off, self._steep = Row(weights), Row(weights)

    @torch.no_grad()
    def pull(self) -> Tensor:
        """Add the slope of the penalty to the weights' own, and return the penalty, ()."""
        off, steep = self.leave(), self._steep.all
        torch.mul(off, self.importance.all, out=steep)
        torch._foreach_add_(slopes_of(self._weights), self._steep.parts, alpha=2 * self.strength)
        return self.strength * (self.rest + torch.dot(steep, off))

    def leave(self) -> Tensor:
        """How far each weight is from its place, a row; the next call writes to the same memory."""
        return self._off.read(self._weights).sub_(self.at.all)

    def hold(self) -> None:
        """Pull to where the weights are now."""
        self.at.read(self._weights)

    @torch.no_grad()
    def add(self, importance: Tensor) -> None:
        """Pull to where the weights are now, too: a sum of two quadratics is one, and a rest.

        With importances A and F and places m and w, A (v - m)^2 + F (v - w)^2 is
        (A + F) (v - m - s (w - m))^2 + A s (w - m)^2 where s = F / (A + F).

        Args:
            importance: F, a row.
        """
        old, off = self.importance.all, self.leave()
        share = importance / (old + importance).clamp(min=_TINY)
        self.rest += (old * share * off.square()).sum()
        self.at.all.lerp_(off.add_(self.at.all), share)
        old.add_(importance)

    def state(self) -> dict[str, Any]:
        """Where it pulls to, and how much at each weight."""
        return {"importance": self.importance.all, "at": self.at.all, "rest": self.rest}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.importance.all.copy_(state["importance"])
        self.at.all.copy_(state["at"])
        self.rest.copy_(state["rest"])


def descend(optimizer: Optimizer, loss: Tensor, anchors: Sequence[Anchor]) -> Tensor:
    """Go one step down a loss and the penalties of anchors, and return their sum."""
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    for anchor in anchors:
        loss = loss.detach() + anchor.pull()
    optimizer.step()
    return loss
