"""Whether a shape fits into the frame; the paper's grid lets large shapes be cut at the corners."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everlearn.curves import bounding_box
from everlearn.factors import Factors, theta
from everlearn.render.trace import BOX
from everlearn.shapes import Outlines


def fits(outlines: Outlines, factors: Factors) -> NDArray[np.bool_]:
    """Tell which images (B,) show their whole shape, exact on the curve; one outline a row."""
    maps = theta(factors)
    curves = np.einsum("bij,bpkj->bpki", 2 * BOX * maps[:, :, :2], outlines.coefficients)
    curves[:, :, 0] += maps[:, None, :, 2]
    low, high = bounding_box(curves)
    return np.asarray((low >= -1).all(axis=1) & (high <= 1).all(axis=1))
