"""Shapes without end: outline(seed, shape_id) is a closed curve, a pure function of its arguments.

Vertices are scattered around a circle, joined by straight lines or a periodic cubic spline, turned
so that the long axis stands upright, fitted into a unit box and centred on the centroid of the
enclosed area. All geometry is exact on the curve: a shape does not depend on any canvas.
"""

from everlearn.shapes.curve import Outline, Outlines
from everlearn.shapes.draw import outline, outlines
from everlearn.shapes.style import PAPER_STYLE, ShapeStyle

__all__ = ["PAPER_STYLE", "Outline", "Outlines", "ShapeStyle", "outline", "outlines"]
