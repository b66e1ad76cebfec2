"""Speeds and errors of the generator on this machine, as rows."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from everlearn.disk import write_file
from everlearn.factors import Factors, canonical, random, theta
from everlearn.render.canvas import Canvas
from everlearn.shapes import Outlines, outlines

Row = dict[str, Any]
SHAPES = 10


def measure_rate(work: Callable[[], object], count: int, seconds: float = 1.0) -> float:
    """Things done a second, when one call does `count`: the median of calls over `seconds`."""
    work()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return count / statistics.median(times)


def poses(count: int, size: int, dtype: str = "uint8") -> tuple[Outlines, Factors, Canvas, Any]:
    """Ten shapes in `count` random poses on a grey canvas, and the shape of each."""
    return (
        outlines(0, np.arange(SHAPES)),
        random(0, count),
        Canvas(size=size, dtype=dtype),
        np.arange(count) % SHAPES,
    )


def cpu_rate(size: int, threads: int, seconds: float = 1.0) -> float:
    """Grey uint8 images a second on some threads, in batches of 16 Mi pixels."""
    from everlearn.render import cpu_pen

    count = 2**24 // size**2
    shapes, factors, canvas, which = poses(count, size)
    ready = cpu_pen(shapes, canvas)
    return measure_rate(
        lambda: ready.draw(which, theta(factors), factors.color, threads), count, seconds
    )


def gpu_rate(
    size: int, device: str = "cuda", dtype: str = "float32", seconds: float = 1.0
) -> float:
    """Grey images a second on a GPU, in batches of about 256 Mi pixels, into the same memory."""
    import torch

    from everlearn.render.cuda import pen

    count = 2**28 // size**2
    shapes, factors, canvas, which = poses(count, size, dtype)
    ready = pen(shapes, canvas, device)
    rows = torch.as_tensor(which, dtype=torch.int32, device=device)
    maps = torch.as_tensor(theta(factors), dtype=torch.float32, device=device)
    color = torch.zeros(count, dtype=torch.int32, device=device)
    out = ready.draw(rows, maps, color)

    def work() -> None:
        ready.draw(rows, maps, color, out)
        torch.cuda.synchronize(device)

    return measure_rate(work, count, seconds)


def outline_rate(count: int = 8192, seconds: float = 1.0) -> float:
    """Outlines a second, in batches, on one core."""
    return measure_rate(lambda: outlines(1, np.arange(count)), count, seconds)


def oracle_error(
    images: int = 1000, size: int = 64, samples: int = 16, mark: bool = True
) -> tuple[float, float]:
    """Mean and largest difference, in levels of 255, to samples x samples points a pixel."""
    from everlearn.render import reference, render

    canvas = Canvas(size=size, dtype="uint8", mark="black" if mark else None)
    factors, shapes = random(2, images), outlines(2, np.arange(images))
    maps, which = theta(factors), np.arange(images)
    slow = reference.draw(shapes, which, maps, factors.color, canvas, samples)
    difference = np.abs(render(shapes, factors, canvas) - slow)
    return float(difference.mean()), float(difference.max())


def device_error(device: str, images: int = 10_000, size: int = 64) -> tuple[float, float]:
    """Mean and largest difference, in levels of 255, between a GPU and the CPU."""
    from everlearn.render import render

    factors, canvas = random(3, images), Canvas(size=size, dtype="uint8")
    shapes = outlines(3, np.arange(images))
    here = render(shapes, factors, canvas).astype(np.int64)
    there = render(shapes, factors, canvas, device).cpu().numpy()
    difference = np.abs(here - there)
    return float(difference.mean()), float(difference.max())


def warm_up() -> None:
    """Compile what is compiled on first use."""
    from everlearn.render import render

    for dtype in ("uint8", "float32"):
        render(outlines(0, [0]), canonical(), Canvas(size=8, dtype=dtype))


def gpu_name() -> str | None:
    """Name the card that torch would use, if any."""
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Replace a file of JSON lines, whole or not at all."""
    write_file(path, "".join(json.dumps(row) + "\n" for row in rows).encode())
