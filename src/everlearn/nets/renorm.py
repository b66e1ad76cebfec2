"""Batch renormalisation (Ioffe 2017, arXiv 1702.03275), which takes the place of `Norm`."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, relu

from everlearn.nets.norm import EPS

R_MAX = 1.25
D_MAX = 0.5
GROWTH = 4.1e-5  # of both limits, for every image of a batch
RATE = 0.01
LATER_RATE = 5e-5


class Renorm(nn.Module):
    """relu(batch_renorm(x) + other); the addition and the cut below 0 are optional.

    What differs from batch normalisation: a batch's own moments are brought nearer to the kept ones,
    within limits that start at none and grow with every image met in training.

    Attributes:
        std: the kept standard deviation, sqrt(variance + EPS); the mean of deviations, not of variances.
        r: how many times a deviation may be off, a limit that grows up to `r_max`.
        d: how many deviations a mean may be off, a limit that grows up to `d_max`.
        rate: how far the kept moments move towards those of a batch.
    """

    def __init__(
        self, channels: int, cut: bool = True, r_max: float = R_MAX, d_max: float = D_MAX
    ) -> None:
        """Start with weight 1, bias 0, mean 0, deviation 1 and as batch normalisation."""
        super().__init__()
        self.cut, self.r_max, self.d_max = cut, r_max, d_max
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.mean: Tensor
        self.std: Tensor
        self.r: Tensor
        self.d: Tensor
        self.rate: Tensor
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("std", torch.ones(channels))
        self.register_buffer("r", torch.tensor(1.0))
        self.register_buffer("d", torch.tensor(0.0))
        self.register_buffer("rate", torch.tensor(RATE))

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        """Normalise (B, C) or (B, C, H, W), by the batch when training, by the kept moments otherwise."""
        out = self._by_batch(x) if self.training else self._by_kept(x)
        out = out if other is None else out + other
        return relu(out) if self.cut else out

    def _by_kept(self, x: Tensor) -> Tensor:
        scale = self.weight / self.std
        shift = self.bias - self.mean * scale
        places = (1, -1) + (1,) * (x.dim() - 2)
        return (x * scale.view(places) + shift.view(places)).to(x.dtype)

    def _by_batch(self, x: Tensor) -> Tensor:
        """Batch normalisation, times r plus d; both are constants to the way back."""
        r, d = self._correct(x)
        weight, bias = self.weight * r, self.bias + self.weight * d
        return batch_norm(x, None, None, weight, bias, training=True, eps=EPS)

    @torch.no_grad()
    def _correct(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Find r and d of a batch, eq. 1 of the paper; then move the kept moments and the limits."""
        places = [0, *range(2, x.dim())]
        var, mean = torch.var_mean(x.to(self.std.dtype), places, correction=0)
        std = (var + EPS).sqrt()
        r = (std / self.std).clamp(self.r.reciprocal(), self.r)
        d = ((mean - self.mean) / self.std).clamp(-self.d, self.d)
        self.mean.lerp_(mean, self.rate)
        self.std.lerp_(std, self.rate)
        self.r.add_(GROWTH * len(x)).clamp_(max=self.r_max)
        self.d.add_(GROWTH * len(x)).clamp_(max=self.d_max)
        return r, d


@torch.no_grad()
def settle(net: nn.Module, rate: float = LATER_RATE) -> None:
    """End the first experience of a net: limits at their maxima, kept moments that move at `rate`."""
    for layer in net.modules():
        if isinstance(layer, Renorm):
            layer.r.fill_(layer.r_max)
            layer.d.fill_(layer.d_max)
            layer.rate.fill_(rate)
