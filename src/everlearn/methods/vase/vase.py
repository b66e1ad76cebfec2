"""VASE: life-long disentangled representation learning (Achille et al. 2018, arXiv 1808.06508).

A variational autoencoder learns one environment after another without being told of the switches. It infers
the environment, masks latents that do not apply there, and dreams of the others so as not to forget them.
CCI-VAE and beta-VAE are the same without these three parts. Labels serve the nearest class mean alone. What
the paper leaves open, and what differs, is in docs/methods/vase.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from everlearn.core.random import Purpose
from everlearn.losses.divergences import bernoulli_nll
from everlearn.methods.vase.assignment import assign, errors_in_each
from everlearn.methods.vase.atypicality import apply_mask
from everlearn.methods.vase.dreams import Dreamer
from everlearn.methods.vase.environment_state import select_row
from everlearn.methods.vase.environments import Environments
from everlearn.methods.vase.nearest_code import NearestCode
from everlearn.methods.vase.settings import Settings
from everlearn.methods.vase.tolerance import find_tolerance
from everlearn.methods.vase.training_step import TrainingStep
from everlearn.nets.precision import eval_mode, to_device
from everlearn.nets.seeded import seeded, seeded_generator
from everlearn.nets.vae import VAE
from everlearn.render.canvas import Canvas
from everlearn.stream import Task, TaskStream
from everlearn.stream.synthetic.points import FeatureCanvas
from everlearn.training.adam import Adam
from everlearn.training.optimizer_step import (
    load_optimizer_state,
    optimizer_state,
    set_learning_rate,
    training_state,
)
from everlearn.training.schedule import training_batches
from everlearn.training.step_pair import step_pair
from everlearn.training.stream_checks import check_epochs, finite_class_ids

_NOISE_STEPS = 64  # steps for which noise is drawn at once
_NOISES = 4  # of codes and of their masked latents, for the batch and for dreams


class VASE:
    """An encoder and a decoder, the environments seen so far, and a snapshot that dreams."""

    def __init__(self, stream: TaskStream, settings: Settings, device: str) -> None:
        """Start in the first environment, with random weights that follow from the stream's seed."""
        check_epochs(stream, settings.schedule)
        canvas = check_images(stream.canvas)
        self.settings = settings
        self.device = device
        self.seed = stream.seed
        self.batch_size = settings.schedule.batch_size
        self.steps = 0
        with seeded(stream.seed):
            net = VAE(
                settings.net,
                canvas.channels,
                canvas.size,
                settings.latent_dim,
                settings.max_environments,
            )
        to_device(net, device)
        self.net = net
        self.environments = Environments(settings, device)
        self.dreamer = Dreamer(self.net, self.environments, settings)
        self.class_means = NearestCode(finite_class_ids(stream), settings.latent_dim, device)
        self.optimizer = Adam(self.net.parameters(), settings.schedule.learning_rate)
        batch_shape = (self.batch_size, canvas.channels, canvas.size, canvas.size)
        self.training_step = TrainingStep(self.dreamer, self.optimizer, batch_shape)
        # What a step changes: CapturedStep restores these after its warm-up.
        changed = [
            *training_state(self.net, self.optimizer),
            *self.environments.state.tensors.values(),
            *self.dreamer.tensors,
            self.training_step.reference_images,
        ]
        self._step, self._step_with_dreams = step_pair(self.training_step.learn_batch, changed)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Learn the images of a task, which may be of any environment."""
        settings = self.settings
        self.batch_size = min(settings.schedule.batch_size, len(task.train))
        generator = seeded_generator(self.seed, Purpose.VASE, task.index, self.device)
        is_later_task = self.steps > 0
        if settings.environments and not settings.infers and is_later_task:
            self.environments.announce(task.index)
        self.net.train()
        for batch, step, learning_rate in training_batches(task, settings.schedule, self.device):
            set_learning_rate(self.optimizer, learning_rate)
            row = step % _NOISE_STEPS
            if row == 0:
                noise, draws = self._draw_noise(generator)
            learn_batch = self._step_with_dreams if self._can_dream(is_later_task) else self._step
            yield learn_batch(batch.images, noise[row], draws[row])
            self.steps += 1
            if settings.snapshot_period and self.steps % settings.snapshot_period == 0:
                self.dreamer.sync()
        self.class_means.update(task, lambda images: self.codes(images)[0])

    def _draw_noise(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return normal noise (steps, 4, B, N) and uniform numbers (steps, B) that choose dreams."""
        shape = (_NOISE_STEPS, _NOISES, self.batch_size, self.settings.latent_dim)
        noise = torch.randn(shape, generator=generator, device=self.device)
        draws = torch.rand(shape[::2], generator=generator, device=self.device)
        return noise, draws

    def _can_dream(self, is_later_task: bool) -> bool:
        """Whether there may be an environment to dream of; until then a step is spared the dreams."""
        settings = self.settings
        if not settings.dreams or self.steps < (settings.snapshot_period or 0):
            return False
        if settings.infers:
            return self.steps >= settings.min_environment_steps
        return is_later_task or not settings.environments

    def codes(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation of the code of each image, (B, N) each."""
        with eval_mode(self.net):
            code = self.net.encode(images)
        return code.mean, (0.5 * code.log_variance).exp()

    def environment(self, images: Tensor) -> Tensor:
        """Return the environment of images that belong together, ()."""
        return assign(self, images)

    def errors_everywhere(self, images: Tensor) -> Tensor:
        """Return the reconstruction error in nats in each environment, known or not, (E, B)."""
        return errors_in_each(self, images, *self.codes(images))

    def reconstruction_errors(self, images: Tensor) -> Tensor:
        """Return the reconstruction error in nats of images that belong together, (B,)."""
        return self.errors_in(images, self.environment(images))

    @torch.no_grad()
    def errors_in(self, images: Tensor, environment: Tensor) -> Tensor:
        """Return the reconstruction error in nats of images in one environment, (B,)."""
        z = self.sample(*self.codes(images), environment)
        return bernoulli_nll(images, self.decode(z, environment))

    def mask(self, images: Tensor) -> Tensor:
        """Return which latents apply to images that belong together, (N,)."""
        return select_row(self.environments.state.masks, self.environment(images)) > 0

    def used(self, images: Tensor) -> Tensor:
        """Return which latents the decoder uses for images that belong together, (N,)."""
        environment = self.environment(images)
        z = self.sample(*self.codes(images), environment)
        generator = seeded_generator(self.seed, Purpose.VASE, 0, self.device, substream=2)
        noise = find_tolerance(images, z, lambda codes: self.decode(codes, environment), generator)
        applies = select_row(self.environments.state.masks, environment) > 0
        return (noise < self.settings.inference.max_latent_noise) & applies

    def sample(self, mean: Tensor, deviation: Tensor, environment: Tensor) -> Tensor:
        """Draw z^s from codes, with noise in latents masked in an environment; the same noise each time."""
        generator = seeded_generator(self.seed, Purpose.VASE, 0, self.device, substream=1)
        noise = torch.randn((2, *mean.shape), generator=generator, device=self.device)
        mask = select_row(self.environments.state.masks, environment)
        return apply_mask(mean + deviation * noise[0], mask, noise[1])

    def decode(self, z: Tensor, environment: Tensor) -> Tensor:
        """Return the logits of images of codes in an environment; differentiable."""
        training = self.net.training
        logits = self.net.eval().decode(z, environment)
        self.net.train(training)
        return logits

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the class with the nearest mean code."""
        return self.class_means.predict(self.codes(images)[0], among)

    def diagnostics(self) -> dict[str, float | Tensor]:
        """Return counts of environments, switches and surprises."""
        return self.environments.diagnostics()

    def state(self) -> dict[str, Any]:
        """Return the net, its optimizer and snapshot, environments, reference images and class means."""
        return {
            "net": dict(self.net.state_dict()),
            "optimizer": optimizer_state(self.optimizer),
            "snapshot": self.dreamer.state() if self.settings.dreams else {},
            "environments": self.environments.state.tensors,
            "reference_images": self.training_step.reference_images,
            "means": self.class_means.state(),
            "steps": self.steps,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.net.load_state_dict(state["net"])
        load_optimizer_state(self.optimizer, state["optimizer"])
        if self.settings.dreams:
            self.dreamer.load_state(state["snapshot"])
        self.environments.state.load(state["environments"])
        self.training_step.reference_images.copy_(state["reference_images"])
        self.class_means.load_state(state["means"])
        self.steps = state["steps"]


def check_images(canvas: Canvas | FeatureCanvas) -> Canvas:
    """Return the canvas of a stream of images; refuse a stream of feature vectors."""
    if isinstance(canvas, FeatureCanvas):
        raise ValueError(
            "vase reconstructs images with pixels from 0 to 1, found a stream of feature vectors; use a "
            "stream of images such as Environments or Stream"
        )
    return canvas
