"""Whether shapes lie inside the image; the paper's grid clips large shapes near the corners."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everlearn.factors import Factors, theta
from everlearn.render.edges import BOX_FRACTION
from everlearn.shapes import Outlines
from everlearn.shapes.geometry import bounding_box


def fully_visible(outlines: Outlines, factors: Factors) -> NDArray[np.bool_]:
    """Return which images (B,) show their entire shape, exactly; outline b belongs to row b of factors."""
    maps = theta(factors)
    curves = np.einsum("bij,bpkj->bpki", 2 * BOX_FRACTION * maps[:, :, :2], outlines.coefficients)
    curves[:, :, 0] += maps[:, None, :, 2]
    low, high = bounding_box(curves)
    return np.asarray((low >= -1).all(axis=1) & (high <= 1).all(axis=1))
