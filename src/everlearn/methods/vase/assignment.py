"""Which known environment images belong to (Algorithm 1 of VASE, line 1), judged after training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import softmax

from everlearn.losses.divergences import bernoulli_entropy, bernoulli_nll
from everlearn.methods.vase.atypicality import atypicality
from everlearn.nets.precision import eval_mode
from everlearn.nets.vae import VAE, Code

if TYPE_CHECKING:
    from everlearn.methods.vase.vase import VASE


def assign(learner: VASE, images: Tensor) -> Tensor:
    """Return the environment of images that belong together, ()."""
    known = learner.environments.known
    if learner.settings.inference.assign_by == "error":
        return assignment_errors(learner, images).masked_fill(~known, torch.inf).argmin()
    with eval_mode(learner.net):
        probabilities = environment_probabilities(learner.net, learner.net.encode(images))
    return probabilities.masked_fill(~known, -1.0).argmax()


def environment_probabilities(net: VAE, code: Code) -> Tensor:
    """Return the probability of each environment for a batch, by the classifier, (E,)."""
    return softmax(net.environment_logits(code.features), 1).mean(0).detach()


def assignment_errors(learner: VASE, images: Tensor) -> Tensor:
    """Return the excess error of images that belong together in each environment, (E,).

    It is infinite in environments where the images are surprising (eq. 6). If they are surprising in all,
    the error counts kappa-fold where the mask differs.
    """
    stats = learner.environments.stats
    mean, deviation = learner.codes(images)
    errors = errors_in_each(learner, images, mean, deviation)
    excess = errors.mean(1) - bernoulli_entropy(images).mean()
    alpha = atypicality(mean, 2 * deviation.log())
    surprising = stats.surprising(excess, alpha)
    scaled = torch.where(
        stats.mask_differs(alpha), learner.settings.inference.kappa * excess, excess
    )
    fits_nowhere = (surprising | ~learner.environments.known).all()
    return torch.where(fits_nowhere, scaled, excess.masked_fill(surprising, torch.inf))


@torch.no_grad()
def errors_in_each(learner: VASE, images: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """Return the reconstruction error of images in each environment, known or not, (E, B).

    Args:
        mean: of the codes of the images.
        deviation: standard deviation of the codes.
    """
    errors = []
    for environment in torch.arange(learner.settings.max_environments, device=learner.device):
        z = learner.sample(mean, deviation, environment)
        errors.append(bernoulli_nll(images, learner.decode(z, environment)))
    return torch.stack(errors)
