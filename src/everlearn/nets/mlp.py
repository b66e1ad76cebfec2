"""A multilayer perceptron with one hidden layer, for points and other small inputs."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import relu

from everlearn.nets.layers.head import Head

WIDTH = 64


class MLP(nn.Module):
    """Linear, ReLU, linear."""

    def __init__(self, inputs: int, outputs: int) -> None:
        """Start from torch's default initialisation."""
        super().__init__()
        self.hidden = nn.Linear(inputs, WIDTH)
        self.head = Head(WIDTH, outputs)
        self.width = WIDTH

    def features(self, images: Tensor) -> Tensor:
        """(B, width)."""
        return relu(self.hidden(images.flatten(1)))

    def forward(self, images: Tensor) -> Tensor:
        """(B, outputs)."""
        out: Tensor = self.head(self.features(images))
        return out
