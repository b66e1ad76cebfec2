"""Gradients as vectors: their products, and projections that do not increase the loss on past tasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]
_TOLERANCE = 1e-10  # relative; of the optimality of a dual solution


def gradients_of(weights: Sequence[Tensor]) -> list[Tensor]:
    """The gradients that the backward pass left; weights that it did not reach are skipped."""
    return [weight.grad for weight in weights if weight.grad is not None]


def dot(first: Sequence[Tensor], second: Sequence[Tensor]) -> Tensor:
    """The dot product of two vectors that are given as lists of tensors, (), by three kernels on a GPU."""
    products = torch._foreach_mul(list(first), list(second))
    # In memory order, which is the same in both: reordering channels-last tensors would copy them.
    flat = torch.cat([part.as_strided((part.numel(),), (1,)) for part in products])
    # In float64, where zeros of classes to come do not change the sum by another order of addition.
    return flat.sum(dtype=torch.float64).float()


def project(gradients: Sequence[Tensor], reference: Sequence[Tensor]) -> None:
    """Project gradients, in place, so that their product with a reference is not negative.

    Eq. 11 of Chaudhry et al. 2018. Gradients that need no projection keep every bit, without a GPU sync.
    """
    product = dot(gradients, reference)
    square = dot(reference, reference)
    coefficient = torch.where(product < 0, product / square, 0.0)
    torch._foreach_sub_(list(gradients), torch._foreach_mul(list(reference), coefficient))


def flatten(tensors: Sequence[Tensor]) -> Tensor:
    """Concatenate tensors into one vector, (P,)."""
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def unflatten(vector: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """Split a vector into the shapes of other tensors."""
    pieces = torch.split(vector, [tensor.numel() for tensor in like])
    return [piece.view_as(tensor) for piece, tensor in zip(pieces, like, strict=True)]


def solve_dual(products: Floats, linear: Floats, floor: float) -> Floats:
    """Minimise v.P.v / 2 + s.v for v >= floor: the dual of GEM's projection.

    An active-set method (Lawson and Hanson 1974, chapter 23) by products alone (Bro and de Jong 1997).

    Args:
        products: P (K, K), symmetric and positive semidefinite.
        linear: s (K,).
    """
    start = linear + floor * products.sum(1)  # the gradient where all variables are at the floor
    above = np.zeros(len(start))  # v - floor
    free = np.zeros(len(start), bool)
    for _ in range(3 * len(start)):  # exact arithmetic never needs more; rounding may cycle
        descent = np.where(free, -np.inf, -(products @ above + start))
        if descent.max() <= _TOLERANCE * np.abs(start).max():
            break
        free[descent.argmax()] = True
        above, free = _minimize_free(products, start, above, free)
    return above + floor


def _minimize_free(
    products: Floats, start: Floats, above: Floats, free: NDArray[np.bool_]
) -> tuple[Floats, NDArray[np.bool_]]:
    """Move to the minimum over the free variables; a variable that would cross the floor stays there."""
    while True:
        goal = np.zeros_like(above)
        goal[free] = np.linalg.lstsq(products[np.ix_(free, free)], -start[free])[0]
        crossing = np.flatnonzero(free & (goal < 0))
        if not len(crossing):
            return goal, free
        fractions = above[crossing] / (above[crossing] - goal[crossing])
        free = free & (np.arange(len(free)) != crossing[fractions.argmin()])
        above = np.where(free, above + fractions.min() * (goal - above), 0.0)
