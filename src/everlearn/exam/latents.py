"""What single latents of a code say in an environment, and which of them apply there."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from everlearn.exam.environments import Environment, encode
from everlearn.exam.one_shot import Row
from everlearn.learner import Encodes, Masks
from everlearn.nets.divergence import kl_each

Numbers = list[float | None]


def describe_latents(learner: Encodes, one: Environment) -> Row:
    """Describe every latent on the test images of an environment."""
    means, deviations = (part.double() for part in encode(learner, one.test))
    row = {
        "tested": one.task.index,
        "environment": None,
        "kl": _finite(divergence(means, deviations)),
        "used": None,
        "mask": None,
        "x": None,
        "y": None,
    }
    return row | _masks(learner, next(one.test.parts())) | _places(means, one)


def divergence(means: Tensor, deviations: Tensor) -> Tensor:
    """KL of each latent from N(0, 1) in nats, the mean over images (n, N): (N,)."""
    return kl_each(means, 2 * deviations.log()).mean(0)


def correlation(means: Tensor, factor: Tensor) -> Tensor:
    """Pearson's correlation of each latent (n, N) with a factor (n,): (N,)."""
    means, factor = means - means.mean(0), factor - factor.mean()
    lengths = torch.linalg.vector_norm(factor) * torch.linalg.vector_norm(means, dim=0)
    return torch.mv(means.T, factor).div(lengths)


def _masks(learner: Any, images: Tensor) -> Row:
    if not isinstance(learner, Masks):
        return {}
    with torch.no_grad():
        found = {"mask": learner.mask(images), "used": learner.used(images)}
        environment = learner.environment(images)
    told = {name: latents.int().tolist() for name, latents in found.items()}
    return {"environment": int(environment), **told}


def _places(means: Tensor, one: Environment) -> Row:
    factors = one.test.factors
    if factors is None:
        return {}
    varying = {
        name: column for name, column in (("x", factors.x), ("y", factors.y)) if np.ptp(column)
    }
    return {
        name: _finite(correlation(means, torch.from_numpy(column).to(means)))
        for name, column in varying.items()
    }


def _finite(values: Tensor) -> Numbers:
    """Numbers of a row; None stands for what is none, as of a latent that never varies."""
    return [value if math.isfinite(value) else None for value in values.tolist()]
