"""Fine-tuning: cross-entropy on the current task and nothing against forgetting, the lower bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from everlearn.learner import Pace, all_classes, check_passes, lessons
from everlearn.nets import build_net, fast
from everlearn.nets.classifier import Classifier
from everlearn.settings import setting
from everlearn.stream import Stream, Task


@dataclass(frozen=True)
class Settings:
    """What fine-tuning can be told; Adam 1e-3, batches of 256 and 5 epochs are the DCL paper's."""

    pace: Pace = Pace()
    net: str = setting("resnet18", "which net tells the class")
    unmet: bool = setting(True, "keep classes not met yet in the softmax, as the DCL paper's code")
    fresh: bool = setting(False, "start the optimiser afresh with every task")


class FineTuning:
    """One net, one head over all classes of the stream."""

    def __init__(self, stream: Stream, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed."""
        check_passes(stream, settings.pace)
        classes, canvas = all_classes(stream), stream.canvas
        self.settings, self.device = settings, device
        self.batch_size = settings.pace.batch_size
        net = build_net(settings.net, canvas.channels, len(classes), canvas.size, stream.seed)
        self.model = Classifier(net, classes, device)
        self.optimizer = fast.adam(net.parameters(), settings.pace.rate)
        changed = [*net.state_dict().values(), *fast.moments(self.optimizer)]
        self._step = fast.Step(self._learn_batch, changed)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Go through the task."""
        self.model.meet(task.classes)
        self.batch_size = min(self.settings.pace.batch_size, len(task.train))
        if self.settings.fresh:
            fast.forget(self.optimizer)
        self.model.net.train()
        for batch, _, rate in lessons(task, self.settings.pace, self.device):
            fast.set_rate(self.optimizer, rate)
            yield self._step(batch.images, self.model.unit(batch.labels))

    def _learn_batch(self, images: Tensor, units: Tensor) -> Tensor:
        return fast.descend(self.optimizer, self.model.loss(images, units, self.settings.unmet))

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class with the largest logit."""
        return self.model.predict(images, among)

    def state(self) -> dict[str, Any]:
        """Weights, classes met and, where it is used, what the optimiser keeps."""
        kept = [] if self.settings.fresh else fast.moments(self.optimizer)
        return {**self.model.state(), "optimizer": kept}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.model.load_state(state)
        fast.load_moments(self.optimizer, state["optimizer"])
