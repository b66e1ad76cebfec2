"""The diagonal of a net's Fisher information: squares of each sample's own slopes, many samples at once.

F_k is the mean over images x of (d log p(y | x) / d w_k)^2, with y drawn from the net itself. The slope of
a batch is a sum over its samples, which cannot be squared one by one; but each sample's own follows from
what goes into a layer and from the slope of what comes out. Nothing loops over samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.linalg import vector_norm
from torch.nn.functional import cross_entropy, pad, softmax

from everlearn.nets import fast
from everlearn.nets.norm import EPS, Norm
from everlearn.philox import Purpose, permutation, uniform
from everlearn.stream import Batch, Task

_SAMPLES = 128  # that go through the net at once
_NUMBERS = {"cuda": 2**27, "cpu": 2**22}  # of slopes held at once: 0.5 GB, or what a cache likes

Choose = Callable[[Tensor, Tensor], Tensor]
Way = Callable[[Any, "Seen", Tensor], Iterator[Tensor]]


class Seen(NamedTuple):
    """What went into a layer and came out."""

    x: Tensor
    out: Tensor


def draw(task: Task, samples: int, device: str) -> tuple[Batch, Tensor]:
    """Some training images of a task, each once, and a number from [0, 1) for each."""
    rows = permutation(task.seed, Purpose.FISHER, task.index, len(task.train))[:samples]
    chance = uniform(task.seed, Purpose.FISHER, task.index, rows)[:, 0]
    return task.train.batch(rows, device), torch.from_numpy(chance).to(device)


def diagonal(
    net: nn.Module, images: Tensor, chance: Tensor, among: Tensor | None = None
) -> list[Tensor]:
    """The true Fisher information: labels are drawn from the net. One tensor for each weight.

    Args:
        chance: (B,) numbers from [0, 1), one for each label to draw.
        among: (outputs,) which outputs the softmax is over; usually all.
    """
    return _mean_squares(net, images, chance, among, sample)


def empirical(
    net: nn.Module, images: Tensor, units: Tensor, among: Tensor | None = None
) -> list[Tensor]:
    """The empirical Fisher information: labels (B,) are given."""
    return _mean_squares(net, images, units, among, lambda _, units: units)


def sample(logits: Tensor, chance: Tensor) -> Tensor:
    """Draw an output for each row, (B,), by its probability."""
    edges = softmax(logits.double(), 1).cumsum(1)
    units = torch.searchsorted(edges, chance[:, None] * edges[:, -1:], right=True)[:, 0]
    # Logits that are no numbers lead beyond the last output, and an index out of range stops a GPU.
    return units.clamp(max=logits.shape[1] - 1)


def _mean_squares(
    net: nn.Module, images: Tensor, answers: Tensor, among: Tensor | None, choose: Choose
) -> list[Tensor]:
    sums: dict[Tensor, Tensor] = {weight: torch.zeros_like(weight) for weight in net.parameters()}
    parts = zip(torch.split(images, _SAMPLES), torch.split(answers, _SAMPLES), strict=True)
    with fast.evaluating(net), torch.enable_grad(), fast.steady():
        for some, answer in parts:
            for weight, squares in _squares(net, some, answer, among, choose):
                sums[weight] += squares
    return [total / len(images) for total in sums.values()]


def _squares(
    net: nn.Module, images: Tensor, answers: Tensor, among: Tensor | None, choose: Choose
) -> Iterator[tuple[Tensor, Tensor]]:
    """Each weight with its squared slopes, summed over samples."""
    ways = {layer: _way(layer) for layer in net.modules() if [*layer.parameters(recurse=False)]}
    with _watching(list(ways)) as seen:
        logits = fast.forward(net, images)
    logits = logits if among is None else logits.masked_fill(~among, -torch.inf)
    loss = cross_entropy(logits, choose(logits.detach(), answers), reduction="sum")
    slopes = torch.autograd.grad(loss, [one.out for one in seen.values()])
    for (layer, one), slope in zip(seen.items(), slopes, strict=True):
        own = layer.parameters(recurse=False)
        yield from zip(own, ways[layer](layer, one, slope), strict=True)


@contextmanager
def _watching(layers: list[nn.Module]) -> Iterator[dict[nn.Module, Seen]]:
    """Note what layers see inside."""
    seen: dict[nn.Module, Seen] = {}

    def note(layer: nn.Module, inputs: tuple[Tensor, ...], out: Tensor) -> None:
        if layer in seen:
            raise ValueError(f"a layer must be used once a pass, found {layer} used again")
        seen[layer] = Seen(inputs[0].detach(), out)

    hooks = [layer.register_forward_hook(note) for layer in layers]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _way(layer: nn.Module) -> Way:
    """How squared slopes of a layer's own weights are found, in their order."""
    if isinstance(layer, nn.Linear):
        return _by_linear
    if isinstance(layer, nn.Conv2d) and _is_plain(layer):
        return _by_convolution
    if isinstance(layer, Norm) and not layer.own:
        return _by_norm
    raise TypeError(
        "the Fisher information knows Linear, Conv2d (one group, no dilation, padded by zeros) and "
        f"Norm (without own moments), found {layer}; add it to everlearn.nets.fisher"
    )


