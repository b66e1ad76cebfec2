"""SGD with its state allocated from the start, and the optimisers that training steps take."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim import SGD

from everlearn.training.adam import Adam, place_learning_rate

Optimizer = Adam | SGD


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
        lr=place_learning_rate(params, learning_rate),
        momentum=momentum,
        weight_decay=weight_decay,
        fused=params[0].is_cuda,
    )
    for param in params if momentum else ():
        optimizer.state[param] = {"momentum_buffer": torch.zeros_like(param)}
    return optimizer
