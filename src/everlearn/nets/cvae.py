"""A conditional variational autoencoder of latents (Kingma and Welling 2014; Sohn et al. 2015).

The encoder gives q(z | a), the decoder p(a | z, y): a latent is generated from z of N(0, I) and a class.
All of it is float32, and nothing waits for a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from math import prod

import torch
from torch import Tensor, nn

from everlearn.losses.divergences import kl_per_latent
from everlearn.nets.seeded import fork_generator

_LARGE = 1024  # elements of a latent


def default_hidden(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the widths of the encoder's hidden layers for a latent shape; the decoder reverses them."""
    return (1024, 512) if prod(shape) >= _LARGE else (256,)


class CVAE(nn.Module):
    """Encodes latents as codes z and decodes codes, given a class.

    Args:
        shape: of a latent.
        classes: number of classes that the decoder is conditioned on.
        hidden: widths of the encoder's hidden layers, at least one.
        latent_dim: dimensions of z.
        straight_through: pass gradients where the output's ReLU is closed.
    """

    def __init__(
        self,
        shape: Sequence[int],
        classes: int,
        hidden: Sequence[int],
        latent_dim: int = 100,
        straight_through: bool = False,
    ) -> None:
        """Start from torch's default initialisation."""
        super().__init__()
        self.shape = tuple(shape)
        self.latent_dim = latent_dim
        self.straight_through = straight_through
        self.encoder = nn.Sequential(*_mlp([prod(shape), *hidden]))
        self.mean = nn.Linear(hidden[-1], latent_dim)
        self.log_variance = nn.Linear(hidden[-1], latent_dim)
        widths = [latent_dim, *reversed(hidden), prod(shape)]
        self.decoder = nn.Sequential(*_mlp(widths)[:-1])
        # A linear layer of z and the one-hot class is the sum of one of z and a row of the class.
        bound = 1 / math.sqrt(latent_dim)
        rows = torch.empty(classes, hidden[-1]).uniform_(-bound, bound, generator=fork_generator())
        self.class_rows = nn.Parameter(rows)
        self.register_buffer("_targets", torch.arange(classes), persistent=False)
        self._targets: Tensor

    def forward(self, latents: Tensor, targets: Tensor, noise: Tensor) -> tuple[Tensor, ...]:
        """Return reconstructions of latents, and mean and log-variance of their codes."""
        mean, log_variance = self.encode(latents)
        return self.decode(reparameterize(mean, log_variance, noise), targets), mean, log_variance

    def encode(self, latents: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log-variance of q(z | a), (B, latent_dim) each."""
        hidden = self.encoder(latents.flatten(1))
        return self.mean(hidden), self.log_variance(hidden)

    def decode(self, z: Tensor, targets: Tensor) -> Tensor:
        """Return latents (B, *shape) of codes (B, latent_dim) and targets (B,); none is below 0."""
        # A product in float64, whose backward pass adds in an order that the number of classes cannot
        # change; the one of indexing differs from run to run on a GPU.
        one_hot = (targets[:, None] == self._targets).double()
        of_class = (one_hot @ self.class_rows.double()).float()
        first, *later = self.decoder
        out = first(z) + of_class
        for layer in later:
            out = layer(out)
        out = _straight_through_relu(out) if self.straight_through else out.relu()
        return out.reshape(-1, *self.shape)


def reparameterize(mean: Tensor, log_variance: Tensor, noise: Tensor) -> Tensor:
    """Turn noise of N(0, I) into samples of N(mean, exp(log_variance))."""
    return mean + noise * (0.5 * log_variance).exp()


def kl_divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL(q(z | a) || N(0, I)) of each row, (B,)."""
    return kl_per_latent(mean, log_variance).sum(1)


def generator_loss(
    latents: Tensor, reconstructions: Tensor, mean: Tensor, log_variance: Tensor, beta: float
) -> Tensor:
    """Mean over the batch of |a - a_hat|^2 + beta KL, both summed over the elements of a row."""
    squared_error = (latents - reconstructions).square().flatten(1).sum(1)
    return (squared_error + beta * kl_divergence(mean, log_variance)).mean()


def _straight_through_relu(values: Tensor) -> Tensor:
    """ReLU with the gradient of the identity.

    Where the output is 0 and the latent is a > 0, the gradient of the squared error is -2 a instead of 0.
    With a plain ReLU, outputs that are 0 for all latents never learn: up to two thirds of them, in trials
    on sparse latents.
    """
    return values + (values.relu() - values).detach()


def _mlp(widths: Sequence[int]) -> list[nn.Module]:
    """Linear layers, each with a ReLU."""
    return [layer for pair in pairwise(widths) for layer in (nn.Linear(*pair), nn.ReLU())]
