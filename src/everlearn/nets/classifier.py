"""A net with one output a class, which answers among the classes it has met."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from everlearn.nets import fast


class Classifier:
    """Logits over all classes there will be; the head is allocated once.

    Args:
        classes: the ids of all classes, without gaps.
    """

    def __init__(self, net: nn.Module, classes: range, device: str) -> None:
        """Start without having met a class."""
        self.net, self.classes = fast.place(net, device), classes
        self.met = torch.zeros(len(classes), dtype=torch.bool, device=device)

    def meet(self, classes: Sequence[int]) -> None:
        """Let answers be these classes, too."""
        self.met |= self._mask(classes)

    def unit(self, labels: Tensor) -> Tensor:
        """The output that stands for each class."""
        return labels - self.classes.start

    def logits(self, images: Tensor) -> Tensor:
        """(B, classes)."""
        return fast.forward(self.net, images)

    def loss(self, logits: Tensor, units: Tensor, unmet: bool) -> Tensor:
        """Mean cross-entropy, over all classes or, without the unmet, over those met so far."""
        return cross_entropy(logits if unmet else logits.masked_fill(~self.met, -torch.inf), units)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class with the largest logit of those met, or asked for; -1 when there is none."""
        with fast.evaluating(self.net):
            return self.choose(self.logits(images), among)

    def choose(self, logits: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class with the largest of these logits, likewise."""
        allowed = self.met if among is None else self._mask(among)
        best = logits.masked_fill(~allowed, -torch.inf).argmax(1)
        return torch.where(allowed.any(), best + self.classes.start, -1)

    def state(self) -> dict[str, Any]:
        """Weights, and which classes were met."""
        return {"net": dict(self.net.state_dict()), "met": self.met}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.net.load_state_dict(state["net"])
        self.met.copy_(state["met"])

    def _mask(self, classes: Sequence[int]) -> Tensor:
        unknown = [label for label in classes if label not in self.classes]
        if unknown:
            first, last = self.classes[0], self.classes[-1]
            raise ValueError(
                f"unknown classes {unknown}; this net has outputs for {first} .. {last}"
            )
        mask = torch.zeros(len(self.classes), dtype=torch.bool)
        mask[[label - self.classes.start for label in classes]] = True
        return mask.to(self.met.device)
