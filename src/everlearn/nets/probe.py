"""Probes: small nets that read classes and places out of codes, those of several data sets at once.

A probe has two layers and learns by Adam. One product does a layer of all probes, and on a GPU one captured
graph does a step of all; nothing is read back while they learn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from everlearn.nets import fast
from everlearn.nets.seeded import chance
from everlearn.philox import Purpose, permutation

HIDDEN = 256
RATE = 1e-3
BATCH = 50
EPOCHS = 5
_CLASSES, _PLACES = 0, 1  # lanes of first weights


class Layers(NamedTuple):
    """The weights of one net of two layers, as products take them."""

    first: Tensor
    first_bias: Tensor
    second: Tensor
    second_bias: Tensor


def draw_layers(inputs: int, outputs: int, rng: torch.Generator) -> Layers:
    """Draw weights as torch's linear layers do: uniform, within 1 / sqrt(inputs of the layer)."""

    def draw(fan_in: int, *shape: int) -> Tensor:
        return (2 * torch.rand(shape, generator=rng) - 1) / math.sqrt(fan_in)

    return Layers(
        draw(inputs, inputs, HIDDEN),
        draw(inputs, HIDDEN),
        draw(HIDDEN, HIDDEN, outputs),
        draw(HIDDEN, outputs),
    )


class Ensemble(nn.Module):
    """Nets of two layers side by side; where one has fewer outputs than others, the rest say -inf."""

    def __init__(self, nets: Sequence[Layers]) -> None:
        """Take the weights of all."""
        super().__init__()
        most = max(len(net.second_bias) for net in nets)
        first, first_bias, second, second_bias = zip(*nets, strict=True)
        self.first = nn.Parameter(torch.stack(first))
        self.first_bias = nn.Parameter(torch.stack(first_bias)[:, None])
        self.second = nn.Parameter(torch.stack([_widen(one, most, 0.0) for one in second]))
        # What says -inf has no slope: it stays there.
        biases = [_widen(one, most, -math.inf) for one in second_bias]
        self.second_bias = nn.Parameter(torch.stack(biases)[:, None])

    def forward(self, codes: Tensor, nets: slice = slice(None)) -> Tensor:
        """Answer (E, B, outputs) to codes (E, B, N): those of net e are codes[e]."""
        hidden = torch.baddbmm(self.first_bias[nets], codes, self.first[nets]).relu()
        return torch.baddbmm(self.second_bias[nets], hidden, self.second[nets])


def _widen(weights: Tensor, outputs: int, value: float) -> Tensor:
    return nn.functional.pad(weights, (0, outputs - weights.shape[-1]), value=value)


def _draw_nets(inputs: int, outputs: dict[int, int], seed: int, lane: int) -> Ensemble:
    """Nets with so many outputs each; one's first weights depend on its number, not on the others."""
    rngs = [chance(seed, Purpose.PROBES, key, "cpu", lane) for key in outputs]
    each = zip(outputs.values(), rngs, strict=True)
    return Ensemble([draw_layers(inputs, width, rng) for width, rng in each])


class Probes:
    """For each of some data sets a net that names the class of a code, and one that tells its place."""

    def __init__(
        self, classes: dict[int, int], inputs: int, items: int, seed: int, device: str
    ) -> None:
        """Draw first weights, and the order of learning.

        Args:
            classes: how many classes each data set has, by a number that its weights follow from.
            inputs: numbers of a code.
            items: codes of each data set to learn from.
        """
        self._named = _draw_nets(inputs, classes, seed, _CLASSES).to(device)
        self._placed = _draw_nets(inputs, dict.fromkeys(classes, 2), seed, _PLACES).to(device)
        self._weights: list[Tensor] = [*self._named.parameters(), *self._placed.parameters()]
        self._at_first = [weight.detach().clone() for weight in self._weights]
        self._optimizer = fast.adam(self._weights, RATE)
        self._lessons = _shuffle(items, seed).to(device)
        shape = (len(classes), items)
        self._codes = torch.empty((*shape, inputs), device=device)
        self._labels = torch.empty(shape, dtype=torch.int64, device=device)
        self._places = torch.empty((*shape, 2), device=device)
        self._step = fast.Step(self._work, [*self._weights, *fast.moments(self._optimizer)])

    def learn(self, codes: Tensor, labels: Tensor, places: Tensor) -> None:
        """Learn from the beginning.

        Args:
            codes: of each data set, (E, items, N).
            labels: from 0 to the number of its classes, (E, items).
            places: (E, items, 2).
        """
        with torch.no_grad():
            torch._foreach_copy_(self._weights, self._at_first)
        fast.forget(self._optimizer)
        self._codes.copy_(codes)
        self._labels.copy_(labels)
        self._places.copy_(places)
        for rows in self._lessons:
            self._step(rows)

    def _work(self, rows: Tensor) -> Tensor:
        """One step of all: what one learns depends on no other, as losses are added up."""
        codes, size = self._codes[:, rows], len(rows)
        logits, named = self._named(codes).flatten(0, 1), self._labels[:, rows].flatten()
        loss = cross_entropy(logits, named, reduction="sum") / size
        error = mse_loss(self._placed(codes), self._places[:, rows], reduction="sum") / (2 * size)
        return fast.descend(self._optimizer, loss + error)

    @torch.no_grad()
    def answer(self, number: int, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Classes (B,) and places (B, 2) of codes (B, N) of one of the data sets, counted from 0."""
        one = slice(number, number + 1)
        labels: Tensor = self._named(codes[None], one)[0].argmax(1)
        return labels, self._placed(codes[None], one)[0]


def _shuffle(items: int, seed: int) -> Tensor:
    """The rows of every step, (steps, B), shuffled anew each epoch; what fills no batch is left out."""
    size = min(BATCH, items)
    orders = [permutation(seed, Purpose.PROBES, 0, items, lane=n) for n in range(EPOCHS)]
    full = [order[: items - items % size].reshape(-1, size) for order in orders]
    return torch.from_numpy(np.concatenate(full))
