"""The diagonal of a net's Fisher information, from the gradients of all samples of a batch at once.

F_k is the mean over images x of (d log p(y | x) / d w_k)^2, with y sampled from the net. The gradient of a
batch is a sum over samples, which cannot be squared one by one; but the gradient of each sample follows
from a layer's input and the gradient of its output. Nothing loops over samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.linalg import vector_norm
from torch.nn.functional import cross_entropy, pad, softmax

from everlearn.core.random import Purpose, permutation, uniform
from everlearn.nets.layers.norm import EPS, Norm
from everlearn.nets.precision import deterministic, eval_mode, forward_pass
from everlearn.stream import Batch, Task

_CHUNK = 128  # samples per forward pass
_MAX_ELEMENTS = {"cuda": 2**27, "cpu": 2**22}  # of gradients at once: 0.5 GB, or what fits a cache

ChooseLabels = Callable[[Tensor, Tensor], Tensor]
SquaredGradients = Callable[[Any, "Activations", Tensor], Iterator[Tensor]]


class Activations(NamedTuple):
    """The input and the output of a layer."""

    x: Tensor
    out: Tensor


def draw_samples(task: Task, samples: int, device: str) -> tuple[Batch, Tensor]:
    """Draw training images of a task without replacement, and a uniform number from [0, 1) for each."""
    rows = permutation(task.seed, Purpose.FISHER, task.index, len(task.train))[:samples]
    uniforms = uniform(task.seed, Purpose.FISHER, task.index, rows)[:, 0]
    return task.train.batch(rows, device), torch.from_numpy(uniforms).to(device)


def diagonal(
    net: nn.Module, images: Tensor, uniforms: Tensor, among: Tensor | None = None
) -> list[Tensor]:
    """Return the true Fisher diagonal, with labels sampled from the net, one tensor per weight.

    Args:
        uniforms: (B,) numbers from [0, 1), one for each label to sample.
        among: (outputs,) which outputs the softmax is over; all by default.
    """
    return _mean_squares(net, images, uniforms, among, sample_labels)


def empirical(
    net: nn.Module, images: Tensor, targets: Tensor, among: Tensor | None = None
) -> list[Tensor]:
    """Return the empirical Fisher diagonal, with given labels (B,), one tensor per weight."""
    return _mean_squares(net, images, targets, among, lambda _, targets: targets)


def sample_labels(logits: Tensor, uniforms: Tensor) -> Tensor:
    """Sample an output for each row, (B,), by its probability."""
    edges = softmax(logits.double(), 1).cumsum(1)
    targets = torch.searchsorted(edges, uniforms[:, None] * edges[:, -1:], right=True)[:, 0]
    # NaN logits lead beyond the last output, and an index out of range stops a GPU.
    return targets.clamp(max=logits.shape[1] - 1)


def _mean_squares(
    net: nn.Module, images: Tensor, given: Tensor, among: Tensor | None, choose: ChooseLabels
) -> list[Tensor]:
    """Average squared gradients over images; `choose` gets logits and a chunk of `given`."""
    sums: dict[Tensor, Tensor] = {weight: torch.zeros_like(weight) for weight in net.parameters()}
    chunks = zip(torch.split(images, _CHUNK), torch.split(given, _CHUNK), strict=True)
    with eval_mode(net), torch.enable_grad(), deterministic():
        for chunk, chunk_given in chunks:
            for weight, squares in _squares(net, chunk, chunk_given, among, choose):
                sums[weight] += squares
    return [total / len(images) for total in sums.values()]


def _squares(
    net: nn.Module, images: Tensor, given: Tensor, among: Tensor | None, choose: ChooseLabels
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield each weight with its squared gradients, summed over samples."""
    layers = [layer for layer in net.modules() if [*layer.parameters(recurse=False)]]
    rules = {layer: _rule(layer) for layer in layers}
    with _recording(layers) as activations:
        logits = forward_pass(net, images)
    logits = logits if among is None else logits.masked_fill(~among, -torch.inf)
    loss = cross_entropy(logits, choose(logits.detach(), given), reduction="sum")
    gradients = torch.autograd.grad(loss, [layer.out for layer in activations.values()])
    for (layer, activation), gradient in zip(activations.items(), gradients, strict=True):
        weights = layer.parameters(recurse=False)
        yield from zip(weights, rules[layer](layer, activation, gradient), strict=True)


