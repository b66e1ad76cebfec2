"""An encoder and a decoder of images, which may be told an environment (Achille et al. 2018, VASE).

Convolutions 4 x 4 of stride 2 down to 4 x 4 places, and the same way back. A linear layer on what the
encoder sees last tells environments apart; it never moves the encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import linear, pad

from everlearn.nets import fast

_ROUNDED = ("eyes", "told", "hand", "brush")
_WIDEST = 8.0  # log-variance: what an encoder makes of images it has never seen must be a number
SIDE = 4  # of what the last convolution gives


class Plan(NamedTuple):
    """Widths: of convolutions, one a halving of an image, or of a layer over all pixels; and behind."""

    convolutions: tuple[int, ...]
    flat: int
    hidden: int


NETS = {
    "vase": Plan((64, 64, 128, 128), 0, 256),
    "vase-small": Plan((32, 32, 64, 64), 0, 128),
    "vase-flat": Plan((), 400, 128),
}


class Code(NamedTuple):
    """q(z | x) of images, (B, z) each, and what the encoder saw last, (B, hidden)."""

    mean: Tensor
    log_variance: Tensor
    seen: Tensor

    def part(self, rows: slice) -> Code:
        """Some rows of it."""
        return Code(self.mean[rows], self.log_variance[rows], self.seen[rows])


class Coder(nn.Module):
    """Images to codes and, told an environment, back to the logits of images.

    Args:
        name: of the net, in NETS.
        size: height and width of an image, which are 4 times a power of 2.
        z: numbers of a code.
        environments: how many there may be.
    """

    def __init__(self, name: str, channels: int, size: int, z: int, environments: int) -> None:
        """Start from torch's own random weights, but for those that see."""
        super().__init__()
        plan = fit_plan(name, size)
        self.z, shape, hidden = z, (channels, size, size), plan.hidden
        down, up, inner = (
            _way(plan.convolutions, shape) if plan.convolutions else _flat(plan.flat, shape)
        )
        self.eyes = nn.Sequential(*down, nn.Flatten(), nn.Linear(prod(inner), hidden), nn.ReLU())
        self.mean, self.log_variance = nn.Linear(hidden, z), nn.Linear(hidden, z)
        self.told = nn.Linear(z + environments, hidden)
        self.hand = nn.Sequential(
            nn.ReLU(), nn.Linear(hidden, prod(inner)), nn.ReLU(), nn.Unflatten(1, inner)
        )
        self.brush = nn.Sequential(*up)
        self.place = nn.Linear(hidden, environments)
        _keep_size(self.eyes)
        self.register_buffer("_units", torch.arange(environments), persistent=False)
        self._units: Tensor

    def encode(self, images: Tensor) -> Code:
        """q(z | x) of images in [0, 1]."""
        with fast.steady():
            seen = self.eyes(images.to(self._kind)).float()
        return Code(self.mean(seen), self.log_variance(seen).clamp(max=_WIDEST), seen)

    def decode(self, z: Tensor, environment: Tensor) -> Tensor:
        """Logits (B, C, H, W) of codes (B, z), in one environment () or in one each (B,)."""
        told = (environment.expand(len(z))[:, None] == self._units).float()
        with fast.steady():
            flat = self.hand(self.told(torch.cat([z, told], 1).to(self._kind)))
            out: Tensor = self.brush(flat.contiguous(memory_format=torch.channels_last))
        return out.float()

    def forward(self, way: str, *inputs: Tensor) -> Any:
        """Encode or decode: by this door weights can be lent."""
        return getattr(self, way)(*inputs)

    @property
    def _kind(self) -> torch.dtype:
        return self.told.weight.dtype

    @torch.no_grad()
    def lend(self, known: Tensor, new: Tensor) -> None:
        """Let new environments (environments,) be drawn as a known one () is, to begin with."""
        told = self.told.weight[:, self.z :]
        told.copy_(torch.where(new, told.index_select(1, known.reshape(1)), told))

    def guess(self, seen: Tensor) -> Tensor:
        """Logits of the environments, (B, environments), of what the encoder saw; nothing flows back."""
        out: Tensor = self.place(seen.detach())
        return out


