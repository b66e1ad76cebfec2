"""A moving average of a net's weights after each task, to predict with."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch import nn


class WeightAverage:
    """A net that follows another one, task by task.

    Attributes:
        net: the averaged net; the followed net itself for a decay of 0.
        tasks: the number of updates so far.

    Args:
        max_decay: weight of the average before a task; early ones have less. 0: no average.
    """

    def __init__(self, net: nn.Module, max_decay: float) -> None:
        """Start with the weights of the net."""
        self._followed = net
        self._max_decay = max_decay
        self.net = deepcopy(net).requires_grad_(False) if max_decay else net
        self.tasks = 0

    def update(self) -> None:
        """Move the averaged net towards the trained one, by less the more tasks there were.

        Early nets are poor: the average is over about the last sixth of all tasks (polynomial decay,
        Shamir and Zhang 2013), until `max_decay` bounds it.
        """
        self.tasks += 1
        if self._max_decay:
            step_size = max(1.0 - self._max_decay, 6.0 / (self.tasks + 5.0))
            averaged = list(self.net.state_dict().values())
            torch._foreach_lerp_(averaged, list(self._followed.state_dict().values()), step_size)

    def state(self) -> dict[str, Any]:
        """Return the averaged weights, if there are any, and the number of tasks."""
        averaged = self.net.state_dict() if self._max_decay else {}
        return {"averaged_net": averaged, "tasks": self.tasks}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore a state; other entries are left alone."""
        if self._max_decay:
            self.net.load_state_dict(state["averaged_net"])
        self.tasks = state["tasks"]
