"""AR1 and generative negative replay: a split net, a CWR head, and replay of latents between the halves.

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

from everlearn.core.random import Purpose
from everlearn.memory import draw_replay_rows
from everlearn.methods.ar1.backbone import build_backbone
from everlearn.methods.ar1.generator import iterate_rows
from everlearn.methods.ar1.patterns import Ints
from everlearn.methods.ar1.replay import Replay
from everlearn.methods.ar1.settings import Settings
from everlearn.methods.ar1.training_steps import TrainingSteps
from everlearn.nets.classifier import Classifier
from everlearn.nets.cwr_head import CWRHead
from everlearn.nets.layers.renorm import end_renorm_warmup
from everlearn.nets.precision import eval_mode, forward_pass
from everlearn.nets.seeded import seeded_generator
from everlearn.stream import Task, TaskStream
from everlearn.training.captured_step import CapturedStep
from everlearn.training.optimizer_step import load_optimizer_state, optimizer_state
from everlearn.training.stream_checks import finite_class_ids

_CHUNK = 1024


class AR1:
    """A split net with a CWR head.

    The lower half is trained in the first experience, unless its weights come from a file, and frozen from
    then on. Its latents are stored, generated and replayed.

    Attributes:
        top: the upper half and the head.
        known: targets of the classes seen so far.
        norms: mean norm of the head's rows of new and of old classes, (2,).
        recognised: fraction of replayed patterns that the head classifies as labelled, ().
    """

    def __init__(self, stream: TaskStream, settings: Settings, device: str) -> None:
        """Start with random or pre-trained weights, and no class."""
        classes = finite_class_ids(stream)
        settings.check_epochs(stream)
        self.settings = settings
        self.device = device
        self.seed = stream.seed
        self.batch_size = settings.batch_size
        self.experiences = 0
        self.known = set[int]()
        net = build_backbone(settings, stream)
        self.head = CWRHead(net.width, len(classes), settings.head, settings.mean_shift)
        self.lower = net.lower
        self.top = nn.Sequential(net.upper, self.head)
        self.model = Classifier(nn.Sequential(self.lower, self.top), classes, device)
        has_weights = any(True for _ in self.lower.parameters())
        self.is_frozen = bool(settings.weights) or not has_weights
        self.replay = Replay(
            settings, net.latent_shape, len(classes), self._classify, self.seed, device
        )
        trained = net.upper if self.is_frozen else net
        self.steps = TrainingSteps(
            self.model.net, self.top, self.head, trained, self.replay.patterns, settings
        )
        self.norms = torch.zeros(2, device=device)
        self.recognised = torch.zeros((), device=device)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Learn an experience with replay, consolidate the head, then train the generator."""
        if not len(task.train):
            return
        present, counts = self._begin_experience(task)
        trains_all = not self.is_frozen and self.experiences == 0
        inputs, targets = self._collect(task, images=trains_all)
        is_upper_frozen = (
            self.experiences > 0 and not self.settings.learning_rates.later_learning_rate
        )
        step = self.steps.on_images if trains_all else self.steps.on_latents[is_upper_frozen]
        yield from self._train(task, inputs, targets, step)
        self._end_experience(task, present, counts)
        if trains_all and self.settings.replay_data:
            inputs, targets = self._collect(task)
        if self.replay.generator:
            self.model.net.eval()
            yield from self.replay.generator.learn(task, inputs, targets)
        if self.settings.replay_data:
            labels = self._host_targets(task)
            self.replay.remember(task.index, inputs, labels, self.experiences == 0)
        self.experiences += 1

    def _begin_experience(self, task: Task) -> tuple[Tensor, Tensor]:
        """Prepare replay, head and optimizers; return the classes present and their pattern counts."""
        if self.experiences > 0:
            self.replay.refill(task.index, sorted(self.known))
        self._measure_recognition()
        new = self._count(self._host_targets(task))
        old = self._count(self.replay.patterns.labels)
        present = (new + old) > 0
        self.steps.current.copy_(new > 0)
        candidates = present if self.settings.head != "plain" else present | self.head.known
        self.steps.in_softmax.copy_(candidates | self.settings.include_unseen)
        generator = seeded_generator(
            self.seed, Purpose.REPLAY, task.index, self.device, substream=2
        )
        self.head.begin_experience(present, generator)
        self.steps.begin_experience(self.experiences)
        self.model.net.train()
        return present, new if self.settings.is_negative else new + old

    def _measure_recognition(self) -> None:
        """Measure the fraction of replayed patterns that the consolidated head classifies as labelled."""
        filled = slice(0, self.replay.patterns.filled)
        with eval_mode(self.top):
            logits = forward_pass(self.top, self.replay.patterns.latents[filled])
            predicted = self.model.targets(self.model.classify(logits))
        correct = predicted == self.replay.patterns.targets[filled]
        self.recognised.copy_(correct.float().mean())

    def _collect(self, task: Task, images: bool = False) -> tuple[Tensor, Tensor]:
        """Return all latents of a task, or all images, in the order of its rows; and their targets."""
        inputs = []
        targets = []
        for batch in task.train.batches(_CHUNK, self.device):
            inputs.append(batch.images if images else self.latents(batch.images))
            targets.append(self.model.targets(batch.labels))
        return torch.cat(inputs), torch.cat(targets)

    def latents(self, images: Tensor) -> Tensor:
        """Return the output of the lower half, by its running statistics."""
        with eval_mode(self.lower):
            return forward_pass(self.lower, images)

    def _train(
        self, task: Task, inputs: Tensor, targets: Tensor, step: CapturedStep
    ) -> Iterator[Tensor]:
        """Take the steps of an experience, each on new and replayed patterns."""
        new, old = self.settings.split_batch(len(targets), self.replay.patterns.filled)
        epochs = self.settings.epochs_of(self.experiences)
        self.batch_size = new + old
        steps = epochs * (len(targets) // new)
        rows = draw_replay_rows(self.seed, task.index, self.replay.patterns.filled, steps, old)
        replayed = torch.from_numpy(rows).to(self.device)
        for number, chosen in enumerate(iterate_rows(task, epochs, new, self.device)):
            replayed_rows = replayed[number : number + 1] if old else ()
            yield step(inputs[chosen], targets[chosen], *replayed_rows)

    def _end_experience(self, task: Task, present: Tensor, counts: Tensor) -> None:
        """Consolidate the head's rows and the importances of weights; note the classes seen."""
        self.head.end_experience(present, counts)
        # A task may name classes of which it has no image.
        new = np.unique(self._host_targets(task)).tolist()
        self.model.add_classes([target + self.model.classes.start for target in new])
        self.known |= set(new)
        self.norms[0] = self.head.mean_norm(self.steps.current)
        self.norms[1] = self.head.mean_norm(~self.steps.current)
        if self.steps.si:
            self.steps.si.end_experience()
        if self.experiences == 0:
            end_renorm_warmup(self.top)

    def _host_targets(self, task: Task) -> Ints:
        """Return the targets of a task's rows on the host."""
        return task.train.labels - self.model.classes.start

    def _classify(self, latents: Tensor) -> Tensor:
        """Return the logits of latents by the consolidated head, -inf for classes outside the softmax.

        They are differentiable.
        """
        in_softmax = self.model.seen | self.settings.include_unseen
        return forward_pass(self.top, latents).masked_fill(~in_softmax, -torch.inf)

    def _count(self, targets: Ints) -> Tensor:
        """Return how often each target occurs, (classes,)."""
        counts = np.bincount(targets, minlength=len(self.model.classes)).astype(np.float32)
        return torch.from_numpy(counts).to(self.device)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the class with the largest logit of the consolidated head."""
        return self.model.predict(images, among)

    def diagnostics(self) -> dict[str, Tensor]:
        """Return mean norms of the head's new and old rows, and the fraction of replay recognised.

        The fraction is NaN where nothing is replayed.
        """
        return {
            "new_norm": self.norms[0],
            "old_norm": self.norms[1],
            "recognised": self.recognised,
        }

    def state(self) -> dict[str, Any]:
        """Return the net with its head, the replay, the importances and, unless reset, the momentum."""
        kept = [] if self.settings.reset_optimizer else self.steps.optimizers
        return {
            **self.model.state(),
            **self.replay.state(),
            "importance": self.steps.si.total if self.steps.si else [],
            "optimizers": [optimizer_state(optimizer) for optimizer in kept],
            "experiences": self.experiences,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.model.load_state(state)
        self.replay.load_state(state)
        self.experiences = state["experiences"]
        self.known = set(self.model.seen.nonzero()[:, 0].tolist())
        kept = state["optimizers"] or [[], []]
        for optimizer, optimizer_kept in zip(self.steps.optimizers, kept, strict=True):
            load_optimizer_state(optimizer, optimizer_kept)
        if self.steps.si:
            self.steps.si.load(state["importance"])
