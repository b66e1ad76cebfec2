"""TrainSettings: how a classifier is trained, the same for all methods that train one net."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from everlearn.core.settings import setting
from everlearn.core.validate import check_number
from everlearn.training.adam import Adam
from everlearn.training.optimizers import Optimizer, sgd
from everlearn.training.schedule import Schedule

OPTIMIZERS = ("adam", "sgd")


@dataclass(frozen=True)
class TrainSettings:
    """How a classifier is trained.

    Adam 1e-3, batches of 256 and 5 epochs are the DCL paper's; why the rest differs from the paper's
    code is in docs/decisions/0012-learning-every-task.md.
    """

    schedule: Schedule = Schedule(final_learning_rate=1e-5)
    net: str = setting("resnet18", "net that classifies")
    optimizer: str = setting("adam", "adam or sgd")
    momentum: float = setting(0.9, "momentum of sgd")
    include_unseen: bool = setting(
        False, "keep unseen classes in the softmax, as the DCL paper's code"
    )
    reset_optimizer: bool = setting(
        False, "reset the optimiser's state at every task (DCL paper's code: no)"
    )

    def __post_init__(self) -> None:
        """Check the optimiser."""
        if self.optimizer not in OPTIMIZERS:
            known = ", ".join(OPTIMIZERS)
            raise ValueError(f"unknown optimizer {self.optimizer!r}; known: {known}")
        check_number(self.momentum, "momentum", 0, 1)

    def build_optimizer(self, weights: Sequence[Tensor]) -> Optimizer:
        """Return the optimiser of some weights, at the learning rate of a task's start."""
        learning_rate = self.schedule.learning_rate
        if self.optimizer == "adam":
            return Adam(weights, learning_rate, fused_on_cpu=False)
        return sgd(weights, learning_rate, self.momentum)
