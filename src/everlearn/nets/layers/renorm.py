"""Batch renormalisation (Ioffe 2017, arXiv 1702.03275), a drop-in replacement for `Norm`."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, relu

from everlearn.nets.layers.norm import EPS

R_MAX = 1.25
D_MAX = 0.5
GROWTH = 4.1e-5  # of both limits, per image of a batch
INITIAL_MOMENTUM = 0.01
LATER_MOMENTUM = 5e-5


class Renorm(nn.Module):
    """relu(batch_renorm(x) + residual); the addition and the ReLU are optional.

    Batch statistics are corrected towards the running ones by factors r and d (eq. 1), clipped to limits
    that start at no correction and grow with every training image.

    Attributes:
        std: running standard deviation, sqrt(variance + EPS); a mean of deviations, not of variances.
        r: current limit of the correction of the deviation, a factor that grows up to `r_max`.
        d: current limit of the correction of the mean, in deviations; it grows up to `d_max`.
        momentum: how far the running statistics move towards those of a batch.
    """

    def __init__(
        self, channels: int, relu: bool = True, r_max: float = R_MAX, d_max: float = D_MAX
    ) -> None:
        """Start with weight 1, bias 0, mean 0, deviation 1 and no correction."""
        super().__init__()
        self.relu = relu
        self.r_max = r_max
        self.d_max = d_max
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.mean: Tensor
        self.std: Tensor
        self.r: Tensor
        self.d: Tensor
        self.momentum: Tensor
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("std", torch.ones(channels))
        self.register_buffer("r", torch.tensor(1.0))
        self.register_buffer("d", torch.tensor(0.0))
        self.register_buffer("momentum", torch.tensor(INITIAL_MOMENTUM))

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """Normalise (B, C) or (B, C, H, W) by the batch in training, by running statistics otherwise."""
        out = self._by_batch(x) if self.training else self._by_running_stats(x)
        out = out if residual is None else out + residual
        return relu(out) if self.relu else out

    def _by_running_stats(self, x: Tensor) -> Tensor:
        scale = self.weight / self.std
        shift = self.bias - self.mean * scale
        per_channel = (1, -1) + (1,) * (x.dim() - 2)
        return (x * scale.view(per_channel) + shift.view(per_channel)).to(x.dtype)

    def _by_batch(self, x: Tensor) -> Tensor:
        """Batch normalisation, times r plus d; both are constants in the backward pass."""
        r, d = self._correct(x)
        weight = self.weight * r
        bias = self.bias + self.weight * d
        return batch_norm(x, None, None, weight, bias, training=True, eps=EPS)

    @torch.no_grad()
    def _correct(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Compute r and d of a batch (eq. 1); then update the running statistics and the limits."""
        dims = [0, *range(2, x.dim())]
        var, mean = torch.var_mean(x.to(self.std.dtype), dims, correction=0)
        std = (var + EPS).sqrt()
        r = (std / self.std).clamp(self.r.reciprocal(), self.r)
        d = ((mean - self.mean) / self.std).clamp(-self.d, self.d)
        self.mean.lerp_(mean, self.momentum)
        self.std.lerp_(std, self.momentum)
        self.r.add_(GROWTH * len(x)).clamp_(max=self.r_max)
        self.d.add_(GROWTH * len(x)).clamp_(max=self.d_max)
        return r, d


@torch.no_grad()
def end_renorm_warmup(net: nn.Module, momentum: float = LATER_MOMENTUM) -> None:
    """End the first experience of a net: set the limits to their maxima and slow the running statistics."""
    for layer in net.modules():
        if isinstance(layer, Renorm):
            layer.r.fill_(layer.r_max)
            layer.d.fill_(layer.d_max)
            layer.momentum.fill_(momentum)
