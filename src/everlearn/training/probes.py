"""Probes: small nets that read classes and positions from codes, for several data sets at once.

A probe is an MLP of two layers, trained by Adam. One batched product computes a layer of all probes, and on
a GPU one captured graph is a step of all; nothing is read back while they learn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from everlearn.core.random import Purpose, permutation
from everlearn.nets.seeded import seeded_generator
from everlearn.training.adam import Adam
from everlearn.training.captured_step import CapturedStep
from everlearn.training.optimizer_step import optimizer_state, optimizer_step, reset_optimizer

HIDDEN = 256
LEARNING_RATE = 1e-3
BATCH_SIZE = 50
EPOCHS = 5
_CLASSES = 0  # random substreams of the initial weights
_POSITIONS = 1


class Weights(NamedTuple):
    """The weights of an MLP of two layers, (inputs, outputs) each."""

    first: Tensor
    first_bias: Tensor
    second: Tensor
    second_bias: Tensor


def draw_weights(inputs: int, outputs: int, generator: torch.Generator) -> Weights:
    """Draw weights as torch's linear layers do: uniform, within 1 / sqrt(inputs of the layer)."""

    def draw(fan_in: int, *shape: int) -> Tensor:
        return (2 * torch.rand(shape, generator=generator) - 1) / math.sqrt(fan_in)

    return Weights(
        draw(inputs, inputs, HIDDEN),
        draw(inputs, HIDDEN),
        draw(HIDDEN, HIDDEN, outputs),
        draw(HIDDEN, outputs),
    )


class Ensemble(nn.Module):
    """MLPs of two layers side by side; a net with fewer outputs is padded with outputs of -inf."""

    def __init__(self, nets: Sequence[Weights]) -> None:
        """Stack the weights of all nets."""
        super().__init__()
        outputs = max(len(net.second_bias) for net in nets)
        first, first_bias, second, second_bias = zip(*nets, strict=True)
        self.first = nn.Parameter(torch.stack(first))
        self.first_bias = nn.Parameter(torch.stack(first_bias)[:, None])
        self.second = nn.Parameter(torch.stack([_pad(net, outputs, 0.0) for net in second]))
        # An output of -inf has no gradient: it stays -inf.
        biases = [_pad(net, outputs, -math.inf) for net in second_bias]
        self.second_bias = nn.Parameter(torch.stack(biases)[:, None])

    def forward(self, codes: Tensor, nets: slice = slice(None)) -> Tensor:
        """(E, B, outputs) of codes (E, B, N): net e gets codes[e]."""
        hidden = torch.baddbmm(self.first_bias[nets], codes, self.first[nets]).relu()
        return torch.baddbmm(self.second_bias[nets], hidden, self.second[nets])


def _pad(weights: Tensor, outputs: int, value: float) -> Tensor:
    return nn.functional.pad(weights, (0, outputs - weights.shape[-1]), value=value)


def _draw_nets(inputs: int, outputs: dict[int, int], seed: int, substream: int) -> Ensemble:
    """Draw nets with these numbers of outputs; the weights of a net depend on its key alone."""
    generators = [seeded_generator(seed, Purpose.PROBES, key, "cpu", substream) for key in outputs]
    pairs = zip(outputs.values(), generators, strict=True)
    return Ensemble([draw_weights(inputs, width, generator) for width, generator in pairs])


class Probes:
    """For each data set a classifier of codes, and a regressor of positions."""

    def __init__(
        self, classes: dict[int, int], inputs: int, items: int, seed: int, device: str
    ) -> None:
        """Draw initial weights and the order of training.

        Args:
            classes: number of classes of each data set, by the key that its weights are drawn with.
            inputs: dimensions of a code.
            items: codes of each data set to learn from.
        """
        two = dict.fromkeys(classes, 2)
        self._classifiers = _draw_nets(inputs, classes, seed, _CLASSES).to(device)
        self._regressors = _draw_nets(inputs, two, seed, _POSITIONS).to(device)
        self._weights: list[Tensor] = [
            *self._classifiers.parameters(),
            *self._regressors.parameters(),
        ]
        self._initial = [weight.detach().clone() for weight in self._weights]
        self._optimizer = Adam(self._weights, LEARNING_RATE)
        self._batches = _shuffle(items, seed).to(device)
        shape = (len(classes), items)
        self._codes = torch.empty((*shape, inputs), device=device)
        self._labels = torch.empty(shape, dtype=torch.int64, device=device)
        self._positions = torch.empty((*shape, 2), device=device)
        state = [*self._weights, *optimizer_state(self._optimizer)]
        self._step = CapturedStep(self._train_step, state)

    def learn(self, codes: Tensor, labels: Tensor, positions: Tensor) -> None:
        """Train from the initial weights.

        Args:
            codes: of each data set, (E, items, N).
            labels: from 0 to the number of its classes, (E, items).
            positions: (E, items, 2).
        """
        with torch.no_grad():
            torch._foreach_copy_(self._weights, self._initial)
        reset_optimizer(self._optimizer)
        self._codes.copy_(codes)
        self._labels.copy_(labels)
        self._positions.copy_(positions)
        for rows in self._batches:
            self._step(rows)

    def _train_step(self, rows: Tensor) -> Tensor:
        """One step of all probes; their losses are added up, so that none depends on another."""
        codes = self._codes[:, rows]
        size = len(rows)
        logits = self._classifiers(codes).flatten(0, 1)
        loss = cross_entropy(logits, self._labels[:, rows].flatten(), reduction="sum") / size
        positions = self._regressors(codes)
        error = mse_loss(positions, self._positions[:, rows], reduction="sum") / (2 * size)
        return optimizer_step(self._optimizer, loss + error)

    @torch.no_grad()
    def predict(self, number: int, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Predict classes (B,) and positions (B, 2) of codes (B, N) of data set `number`, from 0."""
        nets = slice(number, number + 1)
        labels: Tensor = self._classifiers(codes[None], nets)[0].argmax(1)
        return labels, self._regressors(codes[None], nets)[0]


def _shuffle(items: int, seed: int) -> Tensor:
    """The rows of every step, (steps, B), shuffled each epoch; incomplete batches are dropped."""
    size = min(BATCH_SIZE, items)
    orders = [permutation(seed, Purpose.PROBES, 0, items, substream=n) for n in range(EPOCHS)]
    full = [order[: items - items % size].reshape(-1, size) for order in orders]
    return torch.from_numpy(np.concatenate(full))