def fit_plan(name: str, size: int) -> Plan:
    """The plan of a net for images of a size."""
    if name not in NETS:
        raise ValueError(f"unknown net {name!r} of vase; known: {', '.join(NETS)}")
    plan = NETS[name]
    if not plan.convolutions:
        return plan
    sizes = [SIDE * 2**layers for layers in range(1, len(plan.convolutions) + 1)]
    if size not in sizes:
        allowed = ", ".join(map(str, sizes))
        raise ValueError(f"net {name!r} needs images of a size of {allowed}, found {size}")
    return plan._replace(convolutions=plan.convolutions[: 1 + sizes.index(size)])


class Lent:
    """A coder that, where it trains on a GPU, works with weights in bfloat16, all rounded by one kernel.

    Its heads, which give codes and environments, stay as they are.
    """

    def __init__(self, net: Coder) -> None:
        """Round the weights as they are now."""
        self.net, self.weights = net, dict[str, Tensor]()
        if net.training and net.mean.weight.is_cuda:
            inner = {n: w for n, w in net.named_parameters() if n.startswith(_ROUNDED)}
            rounded = fast.Narrow.apply(*inner.values())  # type: ignore[no-untyped-call]
            self.weights = dict(zip(inner, rounded, strict=True))

    def encode(self, images: Tensor) -> Code:
        """As the coder does."""
        code: Code = functional_call(self.net, self.weights, ("encode", images))
        return code

    def decode(self, z: Tensor, environment: Tensor) -> Tensor:
        """As the coder does."""
        logits: Tensor = functional_call(self.net, self.weights, ("decode", z, environment))
        return logits


class Patches(nn.Conv2d):
    """A convolution 4 x 4 of stride 2 as a product of patches, which suits few channels."""

    def forward(self, images: Tensor) -> Tensor:
        """(B, C, 2H, 2W) to (B, outside, H, W)."""
        cut = pad(images, (1, 1, 1, 1)).unfold(2, 4, 2).unfold(3, 4, 2)  # (B, C, H, W, 4, 4)
        rows = cut.permute(0, 2, 3, 1, 4, 5).flatten(3)
        return linear(rows, self.weight.flatten(1), self.bias).permute(0, 3, 1, 2)


def _keep_size(layers: nn.Module) -> None:
    """Draw weights that keep the size of what layers with ReLUs are given (He et al. 2015).

    With torch's own, what is seen gets smaller from layer to layer. In bfloat16 it is then lost, and some
    nets never left off drawing the mean image. With such weights in the decoder too, more latents share in
    a position, and do not let go of it.
    """
    for weight in layers.parameters():
        if weight.ndim > 1:
            nn.init.kaiming_normal_(weight, nonlinearity="relu")
        else:
            nn.init.zeros_(weight)


Layers = list[nn.Module]
Shape = tuple[int, int, int]


def _way(widths: Sequence[int], shape: Shape) -> tuple[Layers, Layers, Shape]:
    """Convolutions down to a few places, those back up, and the shape between."""
    down, up, inside = [], [], shape[0]
    for place, outside in enumerate(widths):
        down += [(nn.Conv2d if place else Patches)(inside, outside, 4, 2, 1), nn.ReLU()]
        up += [nn.ConvTranspose2d(outside, inside, 4, 2, 1), nn.ReLU()]
        inside = outside
    # Back up the last comes first; what is drawn are logits.
    pairs = [up[place : place + 2] for place in range(0, len(up), 2)]
    back = [layer for pair in reversed(pairs) for layer in pair][:-1]
    return down, back, (inside, SIDE, SIDE)


def _flat(width: int, shape: Shape) -> tuple[Layers, Layers, Shape]:
    """One layer over all pixels, there and back."""
    down = [nn.Flatten(), nn.Linear(prod(shape), width), nn.ReLU()]
    up = [nn.Flatten(), nn.Linear(width, prod(shape)), nn.Unflatten(1, shape)]
    return down, up, (width, 1, 1)
