"""A classifier with feedback connections: it names what it sees and draws what it has seen.

The net of brain-inspired replay (van de Ven et al. 2020). A classifier and an encoder of codes z share its
lower layers; a decoder leads back to inputs. All of it is float32, and nothing waits for a GPU.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from everlearn.nets.head import Head


class Seen(NamedTuple):
    """What a net makes of inputs: logits (B, classes), mean and log-variance of their codes (B, z)."""

    logits: Tensor
    mean: Tensor
    log_variance: Tensor


class Feedback(nn.Module):
    """Two hidden layers up to a head and to codes, two gated ones from codes back to inputs.

    The prior of codes has one Gaussian a class, with its own mean and variances. A class also has its own
    gates, drawn once: in the decoder's hidden layers only part of the units are at work for it.

    Args:
        shape: of an input.
        width: of every hidden layer.
        z: numbers of a code.
        gated: chance of a unit to be shut for a class.
    """

    def __init__(
        self, shape: tuple[int, ...], classes: int, width: int, z: int, gated: float
    ) -> None:
        """Start from torch's own random weights, with modes and gates drawn by its generator."""
        super().__init__()
        self.shape, inputs = shape, prod(shape)
        self.up = nn.ModuleList([nn.Linear(inputs, width), nn.Linear(width, width)])
        self.head = Head(width, classes)
        self.mean, self.log_variance = nn.Linear(width, z), nn.Linear(width, z, bias=False)
        self.down = nn.ModuleList([nn.Linear(z, width), nn.Linear(width, width)])
        self.out = nn.Linear(width, inputs)
        self.modes = nn.Parameter(torch.randn(classes, z))
        self.log_variances = nn.Parameter(torch.randn(classes, z))
        open_gates = (torch.rand(2, classes, width) >= gated).float()
        self.register_buffer("gates", open_gates, persistent=False)
        self.gates: Tensor

    def forward(self, images: Tensor) -> Tensor:
        """Logits (B, classes)."""
        return self.see(images).logits

    def see(self, images: Tensor) -> Seen:
        """Logits and codes of images (B, *shape)."""
        hidden = images.flatten(1)
        for layer in self.up:
            hidden = relu(layer(hidden))
        return Seen(self.head(hidden), self.mean(hidden), self.log_variance(hidden))

    def decode(self, z: Tensor, chances: Tensor) -> Tensor:
        """Images of codes (B, z), through gates as open as the classes are likely, (B, classes)."""
        for layer, gates in zip(self.down, self.gates, strict=True):
            z = relu((chances @ gates) * layer(z))
        found: Tensor = self.out(z)
        return found.reshape(-1, *self.shape)

    def draw(self, units: Tensor, noise: Tensor) -> Tensor:
        """Images of units (B,), from noise of N(0, I), (B, z)."""
        z = self.modes[units] + noise * (0.5 * self.log_variances[units]).exp()
        return self.decode(z, one_hot(units, len(self.modes)))

    def log_prior(self, z: Tensor, chances: Tensor) -> Tensor:
        """Log-density of codes (B, z) where the classes are so likely, less a constant, (B,)."""
        each = log_normal(z[:, None], self.modes, self.log_variances)
        return torch.logsumexp(each + chances.log(), 1)


def one_hot(units: Tensor, classes: int) -> Tensor:
    """(B, classes) float32; torch's own waits for a GPU."""
    return (units[:, None] == torch.arange(classes, device=units.device)).float()


def log_normal(z: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    """Log-density of z, summed over its last axis, less a constant that cancels in differences."""
    return -0.5 * (log_variance + (z - mean).square() * (-log_variance).exp()).sum(-1)
