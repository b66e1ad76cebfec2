"""The function `render`, which selects the CPU or the GPU renderer, and the interface of CPU renderers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everlearn.factors import Factors, check_factors, theta
from everlearn.render.canvas import Canvas
from everlearn.shapes import Outline, Outlines


def render(
    outlines: Outlines | Outline | Sequence[Outline],
    factors: Factors,
    canvas: Canvas | None = None,
    device: str = "cpu",
    *,
    which: ArrayLike | None = None,
    threads: int | None = None,
) -> Any:
    """Render images (B, C, H, W): a numpy array for "cpu", a torch tensor for "cuda".

    Args:
        outlines: one outline for all images, one per image, or a collection that `which` indexes.
        which: (B,) index of the outline of each image.
        threads: maximum number of CPU threads; all cores by default.
    """
    canvas = canvas or Canvas()
    device = check_device(device)
    batch = to_outlines(outlines)
    factors = check_factors(factors, len(canvas.colors))
    rows = _select_outlines(which, len(batch), len(factors.color))
    if len(factors.color) == 1:
        factors = factors.take(np.zeros(len(rows), np.int64))
    maps = theta(factors)
    color = factors.color.astype(np.int64)
    if device == "cpu":
        return cpu_renderer(batch, canvas).draw(rows, maps, color, threads)
    if canvas.parity:
        from everlearn.render import parity_cuda

        return parity_cuda.draw(batch, rows, maps, color, canvas, device)
    from everlearn.render import cuda

    return cuda.draw(batch, rows, maps, color, canvas, device)


class Renderer(Protocol):
    """Outlines and a canvas, prepared for rendering on the CPU."""

    def draw(
        self,
        which: NDArray[np.int64],
        maps: NDArray[np.float64],
        color: NDArray[np.int64],
        threads: int | None = None,
    ) -> NDArray[Any]:
        """Render outline which[b] under the affine map maps[b] (2, 3); return (B, C, H, W)."""


def cpu_renderer(outlines: Outlines, canvas: Canvas) -> Renderer:
    """Return the CPU renderer for the canvas: anti-aliased, or in parity with the original package."""
    try:
        import numba  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "rendering on the CPU needs numba; install it with: pip install numba"
        ) from error
    if canvas.parity:
        from everlearn.render import parity

        return parity.ParityRenderer(outlines, canvas)
    from everlearn.render import cpu

    return cpu.CpuRenderer(outlines, canvas)


def check_device(device: str) -> str:
    """Return the device name; raise if it is unknown or not available."""
    name = str(device)
    if name == "cpu":
        return name
    if name != "cuda" and not (name.startswith("cuda:") and name[5:].isdecimal()):
        raise ValueError(f"unknown device {name!r}; known: cpu, cuda, cuda:0, cuda:1, ...")
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count == 0:
        raise ValueError(f"device {name!r} was requested, but torch sees no GPU; use 'cpu'")
    if name != "cuda" and int(name[5:]) >= count:
        raise ValueError(f"device {name!r} was requested, but torch sees only {count} GPU(s)")
    return name


def to_outlines(outlines: Outlines | Outline | Sequence[Outline]) -> Outlines:
    """Convert an outline or a sequence of outlines to a batch."""
    if isinstance(outlines, Outlines):
        return outlines
    curves = [outlines] if isinstance(outlines, Outline) else list(outlines)
    if not curves:
        raise ValueError("render needs at least one outline, found none")
    max_pieces = max(len(curve.coefficients) for curve in curves)
    coefficients = np.zeros((len(curves), max_pieces, 4, 2))
    for row, curve in enumerate(curves):
        count = len(curve.coefficients)
        coefficients[row, :count] = curve.coefficients
        coefficients[row, count:, 0] = curve.coefficients[0, 0]
    pieces = np.array([len(curve.coefficients) for curve in curves])
    return Outlines(coefficients, pieces, np.array([curve.order for curve in curves]))


def _select_outlines(which: ArrayLike | None, outlines: int, images: int) -> NDArray[np.int64]:
    """Return the outline index of each image."""
    if which is not None:
        rows = np.atleast_1d(np.asarray(which))
        if rows.dtype.kind not in "iu" or rows.ndim != 1 or images not in (1, len(rows)):
            raise ValueError(
                f"which must hold one whole number per image ({images}), found {rows.dtype} {rows.shape}"
            )
        if len(rows) and not 0 <= rows.min() <= rows.max() < outlines:
            raise ValueError(
                f"which must lie in 0 .. {outlines - 1}, found {rows.min()} .. {rows.max()}"
            )
        return rows.astype(np.int64)
    if outlines == 1:
        return np.zeros(images, np.int64)
    if images not in (1, outlines):
        raise ValueError(
            f"found {outlines} outlines and {images} rows of factors; pass one outline, one row of "
            "factors, equally many of both, or `which` with the outline of each image"
        )
    return np.arange(outlines)
