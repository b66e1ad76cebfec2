"""A conditional variational autoencoder of latents (Kingma and Welling 2014; Sohn et al. 2015).

The encoder gives q(z | a), the decoder p(a | z, y): to draw a latent, z of N(0, I) and a class are enough.
All of it is float32, and nothing waits for a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import torch
from torch import Tensor, nn

from everlearn.nets.divergence import kl_each

_LARGE = 1024  # numbers of a latent


def usual_hidden(shape: Sequence[int]) -> tuple[int, ...]:
    """The widths of the encoder's hidden layers for latents of a shape; the decoder has them reversed."""
    return (1024, 512) if prod(shape) >= _LARGE else (256,)


class CVAE(nn.Module):
    """Latents to codes z and, told a class, back.

    Args:
        shape: of a latent.
        classes: how many units there are to tell.
        hidden: widths of the encoder's layers, one at least.
        z: numbers of a code.
        through: let slopes pass where the output is cut at 0.
    """

    def __init__(
        self,
        shape: Sequence[int],
        classes: int,
        hidden: Sequence[int],
        z: int = 100,
        through: bool = False,
    ) -> None:
        """Start from torch's own random weights."""
        super().__init__()
        self.shape, self.z, self.through = tuple(shape), z, through
        self.encoder = nn.Sequential(*_layers([prod(shape), *hidden]))
        self.mean = nn.Linear(hidden[-1], z)
        self.log_variance = nn.Linear(hidden[-1], z)
        self.decoder = nn.Sequential(*_layers([z + classes, *reversed(hidden), prod(shape)])[:-1])
        self.register_buffer("_units", torch.arange(classes), persistent=False)
        self._units: Tensor

    def forward(self, latents: Tensor, units: Tensor, noise: Tensor) -> tuple[Tensor, ...]:
        """Reconstructions of latents of these units, and mean and log-variance of their codes."""
        mean, log_variance = self.encode(latents)
        return self.decode(sample(mean, log_variance, noise), units), mean, log_variance

    def encode(self, latents: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log-variance of q(z | a), (B, z) each."""
        found = self.encoder(latents.flatten(1))
        return self.mean(found), self.log_variance(found)

    def decode(self, z: Tensor, units: Tensor) -> Tensor:
        """Latents (B, *shape) of codes (B, z) and units (B,); none below 0, as after a ReLU."""
        one_hot = (units[:, None] == self._units).float()
        found: Tensor = self.decoder(torch.cat([z, one_hot], 1))
        return (_cut(found) if self.through else found.relu()).reshape(-1, *self.shape)


def sample(mean: Tensor, log_variance: Tensor, noise: Tensor) -> Tensor:
    """Codes of N(mean, exp(log_variance)), from noise of N(0, I)."""
    return mean + noise * (0.5 * log_variance).exp()


def kl(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL(q(z | a) || N(0, I)) of each row, (B,)."""
    return kl_each(mean, log_variance).sum(1)


def generator_loss(
    latents: Tensor, found: Tensor, mean: Tensor, log_variance: Tensor, beta: float
) -> Tensor:
    """Mean over the batch of |a - a_hat|^2, summed over all numbers of a latent, and beta KL."""
    distance = (latents - found).square().flatten(1).sum(1)
    return (distance + beta * kl(mean, log_variance)).mean()


def _cut(values: Tensor) -> Tensor:
    """ReLU, but slopes pass everywhere.

    Where the output is 0 and the latent is a > 0, the slope of the squared error is -2 a instead of 0. With
    a plain ReLU, outputs that are 0 for all latents never learn: up to two thirds of them, in trials on
    sparse latents.
    """
    return values + (values.relu() - values).detach()


def _layers(widths: Sequence[int]) -> list[nn.Module]:
    """Linear layers, each with a ReLU."""
    return [layer for one in pairwise(widths) for layer in (nn.Linear(*one), nn.ReLU())]
