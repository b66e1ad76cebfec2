"""Images from outlines and factors: render(outlines, factors, canvas, device) picks the back end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everlearn.factors import Factors, check_factors, theta
from everlearn.render.canvas import Canvas, parse_color
from everlearn.shapes import Outline, Outlines

__all__ = ["Canvas", "check_device", "parse_color", "render"]


def render(
    outlines: Outlines | Outline | Sequence[Outline],
    factors: Factors,
    canvas: Canvas | None = None,
    device: str = "cpu",
    *,
    which: ArrayLike | None = None,
    threads: int | None = None,
) -> Any:
    """Draw images (B, C, H, W): a numpy array for "cpu", a torch tensor for "cuda".

    Args:
        outlines: one curve for all images, or one for each, or those that `which` chooses from.
        which: (B,) the outline of each image.
        threads: how many threads the CPU may use; all cores by default.
    """
    canvas = canvas or Canvas()
    device = check_device(device)
    curves = gather(outlines)
    factors = check_factors(factors, len(canvas.colors))
    chosen = _choose(which, len(curves), len(factors.color))
    if len(factors.color) == 1:
        factors = factors.take(np.zeros(len(chosen), np.int64))
    maps, color = theta(factors), factors.color.astype(np.int64)
    if device == "cpu":
        return cpu_pen(curves, canvas).draw(chosen, maps, color, threads)
    if canvas.parity:
        import torch

        return torch.from_numpy(cpu_pen(curves, canvas).draw(chosen, maps, color)).to(device)
    from everlearn.render import cuda

    return cuda.draw(curves, chosen, maps, color, canvas, device)


class Pen(Protocol):
    """Outlines and colours on the CPU, ready to draw."""

    def draw(
        self,
        which: NDArray[np.int64],
        maps: NDArray[np.float64],
        color: NDArray[np.int64],
        threads: int | None = None,
    ) -> NDArray[Any]:
        """Draw outline which[b] under the affine map maps[b] (2, 3); (B, C, H, W)."""


def cpu_pen(outlines: Outlines, canvas: Canvas) -> Pen:
    """Make ready to draw on the CPU, in the canvas's mode."""
    try:
        import numba  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "drawing on the CPU needs numba; install it with: pip install numba"
        ) from error
    if canvas.parity:
        from everlearn.render import parity

        return parity.Pen(outlines, canvas)
    from everlearn.render import cpu

    return cpu.Pen(outlines, canvas)


def check_device(device: str) -> str:
    """Return the device, or say which there are."""
    name = str(device)
    if name == "cpu":
        return name
    if name != "cuda" and not (name.startswith("cuda:") and name[5:].isdecimal()):
        raise ValueError(f"unknown device {name!r}; known: cpu, cuda, cuda:0, cuda:1, ...")
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count == 0:
        raise ValueError(f"device {name!r} was asked for, but torch sees no GPU here; use 'cpu'")
    if name != "cuda" and int(name[5:]) >= count:
        raise ValueError(f"device {name!r} was asked for, but torch sees only {count} GPU(s)")
    return name


def gather(outlines: Outlines | Outline | Sequence[Outline]) -> Outlines:
    """Make one batch of whatever form outlines come in."""
    if isinstance(outlines, Outlines):
        return outlines
    several = [outlines] if isinstance(outlines, Outline) else list(outlines)
    if not several:
        raise ValueError("render needs one outline at least, found none")
    most = max(len(one.coefficients) for one in several)
    table = np.zeros((len(several), most, 4, 2))
    for row, one in enumerate(several):
        count = len(one.coefficients)
        table[row, :count] = one.coefficients
        table[row, count:, 0] = one.coefficients[0, 0]
    pieces = np.array([len(one.coefficients) for one in several])
    return Outlines(table, pieces, np.array([one.order for one in several]))


def _choose(which: ArrayLike | None, outlines: int, images: int) -> NDArray[np.int64]:
    if which is not None:
        chosen = np.atleast_1d(np.asarray(which))
        if chosen.dtype.kind not in "iu" or chosen.ndim != 1 or images not in (1, len(chosen)):
            raise ValueError(
                f"which must be whole numbers, one an image ({images}), found {chosen.dtype} {chosen.shape}"
            )
        if len(chosen) and not 0 <= chosen.min() <= chosen.max() < outlines:
            raise ValueError(
                f"which must lie in 0 .. {outlines - 1}, found {chosen.min()} .. {chosen.max()}"
            )
        return chosen.astype(np.int64)
    if outlines == 1:
        return np.zeros(images, np.int64)
    if images not in (1, outlines):
        raise ValueError(
            f"found {outlines} outlines and {images} rows of factors; give one outline, one row of "
            "factors, or as many of each, or say with `which` which outline each image shows"
        )
    return np.arange(outlines)


class _Renderer(ModuleType):
    """Lets `everlearn.render`, the name of this package, be called as the function it is known for."""

    __call__ = staticmethod(render)


sys.modules[__name__].__class__ = _Renderer