@contextmanager
def _recording(layers: list[nn.Module]) -> Iterator[dict[nn.Module, Activations]]:
    """Record the activations of layers inside."""
    activations: dict[nn.Module, Activations] = {}

    def record(layer: nn.Module, inputs: tuple[Tensor, ...], out: Tensor) -> None:
        if layer in activations:
            raise ValueError(f"a layer must be used once per pass, found {layer} used again")
        activations[layer] = Activations(inputs[0].detach(), out)

    hooks = [layer.register_forward_hook(record) for layer in layers]
    try:
        yield activations
    finally:
        for hook in hooks:
            hook.remove()


def _rule(layer: nn.Module) -> SquaredGradients:
    """The function that computes the squared gradients of a layer's weights, in their order."""
    if isinstance(layer, nn.Linear):
        return _linear
    if isinstance(layer, nn.Conv2d) and _is_plain(layer):
        return _convolution
    if isinstance(layer, Norm) and not layer.instance_weight:
        return _norm
    raise TypeError(
        "the Fisher information supports Linear, Conv2d (one group, no dilation, zero padding) and Norm "
        f"(without instance statistics), found {layer}; add it to everlearn.training.fisher"
    )


def _is_plain(layer: nn.Conv2d) -> bool:
    zero_padding = layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
    return layer.groups == 1 and zero_padding and layer.dilation == (1, 1)


def _linear(layer: nn.Linear, activation: Activations, gradient: Tensor) -> Iterator[Tensor]:
    """A sample's gradient is an outer product, and its square is the outer product of the squares."""
    if gradient.dim() != 2:
        raise ValueError(f"a linear layer must give (B, outputs), found {tuple(gradient.shape)}")
    squared = gradient.square()
    yield squared.T @ activation.x.square().to(squared.dtype)
    if layer.bias is not None:
        yield squared.sum(0)


def _convolution(layer: nn.Conv2d, activation: Activations, gradient: Tensor) -> Iterator[Tensor]:
    """A sample's gradient is a sum over positions; as many samples at once as memory allows."""
    positions = gradient[0, 0].numel()
    taps = layer.weight[0].numel()
    max_elements = _MAX_ELEMENTS[gradient.device.type]
    size = max(1, max_elements // (taps * max(positions, layer.out_channels)))
    total = torch.zeros_like(layer.weight)
    for x, g in zip(torch.split(activation.x, size), torch.split(gradient, size), strict=True):
        per_sample = g.flatten(2) @ _patches(layer, x)  # (B, O, C K K)
        total += _sum_squares(per_sample).view(layer.weight.shape)
    yield total
    if layer.bias is not None:
        yield gradient.sum((2, 3)).square().sum(0)


def _patches(layer: nn.Conv2d, x: Tensor) -> Tensor:
    """The inputs of a convolution at each position, (B, L, C K K).

    torch's unfold starts a kernel for every sample on a GPU; views and one copy do not.
    """
    row_stride, column_stride = layer.stride
    rows, columns = layer.kernel_size
    height, width = (int(side) for side in layer.padding)
    padded = pad(x, (width, width, height, height))
    windows = padded.unfold(2, rows, row_stride).unfold(3, columns, column_stride)
    return windows.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def _sum_squares(values: Tensor) -> Tensor:
    """Sum squares over samples: by a norm on a GPU, which reads memory once; on a CPU a norm is slow."""
    if values.is_cuda:
        norms: Tensor = vector_norm(values, dim=0)
        return norms.square_()
    return values.square_().sum(0)


def _norm(layer: Norm, activation: Activations, gradient: Tensor) -> Iterator[Tensor]:
    """Running statistics are constants; the gradient passes where the ReLU is open."""
    g = gradient * (activation.out > 0) if layer.relu else gradient
    scale = (layer.var + EPS).rsqrt()[:, None, None]
    x_hat = (activation.x - layer.mean[:, None, None]) * scale
    yield (g * x_hat).sum((2, 3)).square().sum(0)
    yield g.sum((2, 3)).square().sum(0)
