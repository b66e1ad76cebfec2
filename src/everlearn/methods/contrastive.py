"""The contrastive baseline of the DCL paper (Dziadzio et al. 2023, arXiv 2312.16731, appendix A.4).

A net learns a direction for every image, near to its class's exemplar and away from other classes; the
nearest of all exemplars names the class. What differs is in docs/methods/contrastive.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from everlearn.border import check_number, check_whole
from everlearn.learner import Pace, check_passes, count_steps, lessons
from everlearn.memory import Exemplars, Found, Points, draw_rows
from everlearn.memory.search import full_precision
from everlearn.nets import fast
from everlearn.nets.contrast import closest, contrast
from everlearn.nets.projector import build_projected, embed, to_float
from everlearn.nets.watch import Watch
from everlearn.settings import setting
from everlearn.stream import Task

# Similarities that are held together: 512 MiB.
_NUMBERS = 2**27


@dataclass(frozen=True)
class Settings:
    """What the contrastive baseline can be told; the paper states none of it."""

    pace: Pace = Pace(epochs=20, final_rate=1e-5)
    net: str = setting("resnet18", "which net, less its last layer, sees the images")
    temperature: float = setting(0.5, "of similarities (the paper's code: 0.5)")
    patience: int = setting(
        3, "epochs without a lower validation loss until a task ends; 0: all epochs"
    )
    old: int = setting(0, "exemplars of earlier classes a step, to keep away from")

    def __post_init__(self) -> None:
        """Check every setting."""
        check_number(self.temperature, "temperature", 1e-3, 1e3)
        check_whole(self.patience, "patience", 0, 10**6)
        check_whole(self.old, "old", 0, 10**6)


class Known(NamedTuple):
    """A memory as the net saw it.

    Attributes:
        pictures: (N, C, H, W) in the order of labels.
        vectors: (N, D) of length 1.
    """

    labels: list[int]
    pictures: Tensor
    vectors: Tensor


class Company(NamedTuple):
    """What goes through the net beside the images of a step.

    Attributes:
        exemplars: (C, channels, H, W) of the task, of the classes `classes` (C,).
        pool: exemplars of earlier classes, as they are stored.
        rows: (steps, old) which of them a step sees; nothing where it sees none.
    """

    exemplars: Tensor
    classes: Tensor
    pool: Tensor
    rows: Tensor

    def at(self, step: int) -> list[Tensor]:
        """Exemplars, their classes and, where there are any, old exemplars."""
        old = [to_float(self.pool[several]) for several in self.rows[step : step + 1]]
        return [self.exemplars, self.classes, *old]


class Contrastive:
    """A backbone with a projector, and exemplars."""

    def __init__(self, stream: Any, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed, and an empty memory."""
        check_passes(stream, settings.pace)
        canvas = stream.canvas
        self.settings, self.device = settings, device
        self.batch_size = settings.pace.batch_size
        net = build_projected(settings.net, canvas.channels, canvas.size, stream.seed)
        self.net = fast.place(net, device)
        kind = Exemplars if canvas.bits == 8 else Points
        self.memory: Exemplars | Points = kind(canvas.shape, device)
        self.optimizer = fast.adam(self.net.parameters(), settings.pace.rate)
        changed = fast.changed(self.net, self.optimizer)
        self._step = fast.Step(self._learn_batch, changed)
        self._known: Known | None = None

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Remember the exemplars of new classes, then learn until it no longer helps."""
        pace = self.settings.pace
        self.batch_size = min(pace.batch_size, len(task.train))
        company = self._gather(task)
        fast.forget(self.optimizer)
        watch = Watch(self.net, self.settings.patience)
        epoch = count_steps(task, pace) // pace.epochs
        self.net.train()
        for batch, step, rate in lessons(task, pace, self.device):
            fast.set_rate(self.optimizer, rate)
            loss = self._step(batch.images, batch.labels, *company.at(step))
            self._known = None
            yield loss
            if (step + 1) % epoch == 0 and self._has_learned(task, company, watch):
                break
        watch.restore()
        self._known = None

    def _gather(self, task: Task) -> Company:
        """Remember new exemplars; take those of the task as they are remembered, and some old ones."""
        shown, known = task.exemplars(self.device), set(self.memory.labels)
        new = [place for place, label in enumerate(task.classes) if label not in known]
        self.memory.add([task.classes[place] for place in new], shown.images[new])
        exemplars = to_float(self.memory.images(list(task.classes)))
        old = sorted(known - set(task.classes)) if self.settings.old else []
        return Company(exemplars, shown.labels, self.memory.images(old), self._draw(task, len(old)))

    def _draw(self, task: Task, count: int) -> Tensor:
        """Which of so many old exemplars each step sees, (steps, old); nothing where there is none."""
        steps = count_steps(task, self.settings.pace)
        rows = draw_rows(task.seed, task.index, count, steps, self.settings.old)
        return torch.from_numpy(rows).to(self.device)

    def _learn_batch(self, images: Tensor, labels: Tensor, *company: Tensor) -> Tensor:
        """One step; images and exemplars go through the net together."""
        exemplars, classes, *old = company
        parts = (images, exemplars, *old)
        vectors = fast.forward(self.net, torch.cat(parts))
        z, e, *further = torch.split(vectors, [len(part) for part in parts])
        loss = contrast(z, labels, e, classes, self.settings.temperature, *further)
        return fast.descend(self.optimizer, loss)

    def _has_learned(self, task: Task, company: Company, watch: Watch) -> bool:
        """Whether the validation loss has stopped falling; never where there is none."""
        if not (self.settings.patience and len(task.val)):
            return False
        return watch.is_over(float(self._validate(task, *company.at(0))))

    def _validate(self, task: Task, exemplars: Tensor, classes: Tensor, *old: Tensor) -> Tensor:
        """The mean loss of the validation images, in parts that are spread over all classes."""
        count, size = len(task.val), self.settings.pace.batch_size
        e, *further = (embed(self.net, part) for part in (exemplars, *old))
        total = torch.zeros((), device=self.device)
        for part in range(-(-count // size)):
            batch = task.val.batch(slice(part, None, -(-count // size)), self.device)
            z = embed(self.net, batch.images)
            loss = contrast(z, batch.labels, e, classes, self.settings.temperature, *further)
            total += loss * len(batch.labels)
        return total / count

    def match(self, images: Tensor, memory: Any, k: int = 2) -> Found:
        """Find the nearest exemplars of any memory; distances are 1 - cosine."""
        return self._search(images, self._see(memory), k)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class of the nearest exemplar, of all or of those asked about; -1 for none."""
        return self._search(images, self._see(self.memory), 1, among).labels[:, 0]

    def score(self, images: Tensor) -> Tensor:
        """d1 / d2 of the two nearest exemplars: near 1 for an image of no known class."""
        return self.match(images, self.memory).novelty

    def _see(self, memory: Any) -> Known:
        """The vectors of a memory, made anew when the net or a picture has changed.

        A memory can be edited by anyone at any time, so its pictures are compared with those seen.
        """
        labels, pictures, known = memory.labels, memory.images(), self._known
        if known is None or known.labels != labels or not torch.equal(known.pictures, pictures):
            self._known = known = Known(labels, pictures, embed(self.net, pictures))
        return known

    def _search(
        self, images: Tensor, known: Known, k: int, among: Sequence[int] | None = None
    ) -> Found:
        """The k largest cosines, some images at a time."""
        ids = torch.tensor(known.labels, dtype=torch.int64, device=self.device)
        shut = torch.zeros_like(ids, dtype=torch.bool)
        if among is not None:
            shut = ~torch.isin(ids, ids.new_tensor(list(among)))
        vectors = embed(self.net, images)
        groups = torch.split(vectors, max(1, _NUMBERS // max(1, len(ids))))
        with full_precision(vectors.device):
            found = [closest(group, known.vectors, ids, shut, k) for group in groups]
        return Found(*(torch.cat(parts) for parts in zip(*found, strict=True)))

    def state(self) -> dict[str, Any]:
        """Weights and exemplars; the optimiser starts afresh with every task."""
        return {"net": dict(self.net.state_dict()), "memory": self.memory.state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.net.load_state_dict(state["net"])
        self.memory.load_state(state["memory"])
        self._known = None
