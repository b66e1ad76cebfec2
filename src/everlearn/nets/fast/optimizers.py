"""Optimisers whose state is there from the start, so that a captured step finds it in one place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer


def adam(weights: Iterable[Tensor], rate: float, decay: float = 0.0) -> Adam:
    """Adam with all its state there from the start, fused into few kernels on a GPU.

    Args:
        decay: what a weight loses a step, times the rate, beside its slope (Loshchilov and Hutter 2019).
    """
    several = list(weights)
    on_gpu = several[0].is_cuda
    speed: Any = torch.tensor(rate, device=several[0].device) if on_gpu else rate
    optimizer = Adam(
        several,
        lr=speed,
        weight_decay=decay,
        decoupled_weight_decay=decay > 0,
        fused=True,
        capturable=on_gpu,
    )
    for weight in several:
        optimizer.state[weight] = {
            "step": torch.zeros((), device=weight.device),
            "exp_avg": torch.zeros_like(weight),
            "exp_avg_sq": torch.zeros_like(weight),
        }
    return optimizer


def sgd(weights: Iterable[Tensor], rate: float, momentum: float, decay: float = 0.0) -> SGD:
    """Gradient descent with momentum, its state there from the start, fused on a GPU.

    Args:
        decay: so much of a weight is added to its slope.
    """
    several = list(weights)
    on_gpu = several[0].is_cuda
    speed: Any = torch.tensor(rate, device=several[0].device) if on_gpu else rate
    optimizer = SGD(several, lr=speed, momentum=momentum, weight_decay=decay, fused=on_gpu)
    for weight in several if momentum else ():
        optimizer.state[weight] = {"momentum_buffer": torch.zeros_like(weight)}
    return optimizer


def moments(optimizer: Optimizer) -> list[Tensor]:
    """Every tensor an optimiser keeps, in a fixed order."""
    return [value for state in optimizer.state.values() for value in state.values()]


def forget(optimizer: Optimizer) -> None:
    """Start an optimiser afresh, in the memory it has."""
    kept = moments(optimizer)
    if kept:  # gradient descent without momentum keeps nothing
        torch._foreach_zero_(kept)


def load_moments(optimizer: Optimizer, kept: Sequence[Tensor]) -> None:
    """Put back what an optimiser kept; nothing kept means a fresh start."""
    if kept:
        torch._foreach_copy_(moments(optimizer), list(kept))
    else:
        forget(optimizer)


def set_rate(optimizer: Optimizer, rate: float) -> None:
    """Set the learning rate, without waiting for a GPU."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def changed(net: nn.Module, optimizer: Optimizer) -> list[Tensor]:
    """Every tensor that a training step of a net changes."""
    return [*net.state_dict().values(), *moments(optimizer)]


def descend(optimizer: Optimizer, loss: Tensor) -> Tensor:
    """Go one step down a loss, and return it."""
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return loss
