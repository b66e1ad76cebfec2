"""A classifier with feedback connections, which is also a generative model of its inputs.

The net of brain-inspired replay (van de Ven et al. 2020). A classifier and an encoder of codes z share the
lower layers; a decoder leads back to inputs. Layers are float32, sums over classes float64, because their
order depends on the number of classes. Nothing waits for a GPU.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from everlearn.nets.layers.class_head import ClassHead
from everlearn.nets.seeded import fork_generator


class Encoding(NamedTuple):
    """Logits (B, classes), and mean and log-variance of q(z | x), (B, latent_dim) each."""

    logits: Tensor
    mean: Tensor
    log_variance: Tensor


class FeedbackClassifier(nn.Module):
    """Two hidden layers up to a head and to codes, two gated ones from codes back to inputs.

    The prior of codes is a mixture of one Gaussian per class, with learned means and variances. Each class
    has its own gates, drawn once: they leave only part of the decoder's hidden units active for it.

    Args:
        shape: of an input.
        width: of every hidden layer.
        latent_dim: dimensions of a code.
        gated_fraction: probability that a unit is inactive for a class.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        classes: int,
        width: int,
        latent_dim: int,
        gated_fraction: float,
    ) -> None:
        """Start from torch's default initialisation; prior and gates come from its generator, too."""
        super().__init__()
        self.shape = shape
        inputs = prod(shape)
        self.encoder = nn.ModuleList([nn.Linear(inputs, width), nn.Linear(width, width)])
        self.head = ClassHead(width, classes)
        self.mean = nn.Linear(width, latent_dim)
        self.log_variance = nn.Linear(width, latent_dim, bias=False)
        self.decoder = nn.ModuleList([nn.Linear(latent_dim, width), nn.Linear(width, width)])
        self.out = nn.Linear(width, inputs)
        self.prior_means = nn.Parameter(_normal_rows(classes, latent_dim))
        self.prior_log_variances = nn.Parameter(_normal_rows(classes, latent_dim))
        uniform = torch.rand((classes, 2, width), generator=fork_generator())
        open_gates = (uniform >= gated_fraction).double().transpose(0, 1).contiguous()
        self.register_buffer("gates", open_gates, persistent=False)
        self.gates: Tensor

    def forward(self, images: Tensor) -> Tensor:
        """Logits (B, classes)."""
        return self.encode(images).logits

    def encode(self, images: Tensor) -> Encoding:
        """Return logits and codes of images (B, *shape)."""
        hidden = images.flatten(1)
        for layer in self.encoder:
            hidden = relu(layer(hidden))
        return Encoding(self.head(hidden), self.mean(hidden), self.log_variance(hidden))

    def decode(self, z: Tensor, class_probabilities: Tensor) -> Tensor:
        """Return images of codes (B, latent_dim); gates are averaged by class probability (B, classes)."""
        for layer, gates in zip(self.decoder, self.gates, strict=True):
            open_gates = (class_probabilities.double() @ gates).float()
            z = relu(open_gates * layer(z))
        out: Tensor = self.out(z)
        return out.reshape(-1, *self.shape)

    def generate(self, targets: Tensor, noise: Tensor) -> Tensor:
        """Generate images of targets (B,) from noise of N(0, I), (B, latent_dim)."""
        z = self.prior_means[targets] + noise * (0.5 * self.prior_log_variances[targets]).exp()
        return self.decode(z, one_hot(targets, len(self.prior_means)))

    def log_prior(self, z: Tensor, class_probabilities: Tensor) -> Tensor:
        """Log-density, up to a constant, of codes (B, latent_dim) under the weighted mixture, (B,)."""
        # sum (z - m)^2 / s^2 = z^2 . (1 / s^2) - 2 z . (m / s^2) + sum m^2 / s^2, by two matrix products.
        z = z.double()
        means = self.prior_means.double()
        log_variances = self.prior_log_variances.double()
        precisions = (-log_variances).exp()
        of_class = (log_variances + means.square() * precisions).sum(1)
        distances = z.square() @ precisions.T - 2 * z @ (means * precisions).T + of_class
        log_prior: Tensor = torch.logsumexp(class_probabilities.double().log() - 0.5 * distances, 1)
        return log_prior.float()


def _normal_rows(classes: int, size: int) -> Tensor:
    """Draw rows of N(0, I) one by one: torch draws the end of a tensor differently from the rest."""
    generator = fork_generator()
    return torch.stack([torch.randn(size, generator=generator) for _ in range(classes)])


def one_hot(targets: Tensor, classes: int) -> Tensor:
    """(B, classes) float32; torch's own function waits for a GPU."""
    return (targets[:, None] == torch.arange(classes, device=targets.device)).float()


def log_normal(z: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    """Log-density of z, summed over its last axis, less a constant that cancels in differences."""
    return -0.5 * (log_variance + (z - mean).square() * (-log_variance).exp()).sum(-1)
