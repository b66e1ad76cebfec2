"""Gradients as vectors: products of them, and projections that hurt no gradient of the past."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]
_SLACK = 1e-10  # relative; what counts as nothing in the solution of a dual


def slopes_of(weights: Sequence[Tensor]) -> list[Tensor]:
    """What the way back left at weights; those that it did not reach are left out."""
    return [weight.grad for weight in weights if weight.grad is not None]


def dot(ones: Sequence[Tensor], others: Sequence[Tensor]) -> Tensor:
    """The product of two vectors that are given in parts, (), by three kernels on a GPU."""
    parts = torch._foreach_mul(list(ones), list(others))
    # As they lie in memory: a sum has no order, and to put channels last in order takes a copy each.
    return torch.cat([part.as_strided((part.numel(),), (1,)) for part in parts]).sum()


def project(slopes: Sequence[Tensor], reference: Sequence[Tensor]) -> None:
    """Turn slopes, in place, until their product with a reference is not negative.

    Eq. 11 of Chaudhry et al. 2018. Slopes that need no turn keep every bit, and nothing is read back.
    """
    product, square = dot(slopes, reference), dot(reference, reference)
    share = torch.where(product < 0, product / square, 0.0)
    torch._foreach_sub_(list(slopes), torch._foreach_mul(list(reference), share))


def flatten(parts: Sequence[Tensor]) -> Tensor:
    """One vector, (P,)."""
    return torch.cat([part.reshape(-1) for part in parts])


def unflatten(vector: Tensor, parts: Sequence[Tensor]) -> list[Tensor]:
    """The parts of a vector, in the shapes of others."""
    pieces = torch.split(vector, [part.numel() for part in parts])
    return [piece.view_as(part) for piece, part in zip(pieces, parts, strict=True)]


def solve_dual(products: Floats, slopes: Floats, floor: float) -> Floats:
    """Minimise v.P.v / 2 + s.v for v >= floor: the dual of GEM's projection.

    Active sets as in Lawson and Hanson 1974, chapter 23, by products alone (Bro and de Jong 1997).

    Args:
        products: P (K, K), symmetric and without negative eigenvalues.
        slopes: s (K,).
    """
    start = slopes + floor * products.sum(1)  # the slope where all lie on the floor
    above, free = np.zeros(len(start)), np.zeros(len(start), bool)
    for _ in range(3 * len(start)):  # rounding may go in circles; exact numbers never need more
        fall = np.where(free, -np.inf, -(products @ above + start))
        if fall.max() <= _SLACK * np.abs(start).max():
            break
        free[fall.argmax()] = True
        above, free = _settle(products, start, above, free)
    return above + floor


def _settle(
    products: Floats, start: Floats, above: Floats, free: NDArray[np.bool_]
) -> tuple[Floats, NDArray[np.bool_]]:
    """Go to the lowest point of the free ones; those that would cross the floor on the way stay on it."""
    while True:
        goal = np.zeros_like(above)
        goal[free] = np.linalg.lstsq(products[np.ix_(free, free)], -start[free])[0]
        low = np.flatnonzero(free & (goal < 0))
        if not len(low):
            return goal, free
        ways = above[low] / (above[low] - goal[low])
        free = free & (np.arange(len(free)) != low[ways.argmin()])
        above = np.where(free, above + ways.min() * (goal - above), 0.0)
