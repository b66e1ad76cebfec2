"""The last layer of a classifier: what a class gets does not depend on how many classes follow."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from everlearn.nets.seeded import fork_generator


class ClassHead(nn.Linear):
    """A linear layer with one output per class, in float64.

    In float32, a product with more rows or a softmax with more columns is summed in another order. Then the
    first tasks of a long stream would differ from those of a short one. In float64 the order has no effect
    on what is left after rounding to float32.
    """

    def reset_parameters(self) -> None:
        """Draw weights and bias as torch does, but class by class: a class more changes no other class."""
        bound = 1 / math.sqrt(self.in_features)
        rows = torch.empty(self.out_features, self.in_features + 1)
        rows.uniform_(-bound, bound, generator=fork_generator())
        with torch.no_grad():
            self.weight.copy_(rows[:, :-1])
            self.bias.copy_(rows[:, -1])

    def forward(self, input: Tensor) -> Tensor:
        """(B, inputs) to (B, classes), float64."""
        return linear(input.double(), self.weight.double(), self.bias.double())
