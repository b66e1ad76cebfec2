"""The colour of a shape: regressed beside its map, and replaced by the colour of exemplars."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from everlearn.render.canvas import Canvas

CHANNELS = 3
_RIDGE = 1e-3  # keeps unmixing stable where a shape and its mark differ from the background alike


class Palette(NamedTuple):
    """Colours of a canvas, in [0, 1].

    Attributes:
        background: (3,).
        mark: (3,); the background where there is no mark.
        shapes: (K, 3), that of exemplars first.
    """

    background: Tensor
    mark: Tensor
    shapes: Tensor


def build_palette(canvas: object, device: str) -> Palette:
    """Return the colours of a canvas of three channels."""
    if not isinstance(canvas, Canvas) or canvas.channels != CHANNELS:
        raise ValueError(
            f"regress_color needs sprites with 3 channels, found {canvas!r}; give the stream "
            "Canvas(channels=3, colors=...), or leave regress_color off"
        )
    levels = canvas.levels
    mark = levels.background if canvas.mark is None else levels.mark[0]
    tables = (levels.background, mark, levels.shape)
    return Palette(*(torch.from_numpy(table / 255.0).float().to(device) for table in tables))


def recolor(images: Tensor, colors: Tensor, palette: Palette) -> Tensor:
    """Replace the colours (B, 3) of shapes in images by that of exemplars.

    Each pixel x is a mixture: x - background = a (color - background) + m (mark - background). The
    coverage a of the shape is the least-squares solution; a (exemplar color - color) is added.
    """
    shape = colors - palette.background
    mark = palette.mark - palette.background
    rest = images - palette.background[:, None, None]
    along_shape = torch.einsum("bchw,bc->bhw", rest, shape)
    along_mark = torch.einsum("bchw,c->bhw", rest, mark)
    # The normal equations of two unknowns, solved by Cramer's rule.
    shape_shape = (shape.square().sum(1) + _RIDGE)[:, None, None]
    shape_mark = (shape @ mark)[:, None, None]
    mark_mark = mark.square().sum() + _RIDGE
    determinant = shape_shape * mark_mark - shape_mark.square()
    coverage = (mark_mark * along_shape - shape_mark * along_mark) / determinant
    change = palette.shapes[0] - colors
    return images + coverage.clamp(0, 1)[:, None] * change[:, :, None, None]
