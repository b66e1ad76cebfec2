"""Optimisers with their state allocated from the start, so that a captured step finds it in one place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import SGD, Adam


def adam(
    weights: Iterable[Tensor],
    learning_rate: float,
    weight_decay: float = 0.0,
    fused_on_cpu: bool = True,
) -> Adam:
    """Return Adam with its state allocated, fused into few kernels on a GPU.

    Args:
        fused_on_cpu: also on a CPU, where torch's fused kernel rounds the last few weights of a tensor
            differently. False for tensors whose size is the number of classes of a stream: there, weights
            of a class must not depend on whether others follow.
        weight_decay: decoupled from the gradient, as in AdamW (Loshchilov and Hutter 2019).
    """
    params = list(weights)
    fused = fused_on_cpu or params[0].is_cuda
    optimizer = Adam(
        params,
        lr=_learning_rate(params, learning_rate),
        weight_decay=weight_decay,
        decoupled_weight_decay=weight_decay > 0,
        fused=fused,
        foreach=not fused,
        capturable=params[0].is_cuda,
    )
    for param in params:
        optimizer.state[param] = {
            "step": torch.zeros((), device=param.device),
            "exp_avg": torch.zeros_like(param),
            "exp_avg_sq": torch.zeros_like(param),
        }
    return optimizer


def sgd(
    weights: Iterable[Tensor], learning_rate: float, momentum: float, weight_decay: float = 0.0
) -> SGD:
    """Return SGD with its state allocated, fused on a GPU.

    Args:
        weight_decay: this fraction of a weight is added to its gradient.
    """
    params = list(weights)
    optimizer = SGD(
        params,
        lr=_learning_rate(params, learning_rate),
        momentum=momentum,
        weight_decay=weight_decay,
        fused=params[0].is_cuda,
    )
    for param in params if momentum else ():
        optimizer.state[param] = {"momentum_buffer": torch.zeros_like(param)}
    return optimizer


def _learning_rate(params: Sequence[Tensor], value: float) -> Any:
    """A tensor on a GPU: a captured graph would keep the value of a float forever."""
    return torch.tensor(value, device=params[0].device) if params[0].is_cuda else value
