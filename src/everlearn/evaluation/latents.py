"""What single latents of the codes encode in an environment, and which of them apply there."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from everlearn.core.random import Floats
from everlearn.evaluation.environments import Environment, encode
from everlearn.learner import Encodes, InfersEnvironments
from everlearn.losses.divergences import kl_per_latent
from everlearn.rows import LatentsRow, Numbers


def describe_latents(
    learner: Encodes, environment: Environment, step: int = 0, learned: int = -1
) -> LatentsRow:
    """Describe every latent on the test images of an environment."""
    means, deviations = (part.double() for part in encode(learner, environment.test))
    factors = environment.test.factors
    row: LatentsRow = {
        "kind": "latents",
        "step": step,
        "learned": learned,
        "tested": environment.task.index,
        "environment": None,
        "kl": _finite(divergence(means, deviations)),
        "used": None,
        "mask": None,
        "x": None if factors is None else _correlations(means, factors.x),
        "y": None if factors is None else _correlations(means, factors.y),
    }
    if isinstance(learner, InfersEnvironments):
        images = next(environment.test.batches())
        with torch.no_grad():
            row["mask"] = learner.mask(images).int().tolist()
            row["used"] = learner.used(images).int().tolist()
            row["environment"] = int(learner.environment(images))
    return row


def divergence(means: Tensor, deviations: Tensor) -> Tensor:
    """Return the KL of each latent from N(0, 1) in nats, averaged over images (n, N): (N,)."""
    return kl_per_latent(means, 2 * deviations.log()).mean(0)


def correlation(means: Tensor, factor: Tensor) -> Tensor:
    """Return Pearson's correlation of each latent (n, N) with a factor (n,): (N,)."""
    means = means - means.mean(0)
    factor = factor - factor.mean()
    lengths = torch.linalg.vector_norm(factor) * torch.linalg.vector_norm(means, dim=0)
    return torch.mv(means.T, factor).div(lengths)


def _correlations(means: Tensor, factor: Floats) -> Numbers | None:
    """Return the correlations of all latents with a factor, if it varies."""
    if not np.ptp(factor):
        return None
    return _finite(correlation(means, torch.from_numpy(factor).to(means)))


def _finite(values: Tensor) -> Numbers:
    """Return numbers for a row; None for those that are not finite, as of a latent that never varies."""
    return [value if math.isfinite(value) else None for value in values.tolist()]
