"""A convolutional VAE conditioned on an environment (Achille et al. 2018, VASE).

The encoder has 4 x 4 convolutions of stride 2 down to 4 x 4 positions, the decoder transposed ones back up.
A linear classifier on the encoder's features predicts the environment; it sends no gradient back.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import linear, pad

from everlearn.nets.precision import ToBFloat16, deterministic

_ROUNDED = ("encoder", "condition", "expand", "decoder")
_MAX_LOG_VARIANCE = 8.0  # keeps exp finite for images unlike any in training
SIDE = 4  # of the last convolution's output


class Architecture(NamedTuple):
    """Widths: of the convolutions, one per halving, or of a layer over all pixels; of the hidden layer."""

    convolutions: tuple[int, ...]
    flat: int
    hidden: int


ARCHITECTURES = {
    "vase": Architecture((64, 64, 128, 128), 0, 256),
    "vase-small": Architecture((32, 32, 64, 64), 0, 128),
    "vase-flat": Architecture((), 400, 128),
}


class Code(NamedTuple):
    """Mean and log-variance of q(z | x), (B, z) each, and the encoder's features, (B, hidden)."""

    mean: Tensor
    log_variance: Tensor
    features: Tensor

    def select(self, rows: slice) -> Code:
        """The code of some rows."""
        return Code(self.mean[rows], self.log_variance[rows], self.features[rows])


class VAE(nn.Module):
    """Encodes images as codes and decodes codes, given an environment, as logits of images.

    Args:
        name: of an architecture in ARCHITECTURES.
        size: height and width of an image, 4 times a power of 2.
        latent_dim: dimensions of a code.
        environments: maximum number of environments.
    """

    def __init__(
        self, name: str, channels: int, size: int, latent_dim: int, environments: int
    ) -> None:
        """Start from torch's default initialisation, except for the encoder."""
        super().__init__()
        architecture = architecture_for(name, size)
        hidden = architecture.hidden
        down, up, inner = _layers(architecture, (channels, size, size))
        self.latent_dim = latent_dim
        self.encoder = nn.Sequential(*down, nn.Flatten(), nn.Linear(prod(inner), hidden), nn.ReLU())
        self.mean = nn.Linear(hidden, latent_dim)
        self.log_variance = nn.Linear(hidden, latent_dim)
        self.condition = nn.Linear(latent_dim + environments, hidden)
        self.expand = nn.Sequential(
            nn.ReLU(), nn.Linear(hidden, prod(inner)), nn.ReLU(), nn.Unflatten(1, inner)
        )
        self.decoder = nn.Sequential(*up)
        self.environment_head = nn.Linear(hidden, environments)
        _draw_he_weights(self.encoder)
        self.register_buffer("_environments", torch.arange(environments), persistent=False)
        self._environments: Tensor

    def encode(self, images: Tensor) -> Code:
        """Return q(z | x) of images in [0, 1]."""
        with deterministic():
            features = self.encoder(images.to(self._dtype)).float()
        log_variance = self.log_variance(features).clamp(max=_MAX_LOG_VARIANCE)
        return Code(self.mean(features), log_variance, features)

    def decode(self, z: Tensor, environment: Tensor) -> Tensor:
        """Return logits (B, C, H, W) of codes (B, z) in one environment () or in one per code (B,)."""
        one_hot = (environment.expand(len(z))[:, None] == self._environments).float()
        with deterministic():
            hidden = self.condition(torch.cat([z, one_hot], 1).to(self._dtype))
            maps = self.expand(hidden).contiguous(memory_format=torch.channels_last)
            out: Tensor = self.decoder(maps)
        return out.float()

    def forward(self, method: str, *inputs: Tensor) -> Any:
        """Call `encode` or `decode`: functional_call replaces weights in a forward pass only."""
        return getattr(self, method)(*inputs)

    @property
    def _dtype(self) -> torch.dtype:
        return self.condition.weight.dtype

    @torch.no_grad()
    def copy_environment(self, source: Tensor, new: Tensor) -> None:
        """Initialise new environments (environments,) with the decoder weights of a known one ()."""
        weights = self.condition.weight[:, self.latent_dim :]
        weights.copy_(torch.where(new, weights.index_select(1, source.reshape(1)), weights))

    def environment_logits(self, features: Tensor) -> Tensor:
        """Classify the encoder's features, (B, environments); no gradient reaches the encoder."""
        out: Tensor = self.environment_head(features.detach())
        return out


