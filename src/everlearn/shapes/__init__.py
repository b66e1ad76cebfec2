"""An endless supply of shapes: outline(seed, shape_id) is a closed curve, a pure function of its arguments.

Vertices are scattered around a circle, joined by straight lines or a periodic cubic spline, rotated
until the long axis is upright, fitted into a unit box and centred on the centroid of the enclosed
area. All geometry is exact on the curve: a shape does not depend on any canvas.
"""

from everlearn.shapes.closed_curve import Outline, Outlines
from everlearn.shapes.sampling import outline, outlines
from everlearn.shapes.style import PAPER_STYLE, ShapeStyle

__all__ = ["PAPER_STYLE", "Outline", "Outlines", "ShapeStyle", "outline", "outlines"]
