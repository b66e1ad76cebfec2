"""AR1 and generative negative replay: a net in two halves, a head that keeps copies, replay between them.

CWR, CWR+ and CWR* (arXiv 1705.03550, 1806.08568, 1907.03799), AR1 (with synaptic intelligence), latent
replay (Pellegrini et al. 2020, arXiv 1912.01100) and generative negative replay (Graffieti et al. 2022,
arXiv 2204.05842) are settings of one loop. What differs is in docs/methods/gnr.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from everlearn.learner import all_classes
from everlearn.memory import draw_rows
from everlearn.memory.latents import LatentMemory
from everlearn.methods.ar1.generator import Generator, passes
from everlearn.methods.ar1.hold import Hold
from everlearn.methods.ar1.patterns import (
    Ints,
    Patterns,
    draw_labels,
    draw_random,
    find_bound,
)
from everlearn.methods.ar1.settings import FROZEN, HELD, MODES, Generation, Rates, Settings
from everlearn.nets import fast
from everlearn.nets.classifier import Classifier
from everlearn.nets.cwr import CopyWeights
from everlearn.nets.extractor import load_halves
from everlearn.nets.halves import Halves, build_halves
from everlearn.nets.negative import negative_loss
from everlearn.nets.path import without_norms
from everlearn.nets.renorm import settle
from everlearn.nets.seeded import chance
from everlearn.philox import Purpose
from everlearn.stream import Task

__all__ = ["AR1", "FROZEN", "HELD", "MODES", "Generation", "Rates", "Settings"]

_AT_ONCE = 1024


class AR1:
    """Everything that AR1 and generative negative replay hold.

    The lower half is learned in the first experience, unless it has its weights from a file, and never
    again. Kept and replayed are its latents.
    """

    def __init__(self, stream: Any, settings: Settings, device: str) -> None:
        """Start with random or given weights, and no class."""
        classes, canvas = all_classes(stream), stream.canvas
        _check_passes(stream, settings)
        self.settings, self.device, self.seed = settings, device, stream.seed
        halves = _halves(settings, canvas, stream.seed)
        head = CopyWeights(halves.width, len(classes), settings.head, settings.mean_shift)
        self.lower, self.top = halves.lower, nn.Sequential(halves.upper, head)
        self.head, self.experiences, self.known = head, 0, set[int]()
        self.is_given = bool(settings.weights) or not any(True for _ in self.lower.parameters())
        self.model = Classifier(nn.Sequential(self.lower, self.top), classes, device)
        self.batch_size = settings.batch_size
        first = settings.rates.at(0)
        learned = halves.upper if self.is_given else halves
        self.slow = fast.sgd(
            learned.parameters(), first[0], settings.rates.momentum, settings.rates.decay
        )
        self.quick = fast.sgd(
            [head.weight], first[1], settings.rates.momentum, settings.rates.decay
        )
        self.hold: Hold | None = None
        if settings.strength:
            held = without_norms(halves.upper)
            self.hold = Hold(held, settings.strength, settings.clip, settings.multiplier)
        self._replay(halves.shape, len(classes))
        self._capture()

    def _replay(self, shape: tuple[int, int, int], classes: int) -> None:
        """Make room for what is replayed."""
        own = self.settings
        size = own.memory if own.data in ("gd", "rd") else 0
        self.patterns: Any = Patterns(size, shape, self.device)
        if own.data == "od":
            self.patterns = LatentMemory(own.memory, shape, self.seed, self.device)
        self.generator = None
        if own.data == "gd":
            self.generator = Generator(self.patterns, classes, own, self._judge, self.seed)
        self.bound = torch.zeros((), device=self.device)

    def _capture(self) -> None:
        """Steps that learn from images, and from latents; what they are told lies in one place."""
        self.among, self.current = (
            torch.zeros_like(self.model.met),
            torch.zeros_like(self.model.met),
        )
        self.norms, self.recognised = (
            torch.zeros(2, device=self.device),
            torch.zeros((), device=self.device),
        )
        changed = [
            *self.model.net.state_dict().values(),
            *fast.moments(self.slow),
            *fast.moments(self.quick),
            *([self.hold.omega] if self.hold else []),
        ]
        self._from_images = fast.Step(self._learn_images, changed)
        self._from_latents = fast.both_ways(self._learn_latents, changed)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Learn an experience beside what is replayed; keep its rows; then let the generator learn it."""
        if not len(task.train):
            return
        present, counts = self._begin(task)
        whole = not self.is_given and self.experiences == 0
        latents, units = self._look(task, images=whole)
        still = self.experiences > 0 and not self.settings.rates.later_rate
        yield from self._fit(
            task, latents, units, self._from_images if whole else self._from_latents[still]
        )
        self._end(task, present, counts)
        if whole and (self.generator or self.settings.data in ("od", "rd")):
            latents, units = self._look(task)
        if self.generator:
            self.model.net.eval()
            yield from self.generator.learn(task, latents, units)
        self._remember(task, latents)

    def _begin(self, task: Task) -> tuple[Tensor, Tensor]:
        """Replay something, load the rows; tell which classes are present and what counts for them."""
        self._refill(task)
        self._recognise()
        new, old = self._count(self._units(task)), self._count(self.patterns.labels)
        present = (new + old) > 0
        self.current.copy_(new > 0)
        known = present if self.settings.head != "plain" else present | self.head.known
        self.among.copy_(known | self.settings.unmet)
        self.head.open(present, chance(self.seed, Purpose.REPLAY, task.index, self.device, lane=2))
        for optimizer, rate in zip(
            (self.slow, self.quick), self.settings.rates.at(self.experiences), strict=True
        ):
            fast.forget(optimizer)
            fast.set_rate(optimizer, rate)
        self.model.net.train()
        return present, new if self.settings.is_negative else new + old

    def _refill(self, task: Task) -> None:
        """Make what is generated or random anew, of classes met before."""
        if self.settings.data not in ("gd", "rd") or self.experiences == 0:
            return
        labels = draw_labels(self.seed, task.index, sorted(self.known), self.settings.memory)
        if self.generator:
            made = self.generator.draw(task.index, labels)
        else:
            shape = self.patterns.latents.shape[1:]
            made = draw_random(self.seed, task.index, len(labels), shape, self.bound)
        self.patterns.fill(made, labels)

    def _recognise(self) -> None:
        """Note which share of what is replayed the kept rows still name as it is labelled."""
        held = slice(0, self.patterns.filled)
        with fast.evaluating(self.top):
            named = self.model.choose(fast.forward(self.top, self.patterns.latents[held]))
        right = self.model.unit(named) == self.patterns.units[held]
        self.recognised.copy_(right.float().mean())

    def _look(self, task: Task, images: bool = False) -> tuple[Tensor, Tensor]:
        """All latents of a task, or all images, in the order of its rows; and their units."""
        seen, labels = [], []
        for batch in task.train.batches(_AT_ONCE, self.device):
            seen.append(batch.images if images else self.latents(batch.images))
            labels.append(self.model.unit(batch.labels))
        return torch.cat(seen), torch.cat(labels)

    def latents(self, images: Tensor) -> Tensor:
        """What the lower half makes of images, by the moments that it keeps."""
        with fast.evaluating(self.lower):
            return fast.forward(self.lower, images)

    def _fit(self, task: Task, seen: Tensor, units: Tensor, step: fast.Step) -> Iterator[Tensor]:
        """Go through an experience; every batch has its share of replayed patterns."""
        new, old = self.settings.parts(len(units), self.patterns.filled)
        epochs = self.settings.epochs_of(self.experiences)
        self.batch_size = new + old
        steps = epochs * (len(units) // new)
        rows = draw_rows(self.seed, task.index, self.patterns.filled, steps, old)
        recalled = torch.from_numpy(rows).to(self.device)
        for number, chosen in enumerate(passes(task, epochs, new, self.device)):
            extra = recalled[number : number + 1] if old else ()
            yield step(seen[chosen], units[chosen], *extra)

    def _learn_images(self, images: Tensor, units: Tensor) -> Tensor:
        """A step of the whole net."""
        logits = fast.forward(self.model.net, images).masked_fill(~self.among, -torch.inf)
        return self._descend(cross_entropy(logits, units))

    def _learn_latents(
        self, still: bool, latents: Tensor, units: Tensor, *recalled: Tensor
    ) -> Tensor:
        """A step of the upper half, unless it is still, and the head, on new latents and those recalled."""
        self.top[0].train(not still)  # a net that stays as it is sees all batches alike
        new = len(units)
        for rows in recalled:
            latents = torch.cat([latents, self.patterns.latents[rows]])
            units = torch.cat([units, self.patterns.units[rows]])
        logits = fast.forward(self.top, latents, narrow=False)
        if self.settings.head == "plain" and self.settings.is_negative:
            replayed = torch.arange(len(units), device=units.device) >= new
            return self._descend(negative_loss(logits, units, replayed, self.current, self.among))
        return self._descend(cross_entropy(logits.masked_fill(~self.among, -torch.inf), units))

    def _descend(self, loss: Tensor) -> Tensor:
        """Go down a loss and the pull of synaptic intelligence, which notes the slopes of both."""
        self.slow.zero_grad(set_to_none=True)
        self.quick.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        if self.hold:
            loss = loss.detach() + self.hold.depart()
        self.slow.step()
        self.quick.step()
        if self.hold:
            self.hold.arrive()
        return loss

    def _end(self, task: Task, present: Tensor, counts: Tensor) -> None:
        """Keep the rows; hold the weights; from now on the lower half is as it is."""
        self.head.close(present, counts)
        new = np.unique(self._units(task)).tolist()  # a task may name classes that it does not show
        self.model.meet([unit + self.model.classes.start for unit in new])
        self.known |= set(new)
        self.norms[0] = self.head.norms(self.current)
        self.norms[1] = self.head.norms(~self.current)
        if self.hold:
            self.hold.close()
        if self.experiences == 0:
            settle(self.top)

    def _remember(self, task: Task, latents: Tensor) -> None:
        """Let the memory take in some latents; find how large random ones may be."""
        if self.settings.data == "od":
            self.patterns.admit(task.index, latents, self._units(task))
        if self.settings.data == "rd" and self.experiences == 0:
            self.bound.copy_(find_bound(latents))
        self.experiences += 1

    def _units(self, task: Task) -> Ints:
        """The units of a task's rows, on the host."""
        return task.train.labels - self.model.classes.start

    def _judge(self, latents: Tensor) -> Tensor:
        """Logits of latents by the kept rows; slopes go through."""
        return fast.forward(self.top, latents)

    def _count(self, units: Ints) -> Tensor:
        """How often each unit occurs, (classes,)."""
        counts = np.bincount(units, minlength=len(self.model.classes)).astype(np.float32)
        return torch.from_numpy(counts).to(self.device)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class whose kept row fits best."""
        return self.model.predict(images, among)

    def notes(self) -> dict[str, Tensor]:
        """Mean lengths of the rows of the last experience's classes and of others; the share recognised.

        Where nothing is replayed, that is no number.
        """
        return {
            "new_norm": self.norms[0],
            "old_norm": self.norms[1],
            "recognised": self.recognised,
        }

    def state(self) -> dict[str, Any]:
        """The net with its head, what is replayed, the generator and what holds the weights."""
        return {
            **self.model.state(),
            "memory": self.patterns.state() if self.settings.data == "od" else [],
            "generator": self.generator.state() if self.generator else {},
            "importance": self.hold.total if self.hold else [],
            "bound": self.bound,
            "experiences": self.experiences,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.model.load_state(state)
        if self.settings.data == "od":
            self.patterns.load_state(state["memory"])
        if self.generator:
            self.generator.load_state(state["generator"])
        self.bound.copy_(state["bound"])
        self.experiences = state["experiences"]
        self.known = set(self.model.met.nonzero()[:, 0].tolist())
        if self.hold:
            self.hold.load(state["importance"])


def _halves(settings: Settings, canvas: Any, seed: int) -> Halves:
    """The net of a file, or a new one."""
    if not settings.weights:
        return build_halves(settings.net, canvas.channels, canvas.size, seed)
    halves, about = load_halves(settings.weights)
    if tuple(canvas.shape) == halves.shape:
        halves.lower = nn.Identity()  # what the stream shows is what this net makes of images
        return halves
    made_for = (about["channels"], about["size"], about["size"])
    if tuple(canvas.shape) != made_for:
        raise ValueError(
            f"{settings.weights} is of a net for images {made_for} or latents {halves.shape}, found a "
            f"stream of {tuple(canvas.shape)}; pre-train one for it: everlearn pretrain --net"
        )
    return halves


def _check_passes(stream: Any, settings: Settings) -> None:
    passes_of = {"epochs": max(settings.epochs, settings.epochs_of(0))}
    if settings.data == "gd":
        passes_of["generator_epochs"] = settings.generation.generator_epochs
    for name, most in passes_of.items():
        if stream.online and most > 1:
            raise ValueError(
                f"this stream is online: one pass is allowed, found {name}={most}; give {name}=1"
            )
