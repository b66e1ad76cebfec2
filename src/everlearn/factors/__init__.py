"""Factors of variation: tables of them, spaces they live in, and their affine map."""

from everlearn.factors.drawable import check_space
from everlearn.factors.grids import continuous_space, grid, grid_space, random
from everlearn.factors.sets import Interval, Set, Values
from everlearn.factors.spaces import UNIFORMS, Minus, Mixture, Product, Space
from everlearn.factors.table import NAMES, Factors, canonical, check_factors, theta

__all__ = [
    "NAMES",
    "UNIFORMS",
    "Factors",
    "Interval",
    "Minus",
    "Mixture",
    "Product",
    "Set",
    "Space",
    "Values",
    "canonical",
    "check_factors",
    "check_space",
    "continuous_space",
    "grid",
    "grid_space",
    "random",
    "theta",
]
