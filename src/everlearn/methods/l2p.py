"""Learning to prompt (Wang et al. 2022, arXiv 2112.08654): a frozen transformer, and a pool of prompts.

Two names share this file: l2p takes weights pre-trained elsewhere, l2p-lite those of `everlearn pretrain`.
Defaults are Avalanche's, which the DCL paper's code runs; what differs is in docs/methods/l2p.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_

from everlearn.border import check_number, check_whole
from everlearn.learner import Pace, all_classes, check_passes, lessons
from everlearn.nets import fast
from everlearn.nets.classifier import Classifier
from everlearn.nets.prompted import Prompted
from everlearn.nets.seeded import seeded
from everlearn.nets.vit import CONFIGS, ViT
from everlearn.nets.vit.weights import load_vit
from everlearn.nets.weights import digest
from everlearn.settings import setting
from everlearn.stream import Task

RANDOM = "random"


@dataclass(frozen=True)
class Settings:
    """What learning to prompt can be told."""

    pace: Pace = Pace(rate=0.03)
    weights: str | None = setting(
        None, "of the frozen net: a file, a folder or a name of the hub; random: tiny, for tests"
    )
    side: int | None = setting(None, "images are resized to this; none: what the weights know")
    pool: int = setting(20, "prompts in the pool (Avalanche: 20; l2p-pytorch: 10)")
    length: int = setting(5, "tokens of a prompt (both: 5)")
    top: int = setting(5, "prompts that an image gets (both: 5)")
    shared: bool = setting(
        False,
        "a training batch shares the prompts most of it chose (l2p-pytorch: yes)",
    )
    pull: float = setting(0.1, "weight of the chosen keys' nearness (both: 0.1)")
    clip: float | None = setting(None, "longest gradient (Avalanche: none; l2p-pytorch: 1)")
    fresh: bool = setting(True, "start the optimiser afresh with every task (both: yes)")

    def __post_init__(self) -> None:
        """Check every number."""
        check_whole(self.pool, "pool", 1, 100_000)
        check_whole(self.length, "length", 1, 1000)
        check_whole(self.top, "top", 1, self.pool, " (the pool)")
        check_number(self.pull, "pull", 0, 1e3)
        if self.side is not None:
            check_whole(self.side, "side", 1, 4096)
        if self.clip is not None:
            check_number(self.clip, "clip", 1e-9, 1e9)


def build_l2p(stream: Any, settings: Settings, device: str) -> L2P:
    """L2P on weights that were pre-trained elsewhere."""
    net, ours = _load(settings.weights, stream.seed, "l2p", "google/vit-base-patch16-224-in21k")
    if ours:
        raise ValueError(
            f"{settings.weights} is of `everlearn pretrain`, which is not what L2P is defined on; use "
            "l2p-lite"
        )
    return L2P(stream, settings, device, net)


def build_lite(stream: Any, settings: Settings, device: str) -> L2P:
    """L2P-lite: the same on a small transformer that `everlearn pretrain` made."""
    hint = "out/vit-lite.npz, which `everlearn pretrain` writes"
    net, ours = _load(settings.weights, stream.seed, "l2p-lite", hint)
    if not ours and settings.weights != RANDOM:
        raise ValueError(f"{settings.weights} is not of `everlearn pretrain`; use l2p")
    return L2P(stream, settings, device, net)


def _load(weights: str | None, seed: int, name: str, hint: str) -> tuple[ViT, bool]:
    """The net to freeze, and whether its weights are of this package."""
    if weights is None:
        raise ValueError(
            f"{name} needs the weights of a vision transformer: give weights, as {hint}"
        )
    if weights == RANDOM:
        with seeded(seed):
            return ViT(CONFIGS["vit-test"]), False
    net, about = load_vit(weights)
    return net, about.get("maker") == "everlearn pretrain"


class L2P:
    """A frozen net; prompts, keys and one head over all classes of the stream are trained."""

    def __init__(self, stream: Any, settings: Settings, device: str, frozen: ViT) -> None:
        """Start with random prompts, keys and head, which follow from the stream's seed."""
        check_passes(stream, settings.pace)
        side = _check_side(settings.side or frozen.config.size, frozen)
        classes = all_classes(stream)
        self.settings, self.device = settings, device
        self.batch_size = settings.pace.batch_size
        self.frozen = fast.place(frozen.requires_grad_(False).eval(), device)
        self.digest = digest(frozen)
        s = settings
        with seeded(stream.seed):
            self.net = Prompted(frozen, len(classes), side, s.pool, s.length, s.top, s.shared)
        self.model = Classifier(self.net, classes, device)
        self.now = torch.zeros_like(self.model.met)
        self.optimizer = fast.adam(self.net.parameters(), settings.pace.rate)
        changed = fast.changed(self.net, self.optimizer)
        self._step = fast.Step(self._learn_batch, changed)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Go through the task."""
        self.model.meet(task.classes)
        labels = torch.tensor(task.classes, dtype=torch.int64, device=self.device)
        # In place: a captured step reads it there.
        self.now.zero_().index_fill_(0, self.model.unit(labels), True)
        self.batch_size = min(self.settings.pace.batch_size, len(task.train))
        if self.settings.fresh:
            fast.forget(self.optimizer)
        self.net.train()
        for batch, _, rate in lessons(task, self.settings.pace, self.device):
            fast.set_rate(self.optimizer, rate)
            yield self._step(batch.images, self.model.unit(batch.labels))

    def _learn_batch(self, images: Tensor, units: Tensor) -> Tensor:
        """Cross-entropy among the task's classes, less the nearness of the chosen keys (eq. 5)."""
        logits, near = self.net.look(images)
        loss = cross_entropy(confine(logits, self.now), units) - self.settings.pull * near
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        if self.settings.clip is not None:
            clip_grad_norm_(self.net.parameters(), self.settings.clip)
        self.optimizer.step()
        return loss

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class with the largest logit."""
        return self.model.predict(images, among)

    def state(self) -> dict[str, Any]:
        """What is trained, classes met, the optimiser's where used; of frozen weights a digest only."""
        kept = [] if self.settings.fresh else fast.moments(self.optimizer)
        return {**self.model.state(), "optimizer": kept, "frozen": self.digest}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state, on the same frozen weights."""
        if state["frozen"] != self.digest:
            raise ValueError(
                f"this state was learned on other frozen weights (digest {state['frozen'][:12]}) than "
                f"{self.settings.weights} (digest {self.digest[:12]}); give the same weights"
            )
        self.model.load_state(state)
        fast.load_moments(self.optimizer, state["optimizer"])


def confine(logits: Tensor, classes: Tensor) -> Tensor:
    """Leave the logits of some classes (a mask) and make all others impossible."""
    return logits.masked_fill(~classes, -torch.inf)


def _check_side(side: int, net: ViT) -> int:
    if side % net.config.patch:
        raise ValueError(
            f"side must be a multiple of the patches' {net.config.patch} pixels, found {side}"
        )
    return side