def architecture_for(name: str, size: int) -> Architecture:
    """Return an architecture with as many convolutions as images of a size need."""
    if name not in ARCHITECTURES:
        raise ValueError(f"unknown net {name!r} of vase; known: {', '.join(ARCHITECTURES)}")
    architecture = ARCHITECTURES[name]
    widths = architecture.convolutions
    if not widths:
        return architecture
    sizes = [SIDE * 2**layers for layers in range(1, len(widths) + 1)]
    if size not in sizes:
        allowed = ", ".join(map(str, sizes))
        raise ValueError(f"net {name!r} needs images of a size of {allowed}, found {size}")
    return architecture._replace(convolutions=widths[: 1 + sizes.index(size)])


class BorrowedWeights:
    """A VAE that computes with bfloat16 copies of its weights in training on a GPU, made by one kernel.

    The heads, which give codes and environments, stay in float32.
    """

    def __init__(self, net: VAE) -> None:
        """Round the weights as they are now."""
        self.net = net
        self.weights: dict[str, Tensor] = {}
        if net.training and net.mean.weight.is_cuda:
            body = {n: w for n, w in net.named_parameters() if n.startswith(_ROUNDED)}
            rounded = ToBFloat16.apply(*body.values())  # type: ignore[no-untyped-call]
            self.weights = dict(zip(body, rounded, strict=True))

    def encode(self, images: Tensor) -> Code:
        """As `VAE.encode`."""
        code: Code = functional_call(self.net, self.weights, ("encode", images))
        return code

    def decode(self, z: Tensor, environment: Tensor) -> Tensor:
        """As `VAE.decode`."""
        logits: Tensor = functional_call(self.net, self.weights, ("decode", z, environment))
        return logits


class PatchConv2d(nn.Conv2d):
    """A 4 x 4 convolution of stride 2 as a product of patches, faster for few channels."""

    def forward(self, images: Tensor) -> Tensor:
        """(B, C, 2H, 2W) to (B, out_channels, H, W)."""
        patches = pad(images, (1, 1, 1, 1)).unfold(2, 4, 2).unfold(3, 4, 2)  # (B, C, H, W, 4, 4)
        rows = patches.permute(0, 2, 3, 1, 4, 5).flatten(3)
        return linear(rows, self.weight.flatten(1), self.bias).permute(0, 3, 1, 2)


def _draw_he_weights(layers: nn.Module) -> None:
    """Draw weights that keep the variance of activations through ReLU layers (He et al. 2015).

    With torch's default, activations shrink from layer to layer; in bfloat16 they vanish, and some nets
    never learned to draw more than the mean image. With such weights in the decoder, too, more latents
    encode a position together, and never separate.
    """
    for weight in layers.parameters():
        if weight.ndim > 1:
            nn.init.kaiming_normal_(weight, nonlinearity="relu")
        else:
            nn.init.zeros_(weight)


Layers = list[nn.Module]
Shape = tuple[int, int, int]


def _layers(architecture: Architecture, shape: Shape) -> tuple[Layers, Layers, Shape]:
    """The layers of encoder and decoder, and the shape between them."""
    if architecture.convolutions:
        return _conv_layers(architecture.convolutions, shape)
    return _linear_layers(architecture.flat, shape)


def _conv_layers(widths: Sequence[int], shape: Shape) -> tuple[Layers, Layers, Shape]:
    """Convolutions down to SIDE x SIDE positions, and transposed ones back up."""
    down: Layers = []
    pairs: list[Layers] = []
    channels = shape[0]
    for number, width in enumerate(widths):
        down += [(nn.Conv2d if number else PatchConv2d)(channels, width, 4, 2, 1), nn.ReLU()]
        pairs.append([nn.ConvTranspose2d(width, channels, 4, 2, 1), nn.ReLU()])
        channels = width
    # The decoder reverses the order; its last ReLU is dropped, as its output is logits.
    up = [layer for pair in reversed(pairs) for layer in pair][:-1]
    return down, up, (channels, SIDE, SIDE)


def _linear_layers(width: int, shape: Shape) -> tuple[Layers, Layers, Shape]:
    """One layer over all pixels, and one back."""
    down = [nn.Flatten(), nn.Linear(prod(shape), width), nn.ReLU()]
    up = [nn.Flatten(), nn.Linear(width, prod(shape)), nn.Unflatten(1, shape)]
    return down, up, (width, 1, 1)
