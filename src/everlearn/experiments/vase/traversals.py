"""Latent traversals of a trained VASE, as pictures."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from everlearn.evaluation.latents import divergence
from everlearn.experiments.framework.pictures import picture_row
from everlearn.experiments.framework.runner import Runner
from everlearn.experiments.framework.trial import Trial
from everlearn.experiments.vase.image_grid import draw_image_grid
from everlearn.experiments.vase.transfer import load_vase
from everlearn.methods.vase import VASE
from everlearn.rows import PictureRow
from everlearn.stream import Environments

_RANGE = 2.0  # latents vary from -2 to 2


def traverse(
    runner: Runner, trial: Trial, images: int, latents: int, steps: int
) -> Iterator[PictureRow]:
    """Yield one picture per environment: an image decoded as each used latent varies."""
    learner = load_vase(runner, trial)
    stream = runner.stream(trial)
    assert isinstance(stream, Environments)
    for task, name in zip(stream, stream.sequence, strict=False):
        batch = task.test.batch(slice(0, images), runner.device).images
        yield _traversal(learner, batch, name, latents, steps)


def _traversal(learner: VASE, images: Tensor, name: str, latents: int, steps: int) -> PictureRow:
    environment = learner.environment(images)
    mean, deviation = (tensor.detach() for tensor in learner.codes(images))
    kl = divergence(mean, deviation)
    used = learner.used(images).nonzero().flatten()
    shown = used[kl[used].argsort(descending=True)][:latents].tolist()
    values = torch.linspace(-_RANGE, _RANGE, steps, device=mean.device)
    rows = {"image": images[:steps]}
    for latent in shown:
        z = mean[:1].repeat(steps, 1)
        z[:, latent] = values
        decoded = learner.decode(z, environment).sigmoid().detach()
        rows[f"latent {latent}, {kl[latent]:.1f} nats"] = decoded
    grid = draw_image_grid({label: tensor.cpu().numpy() for label, tensor in rows.items()})
    caption = (
        f"{name}, assigned to environment {int(environment) + 1}: some images, and the first one as each "
        "latent that is used here goes from −2 to 2."
    )
    return picture_row(caption, grid)
