"""A net with one output per class, which predicts among the classes seen so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from everlearn.nets.precision import eval_mode, forward_pass, to_device


class Classifier:
    """Logits over all classes of a stream; the head is allocated once.

    Args:
        classes: the ids of all classes, without gaps.

    Attributes:
        seen: (classes,) which classes were added so far.
    """

    def __init__(self, net: nn.Module, classes: range, device: str) -> None:
        """Start without a class."""
        self.net = to_device(net, device)
        self.classes = classes
        self.seen = torch.zeros(len(classes), dtype=torch.bool, device=device)

    def add_classes(self, classes: Sequence[int]) -> None:
        """Mark classes as seen, so that they can be predicted."""
        self.seen |= self._mask(classes)

    def targets(self, labels: Tensor) -> Tensor:
        """The output of each global class id."""
        return labels - self.classes.start

    def logits(self, images: Tensor) -> Tensor:
        """(B, classes), float64."""
        return forward_pass(self.net, images)

    def loss(self, logits: Tensor, targets: Tensor, include_unseen: bool) -> Tensor:
        """Mean cross-entropy over the seen classes or, with `include_unseen`, over all classes."""
        allowed = logits if include_unseen else logits.masked_fill(~self.seen, -torch.inf)
        return cross_entropy(allowed, targets).float()

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Predict the seen class, or the class in `among`, with the largest logit; -1 if there is none."""
        with eval_mode(self.net):
            return self.classify(self.logits(images), among)

    def classify(self, logits: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Predict from logits (B, classes), as `predict` does from images."""
        allowed = self.seen if among is None else self._mask(among)
        best = logits.masked_fill(~allowed, -torch.inf).argmax(1)
        return torch.where(allowed.any(), best + self.classes.start, -1)

    def state(self) -> dict[str, Any]:
        """The weights and the seen classes."""
        return {"net": dict(self.net.state_dict()), "seen": self.seen}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore a state."""
        self.net.load_state_dict(state["net"])
        self.seen.copy_(state["seen"])

    def _mask(self, classes: Sequence[int]) -> Tensor:
        unknown = [label for label in classes if label not in self.classes]
        if unknown:
            first, last = self.classes[0], self.classes[-1]
            raise ValueError(
                f"unknown classes {unknown}; this net has outputs for {first} .. {last}"
            )
        mask = torch.zeros(len(self.classes), dtype=torch.bool)
        mask[[label - self.classes.start for label in classes]] = True
        return mask.to(self.seen.device)
