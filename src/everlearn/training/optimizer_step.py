"""One optimiser step, and the learning rate and state of an optimiser, changed in place."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from everlearn.training.optimizers import Optimizer


def optimizer_step(optimizer: Optimizer, loss: Tensor) -> Tensor:
    """Take one optimiser step on a loss, and return the loss."""
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return loss


def optimizer_state(optimizer: Optimizer) -> list[Tensor]:
    """Every state tensor of an optimiser, in a fixed order."""
    return [value for state in optimizer.state.values() for value in state.values()]


def reset_optimizer(optimizer: Optimizer) -> None:
    """Set the state of an optimiser to zero, in place."""
    state = optimizer_state(optimizer)
    if state:  # SGD without momentum has none
        torch._foreach_zero_(state)


def load_optimizer_state(optimizer: Optimizer, state: Sequence[Tensor]) -> None:
    """Restore the state of an optimiser; an empty one resets it."""
    if state:
        torch._foreach_copy_(optimizer_state(optimizer), list(state))
    else:
        reset_optimizer(optimizer)


def set_learning_rate(optimizer: Optimizer, learning_rate: float) -> None:
    """Set the learning rate, without waiting for a GPU."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(learning_rate)
        else:
            group["lr"] = learning_rate


def training_state(net: nn.Module, optimizer: Optimizer) -> list[Tensor]:
    """Every tensor that a training step of a net changes."""
    return [*net.state_dict().values(), *optimizer_state(optimizer)]
