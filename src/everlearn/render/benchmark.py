"""Measure the speed and the accuracy of rendering on this machine."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everlearn.core.files import write_file
from everlearn.factors import Factors, canonical_factors, random_factors, theta
from everlearn.render.canvas import Canvas
from everlearn.shapes import Outlines, outlines

Row = dict[str, Any]
Images = NDArray[Any]
SHAPES = 10


def measure_rate(work: Callable[[], object], count: int, seconds: float = 1.0) -> float:
    """Return items per second, where one call handles `count`: the median over `seconds` of calls."""
    work()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return count / statistics.median(times)


def random_poses(
    count: int, size: int, dtype: str = "uint8", parity: bool = False
) -> tuple[Outlines, Factors, Canvas, Any]:
    """Return ten shapes, `count` random poses, a grey canvas and the shape of each pose."""
    return (
        outlines(0, np.arange(SHAPES)),
        random_factors(0, count),
        Canvas(size=size, dtype=dtype, parity=parity),
        np.arange(count) % SHAPES,
    )


def cpu_rate(size: int, threads: int, seconds: float = 1.0, parity: bool = False) -> float:
    """Return grey uint8 images per second on some threads, in batches of 16 Mi pixels."""
    from everlearn.render import cpu_renderer

    count = 2**24 // size**2
    shapes, factors, canvas, which = random_poses(count, size, parity=parity)
    renderer = cpu_renderer(shapes, canvas)
    return measure_rate(
        lambda: renderer.draw(which, theta(factors), factors.color, threads), count, seconds
    )


def gpu_rate(
    size: int,
    device: str = "cuda",
    dtype: str = "float32",
    seconds: float = 1.0,
    parity: bool = False,
) -> float:
    """Return grey images per second on a GPU, in batches of about 256 Mi pixels, into one tensor."""
    import torch

    from everlearn.render.cuda import cuda_renderer
    from everlearn.render.parity_cuda import parity_cuda_renderer

    count = 2**28 // size**2
    shapes, factors, canvas, which = random_poses(count, size, dtype, parity)
    renderer = (parity_cuda_renderer if parity else cuda_renderer)(shapes, canvas, device)
    rows = torch.as_tensor(which, dtype=torch.int32, device=device)
    maps = torch.as_tensor(theta(factors), dtype=renderer.map_dtype, device=device)
    color = torch.zeros(count, dtype=torch.int32, device=device)
    out = renderer.draw(rows, maps, color)

    def work() -> None:
        renderer.draw(rows, maps, color, out)
        torch.cuda.synchronize(device)

    return measure_rate(work, count, seconds)


def outline_rate(count: int = 8192, seconds: float = 1.0) -> float:
    """Return outlines per second, in batches, on one core."""
    return measure_rate(lambda: outlines(1, np.arange(count)), count, seconds)


def oracle_error(
    images: int = 1000, size: int = 64, samples: int = 16, mark: bool = True
) -> tuple[float, float]:
    """Return the mean and largest difference, in levels, to samples x samples points per pixel."""
    from everlearn.render import oracle as reference
    from everlearn.render import render

    canvas = Canvas(size=size, dtype="uint8", mark="black" if mark else None)
    factors = random_factors(2, images)
    which = np.arange(images)
    shapes = outlines(2, which)
    exact = reference.draw(shapes, which, theta(factors), factors.color, canvas, samples)
    difference = np.abs(render(shapes, factors, canvas) - exact)
    return float(difference.mean()), float(difference.max())


def device_error(device: str, images: int = 10_000, size: int = 64) -> tuple[float, float]:
    """Return the mean and largest difference, in levels, between a GPU and the CPU."""
    on_cpu, on_gpu = _on_both_devices(device, images, Canvas(size=size, dtype="uint8"))
    difference = np.abs(on_cpu.astype(np.int64) - on_gpu)
    return float(difference.mean()), float(difference.max())


def parity_difference(device: str, images: int = 10_000, size: int = 64) -> int:
    """Return how many pixels of parity images differ between a GPU and the CPU."""
    canvas = Canvas(size=size, dtype="uint8", parity=True)
    on_cpu, on_gpu = _on_both_devices(device, images, canvas)
    return int((on_cpu != on_gpu).sum())


def _on_both_devices(device: str, images: int, canvas: Canvas) -> tuple[Images, Images]:
    """Return images of distinct shapes in random poses, rendered by the CPU and by a GPU."""
    from everlearn.render import render

    factors = random_factors(3, images)
    shapes = outlines(3, np.arange(images))
    on_gpu = render(shapes, factors, canvas, device).cpu().numpy()
    return render(shapes, factors, canvas), on_gpu


def warm_up() -> None:
    """Compile the numba kernels, which otherwise happens on first use."""
    from everlearn.render import render

    for dtype in ("uint8", "float32"):
        render(outlines(0, [0]), canonical_factors(), Canvas(size=8, dtype=dtype))


def gpu_name() -> str | None:
    """Return the name of the GPU that torch would use, if any."""
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write a file of JSON lines atomically."""
    write_file(path, "".join(json.dumps(row) + "\n" for row in rows).encode())
