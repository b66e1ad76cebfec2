"""Disentangled continual learning (Dziadzio et al. 2023, arXiv 2312.16731).

A net regresses the affine map from an image's class exemplar to the image; the image, brought to canonical
pose by this map, is compared with one exemplar per class. Weights hold no class, the memory holds no
weights. What differs from the paper is in docs/methods/dcl.md.
"""

from everlearn.methods.dcl.dcl import DCL
from everlearn.methods.dcl.settings import Settings

__all__ = ["DCL", "Settings"]
