"""VASE: disentangled codes for life (Achille et al. 2018, arXiv 1808.06508); CCI-VAE and beta-VAE.

A variational autoencoder goes from one environment to another without being told. It finds which one it is
in, masks the latents that do not apply there, and dreams of the others so as not to forget them. Labels are
read by the nearest mean alone. What the paper leaves open, and what differs, is in docs/methods/vase.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, softmax

from everlearn.learner import all_classes, check_passes, lessons
from everlearn.methods.vase.dreams import Dream, Dreamer
from everlearn.methods.vase.readout import Readout
from everlearn.methods.vase.settings import Inference, Objective, Settings
from everlearn.methods.vase.tolerance import find_tolerance
from everlearn.methods.vase.usual import Look, at
from everlearn.methods.vase.world import SLOTS, World
from everlearn.nets import fast
from everlearn.nets.atypical import atypicality, blend, farness, marginal
from everlearn.nets.coder import Code, Coder, Lent
from everlearn.nets.cvae import sample
from everlearn.nets.divergence import bernoulli_error, entropy, kl_each
from everlearn.nets.seeded import chance, seeded
from everlearn.philox import Purpose
from everlearn.stream import Task
from everlearn.stream.points import Plain

__all__ = ["VASE", "Inference", "Objective", "Settings"]

_DRAWN = 64  # steps whose noise is drawn at once
_NOISES = 4  # of codes, of their masked numbers, and the same of dreams


class VASE:
    """An encoder and a decoder, the environments they met, and a snapshot that dreams."""

    def __init__(self, stream: Any, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed, in the first environment."""
        check_passes(stream, settings.pace)
        canvas = check_images(stream.canvas)
        self.settings, self.device, self.seed = settings, device, stream.seed
        self.batch_size, self.steps = settings.pace.batch_size, 0
        with seeded(stream.seed):
            net = Coder(settings.net, canvas.channels, canvas.size, settings.z, settings.most)
        fast.place(net, device)
        self.net = net
        self.world = World(settings, device)
        # Images that were learned a while ago: where these surprise, it is the net that has changed.
        shape = (SLOTS, self.batch_size, canvas.channels, canvas.size, canvas.size)
        self.kept = torch.zeros(shape, device=device)
        self.dreamer = Dreamer(self.net, self.world, settings)
        self.readout = Readout(all_classes(stream), settings.z, device)
        self.optimizer = fast.adam(self.net.parameters(), settings.pace.rate)
        known = [*self.world.tensors.values(), *self.dreamer.tensors, self.kept]
        changed = [*fast.changed(self.net, self.optimizer), *known]
        self._awake, self._dreaming = fast.both_ways(self._learn_batch, changed)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Go through the images of a task, which may be of any environment."""
        own = self.settings
        self.batch_size = min(own.pace.batch_size, len(task.train))
        source = chance(self.seed, Purpose.VASE, task.index, self.device)
        later = self.steps > 0
        if own.environments and own.inference.switches == "told" and later:
            self.world.tell(task.index)
        self.net.train()
        for batch, step, rate in lessons(task, own.pace, self.device):
            fast.set_rate(self.optimizer, rate)
            if step % _DRAWN == 0:
                noise, draws = self._draw(source)
            work = self._dreaming if self._may_dream(later) else self._awake
            yield work(batch.images, noise[step % _DRAWN], draws[step % _DRAWN])
            self.steps += 1
            if own.period and self.steps % own.period == 0:
                self.dreamer.sync()
        self.readout.look(task, lambda images: self.codes(images)[0])

    def _draw(self, source: torch.Generator) -> tuple[Tensor, Tensor]:
        """Noise of some steps, and numbers in [0, 1) to choose what is dreamt of."""
        shape = (_DRAWN, _NOISES, self.batch_size, self.settings.z)
        noise = torch.randn(shape, generator=source, device=self.device)
        draws = torch.rand(shape[::2], generator=source, device=self.device)
        return noise, draws

    def _may_dream(self, later: bool) -> bool:
        """Whether there can be something to dream of; before that nothing is drawn in vain.

        Args:
            later: in a task after the first.
        """
        own = self.settings
        if not own.dreams or self.steps < (own.period or 0):
            return False
        return self.steps >= own.quiet if self.world.infers else later or not own.environments

    def _learn_batch(self, dreaming: bool, images: Tensor, noise: Tensor, draws: Tensor) -> Tensor:
        """One step on images and, if so, as many dreams."""
        dream = self.dreamer.dream(noise[2], noise[3], draws) if dreaming else None
        net, here = Lent(self.net), slice(0, len(images))
        code = net.encode(images if dream is None else torch.cat([images, dream.images]))
        now = code.part(here)
        back = self._look_back(net, noise) if self.world.infers else None
        place = self.world.candidate(self._chances(now))
        logits = self._decode(net, self._blend(now, place, noise), place, dream)
        loss = self._understand(images, now, logits[here], place, back)
        if dream is not None:
            there = slice(len(images), None)
            loss = loss + self.dreamer.distance(dream, code.part(there), logits[there])
            named = cross_entropy(self.net.guess(code.seen[there]), dream.places)
            loss = loss + dream.there * named
        out = fast.descend(self.optimizer, loss)
        self.net.lend(self.world.nearest, self.world.opened_now())
        if self.settings.dreams and self.settings.period is None:
            self.dreamer.sync_if(self.world.changed)
        return out

    @torch.no_grad()
    def _look_back(self, net: Lent, noise: Tensor) -> Look:
        """See images that were learned a while ago again, with the net as it is now."""
        images, place = at(self.kept, self.world.slot)[: noise.shape[1]], self.world.active
        code = net.encode(images)
        logits = net.decode(self._blend(code, place, noise), place)
        kl = kl_each(code.mean, code.log_variance).mean(0)
        return self._look(images, code, bernoulli_error(images, logits).mean(), kl)

    def _blend(self, code: Code, place: Tensor, noise: Tensor) -> Tensor:
        """Codes drawn from q, with noise where latents do not apply."""
        z = sample(code.mean, code.log_variance, noise[0])
        return blend(z, at(self.world.masks, place), noise[1])

    def _chances(self, code: Code) -> Tensor:
        """How likely each environment is for a batch by the classifier, (most,)."""
        return softmax(self.net.guess(code.seen), 1).mean(0).detach()

    def _decode(self, net: Lent, z: Tensor, place: Tensor, dream: Dream | None) -> Tensor:
        """Logits of codes of the batch and of dreams, in one pass."""
        if dream is None:
            return net.decode(z, place)
        both = torch.cat([place.expand(len(z)), dream.places])
        return net.decode(torch.cat([z, dream.z]), both)

    def _understand(
        self, images: Tensor, code: Code, logits: Tensor, place: Tensor, back: Look | None
    ) -> Tensor:
        """The loss of a batch in its environment: error, what codes say, and the environment's name."""
        mask, capacity = at(self.world.masks, place), self.world.capacity()
        error = bernoulli_error(images, logits).mean()
        kl = kl_each(code.mean, code.log_variance).mean(0)
        said = (mask * kl).sum()
        named = cross_entropy(self.net.guess(code.seen), place.expand(len(images)))
        learned = self.world.turn(place, self._look(images, code, error, kl), back)
        if self.world.infers:
            kept = self.kept[:, : len(images)]
            kept.copy_(torch.where(self.world.renewed[:, None, None, None, None], images, kept))
        return learned * (error + self._pressure(said, capacity) + named)

    def _look(self, images: Tensor, code: Code, error: Tensor, kl: Tensor) -> Look:
        shown = marginal(code.mean.detach(), code.log_variance.detach())
        least = entropy(images).mean() if self.settings.inference.excess else 0.0
        return Look(error.detach() - least, farness(*shown), kl.detach(), *shown, len(images))

    def _pressure(self, said: Tensor, capacity: Tensor) -> Tensor:
        """What holds codes back: the square of what they say over their capacity, or their KL alone."""
        own = self.settings.objective
        if own.beta is not None:
            return own.beta * said
        gap = said - capacity
        return own.gamma * (gap if own.reach else gap.clamp(min=0)).square()

    def codes(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of the code of each image, (B, z) each."""
        with fast.evaluating(self.net):
            code = self.net.encode(images)
        return code.mean, (0.5 * code.log_variance).exp()

    def environment(self, images: Tensor) -> Tensor:
        """The environment that images which belong together are of, ()."""
        known = self.world.known
        if self.settings.inference.guess == "error":
            return self._misfits(images).masked_fill(~known, torch.inf).argmin()
        with fast.evaluating(self.net):
            chances = self._chances(self.net.encode(images))
        return chances.masked_fill(~known, -1.0).argmax()

    def _misfits(self, images: Tensor) -> Tensor:
        """Excess errors of images that belong together, in each environment, (most,).

        Where they surprise, they are not of it. If they surprise everywhere, errors are taken kappa times
        where latents do not apply.
        """
        world, own = self.world, self.settings.inference
        mean, deviation = self.codes(images)
        errors = self._errors_everywhere(images, mean, deviation)
        excess = errors.mean(1) - entropy(images).mean()
        alpha = atypicality(mean, 2 * deviation.log())
        out = world.usual.surprises(excess, alpha)
        worse = torch.where(world.usual.strange(alpha), own.kappa * excess, excess)
        lost = (out | ~world.known).all()
        return torch.where(lost, worse, excess.masked_fill(out, torch.inf))

    def errors_everywhere(self, images: Tensor) -> Tensor:
        """Nats lost when images are rebuilt in each environment, known or not, (most, B)."""
        return self._errors_everywhere(images, *self.codes(images))

    @torch.no_grad()
    def _errors_everywhere(self, images: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
        every = [
            bernoulli_error(images, self.draw(self._sample(mean, deviation, number), number))
            for number in torch.arange(self.settings.most, device=self.device)
        ]
        return torch.stack(every)

    @torch.no_grad()
    def _errors_in(self, images: Tensor, place: Tensor) -> Tensor:
        return bernoulli_error(images, self.draw(self.sample(images, place), place))

    def mask(self, images: Tensor) -> Tensor:
        """Which latents apply to images that belong together, (z,)."""
        return at(self.world.masks, self.environment(images)) > 0

    def used(self, images: Tensor) -> Tensor:
        """Which latents its decoder needs to draw images that belong together, (z,)."""
        place = self.environment(images)
        z = self.sample(images, place)
        source = chance(self.seed, Purpose.VASE, 0, self.device, lane=2)
        noise = find_tolerance(images, z, lambda codes: self.draw(codes, place), source)
        return (noise < self.settings.inference.tolerance) & (at(self.world.masks, place) > 0)

    def errors(self, images: Tensor) -> Tensor:
        """Nats lost when images that belong together are rebuilt from their codes, (B,)."""
        return self._errors_in(images, self.environment(images))

    def sample(self, images: Tensor, place: Tensor) -> Tensor:
        """Codes of images, as they are drawn from in an environment: some numbers are noise."""
        return self._sample(*self.codes(images), place)

    def _sample(self, mean: Tensor, deviation: Tensor, place: Tensor) -> Tensor:
        source = chance(self.seed, Purpose.VASE, 0, self.device, lane=1)
        noise = torch.randn((2, *mean.shape), generator=source, device=self.device)
        return blend(mean + deviation * noise[0], at(self.world.masks, place), noise[1])

    def draw(self, z: Tensor, place: Tensor) -> Tensor:
        """Logits of the images of codes in an environment; slopes go through."""
        training = self.net.training
        out = self.net.eval().decode(z, place)
        self.net.train(training)
        return out

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class whose codes have the nearest mean."""
        return self.readout.name(self.codes(images)[0], among)

    def notes(self) -> dict[str, float | Tensor]:
        """What is known of environments."""
        return self.world.notes()

    def state(self) -> dict[str, Any]:
        """The net, its optimiser and snapshot, environments and class means."""
        return {
            "net": dict(self.net.state_dict()),
            "optimizer": fast.moments(self.optimizer),
            "snapshot": self.dreamer.state() if self.settings.dreams else {},
            "world": dict(self.world.tensors),
            "kept": self.kept,
            "means": self.readout.state(),
            "steps": self.steps,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.net.load_state_dict(state["net"])
        fast.load_moments(self.optimizer, state["optimizer"])
        if self.settings.dreams:
            self.dreamer.load(state["snapshot"])
        self.world.load(state["world"])
        self.kept.copy_(state["kept"])
        self.readout.load(state["means"])
        self.steps = state["steps"]


def check_images(canvas: Any) -> Any:
    """Return the canvas of a stream, or say that it shows no images."""
    if isinstance(canvas, Plain):
        raise ValueError(
            "vase draws images, whose pixels are from 0 to 1, and this stream shows numbers of any kind; "
            "use a stream of images, as Environments or Stream are"
        )
    return canvas