def _is_plain(layer: nn.Conv2d) -> bool:
    padded = layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
    return layer.groups == 1 and padded and layer.dilation == (1, 1)


def _by_linear(layer: nn.Linear, seen: Seen, slope: Tensor) -> Iterator[Tensor]:
    """A sample's slope is an outer product, whose square is the outer product of squares."""
    if slope.dim() != 2:
        raise ValueError(f"a linear layer must give (B, outputs), found {tuple(slope.shape)}")
    steep = slope.square()
    yield steep.T @ seen.x.square()
    if layer.bias is not None:
        yield steep.sum(0)


def _by_convolution(layer: nn.Conv2d, seen: Seen, slope: Tensor) -> Iterator[Tensor]:
    """A sample's slope is a sum over places, made for as many samples at once as there is room for."""
    places, taps = slope[0, 0].numel(), layer.weight[0].numel()
    size = max(1, _NUMBERS[slope.device.type] // (taps * max(places, layer.out_channels)))
    total = torch.zeros_like(layer.weight)
    for x, steep in zip(torch.split(seen.x, size), torch.split(slope, size), strict=True):
        total += _convolved(layer, x, steep)
    yield total
    if layer.bias is not None:
        yield slope.sum((2, 3)).square().sum(0)


def _convolved(layer: nn.Conv2d, x: Tensor, slope: Tensor) -> Tensor:
    own = slope.flatten(2) @ _patches(layer, x)  # (B, O, C K K)
    return _sum_squares(own).view(layer.weight.shape)


def _patches(layer: nn.Conv2d, x: Tensor) -> Tensor:
    """What the taps of a convolution see at each place, (B, L, C K K).

    torch's own unfold starts a kernel for every sample on a GPU; views and one copy do not.
    """
    (down, right), (rows, cols), sides = layer.stride, layer.kernel_size, layer.padding
    high, wide = (int(side) for side in sides)
    seen = pad(x, (wide, wide, high, high)).unfold(2, rows, down).unfold(3, cols, right)
    return seen.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def _sum_squares(own: Tensor) -> Tensor:
    """Over samples. On a GPU memory is the limit, and a norm reads it once; on a CPU a norm is slow."""
    squares: Tensor = vector_norm(own, dim=0).square_() if own.is_cuda else own.square_().sum(0)
    return squares


def _by_norm(layer: Norm, seen: Seen, slope: Tensor) -> Iterator[Tensor]:
    """Its moments are kept ones; the addition passes the slope on, the cut where something is left."""
    steep = slope * (seen.out > 0) if layer.cut else slope
    straight = (seen.x - layer.mean[:, None, None]) * (layer.var + EPS).rsqrt()[:, None, None]
    yield (steep * straight).sum((2, 3)).square().sum(0)
    yield steep.sum((2, 3)).square().sum(0)
