"""Factors of variation: tables, sampling spaces and affine maps."""

from everlearn.factors.grids import continuous_space, grid, grid_space, random_factors
from everlearn.factors.sets import Interval, Values, ValueSet
from everlearn.factors.spaces import UNIFORMS_PER_SAMPLE, Difference, Mixture, Product, Space
from everlearn.factors.table import FACTOR_NAMES, Factors, canonical_factors, check_factors, theta
from everlearn.factors.validation import check_space

__all__ = [
    "FACTOR_NAMES",
    "UNIFORMS_PER_SAMPLE",
    "Difference",
    "Factors",
    "Interval",
    "Mixture",
    "Product",
    "Space",
    "ValueSet",
    "Values",
    "canonical_factors",
    "check_factors",
    "check_space",
    "continuous_space",
    "grid",
    "grid_space",
    "random_factors",
    "theta",
]
