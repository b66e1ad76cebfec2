"""Measure the generator: python benchmarks/render.py --out results [--device cuda].

On a CPU every speed is a ratio to the package `idsprites`, taken in the same run, turn by turn.
Rows go to OUT/render_cpu.jsonl or OUT/render_gpu.jsonl.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from everlearn import Canvas, Stream, outlines, render
from everlearn.core.provenance import provenance
from everlearn.factors import random_factors
from everlearn.render import benchmark as bench

Row = dict[str, Any]
SIZES = (64, 128, 256)


def peer_rate(size: int, count: int = 300) -> float:
    """Grey images a second of `idsprites`, one shape, random poses."""
    from idsprites.infinite_dsprites import Factors, InfiniteDSprites

    np.random.seed(0)
    peer = InfiniteDSprites(img_size=size, grayscale=True)
    shape = peer.generate_shape()
    numbers = np.random.default_rng(0).random((count, 4))
    poses = [
        Factors(shape, (1.0, 1.0, 1.0), 0, 0.5 + s / 2, 2 * np.pi * turn, x, y)
        for s, turn, x, y in numbers
    ]
    return bench.measure_rate(lambda: [peer.draw(pose) for pose in poses], count, 1.0)


def against_peer(rounds: int = 3) -> list[Row]:
    """Our speed on one core over the peer's, the two measured in turn."""
    rows = []
    for size in SIZES:
        pairs = [(bench.cpu_rate(size, 1), peer_rate(size)) for _ in range(rounds)]
        ours, peer = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(mine / other for mine, other in pairs)
        rows.append(
            {"what": "images/s, one core, grey uint8, against idsprites", "size": size,
             "value": ratio, "ours": ours, "idsprites": peer, "bar": 25, "aim": 50}
        )  # fmt: skip
    return rows


def parity() -> list[Row]:
    """Share of pixels of our parity mode that equal the peer's drawing of the same curve."""
    from idsprites.infinite_dsprites import Factors, InfiniteDSprites

    shapes, factors, equal = outlines(5, np.arange(200)), random_factors(4, 200), []
    ours = render(shapes, factors, Canvas(size=128, parity=True, dtype="uint8"))
    peer = InfiniteDSprites(img_size=128, grayscale=True)
    for row in range(200):
        pose = [column[row] for column in factors[1:]]
        theirs = peer.draw(Factors(shapes[row].points.T, (1.0, 1.0, 1.0), 0, *pose))
        equal.append((np.rint(theirs * 255) == ours[row]).mean())
    return [{"what": "pixels of the parity mode equal to idsprites, 200 images at 128 px",
             "value": float(np.mean(equal)), "aim": 1}]  # fmt: skip


def parity_speed() -> list[Row]:
    """Images a second of the parity mode."""
    return [
        {"what": "images/s, one core, grey uint8, parity", "size": size,
         "value": bench.cpu_rate(size, 1, parity=True)} for size in SIZES
    ]  # fmt: skip


def two_cores(rounds: int = 5) -> list[Row]:
    """Speed on two cores over speed on one."""
    rows = []
    for size in SIZES:
        pairs = [(bench.cpu_rate(size, 2), bench.cpu_rate(size, 1)) for _ in range(rounds)]
        ratio = statistics.median(two / one for two, one in pairs)
        rows.append(
            {"what": "two cores against one", "size": size, "value": ratio, "bar": 1.7, "aim": 1.9}
        )
    return rows


def outline_speed() -> list[Row]:
    """Outlines a second, in batches."""
    rate = bench.outline_rate()
    return [
        {"what": "outlines/s, one core, in batches", "value": rate, "bar": 20_000, "aim": 50_000}
    ]


def oracle() -> list[Row]:
    """Error against supersampling; a finer grid shows what is the renderer's and what the grid's."""
    rows = []
    for images, samples, mark in ((1000, 16, True), (1000, 16, False), (100, 64, True)):
        mean, largest = bench.oracle_error(images, 64, samples, mark)
        what = f"levels of 255 off {samples}x{samples} samples a pixel, {images} images at 64 px"
        rows.append(
            {"what": what + ("" if mark else ", no mark"), "value": mean, "max": largest,
             "bar": 0.5, "bar_max": 4}
        )  # fmt: skip
    return rows


def addressing() -> list[Row]:
    """Time from stream[10**9] to its first batch over the time for stream[0], in turn."""
    stream = Stream(tasks=None)

    def first_batch(index: int) -> float:
        start = time.perf_counter()
        next(stream[index].batches(256))
        return time.perf_counter() - start

    first_batch(0)
    pairs = [(first_batch(10**9 + 7 * i), first_batch(7 * i)) for i in range(200)]
    far, near = (statistics.median(column) for column in zip(*pairs, strict=True))
    return [{"what": "stream[10**9] to its first batch, against stream[0]", "value": far / near,
             "seconds": far, "bar": 1.2}]  # fmt: skip


def memory_growth(tasks: int = 10_000) -> list[Row]:
    """Growth of the process while it goes through tasks, a batch of each."""
    stream = Stream(tasks=tasks)
    for index in range(100):
        next(stream[index].batches(64))
    before = _resident()
    for task in stream:
        next(task.batches(64))
    return [{"what": f"memory growth over {tasks} tasks, MB", "value": (_resident() - before) / 2**20,
             "bar": 20, "aim": 0}]  # fmt: skip


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def import_time() -> list[Row]:
    """Seconds that `import everlearn` takes, and whether it loads torch."""
    code = (
        "import time, sys; s = time.perf_counter(); import everlearn; "
        "print(time.perf_counter() - s, 'torch' in sys.modules)"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            for _ in range(5)]  # fmt: skip
    seconds = statistics.median(float(run.stdout.split()[0]) for run in runs)
    loads = any(run.stdout.split()[1] == "True" for run in runs)
    return [
        {"what": "import everlearn, seconds", "value": seconds, "loads_torch": loads, "bar": 0.2}
    ]


def gpu_speed() -> list[Row]:
    """Images a second on the GPU, and how far they are from the CPU's."""
    rows: list[Row] = []
    for size, bar, aim in ((64, 10e6, 20e6), (128, 3e6, 6e6), (224, 1e6, 2e6)):
        for dtype in ("float32", "uint8"):
            rate = bench.gpu_rate(size, dtype=dtype)
            rows.append({"what": f"images/s, GPU, grey {dtype}", "size": size, "value": rate,
                         "bar": bar, "aim": aim})  # fmt: skip
    mean, largest = bench.device_error("cuda")
    rows.append({"what": "levels of 255, GPU against CPU, 10000 images at 64 px", "value": mean,
                 "max": largest, "bar": 0.1, "bar_max": 2})  # fmt: skip
    return rows


def gpu_parity() -> list[Row]:
    """Images a second of the parity mode on the GPU, and pixels that differ from the CPU's."""
    rows: list[Row] = []
    for size, bar, aim in ((64, 10e6, 40e6), (128, 3e6, 10e6), (224, 1e6, 3e6)):
        for dtype in ("float32", "uint8"):
            rate = bench.gpu_rate(size, dtype=dtype, parity=True)
            rows.append({"what": f"images/s, GPU, grey {dtype}, parity", "size": size,
                         "value": rate, "bar": bar, "aim": aim})  # fmt: skip
        rows.append({"what": "pixels that differ, GPU against CPU, 10000 parity images",
                     "size": size, "value": bench.parity_difference("cuda", size=size),
                     "bar": 0})  # fmt: skip
    return rows


CPU_PARTS = (
    against_peer,
    parity,
    parity_speed,
    two_cores,
    outline_speed,
    oracle,
    addressing,
    memory_growth,
    import_time,
)


def main() -> None:
    """Run the parts for a device and write their rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    bench.warm_up()
    source = provenance(bench.gpu_name())
    rows = []
    for part in CPU_PARTS if options.device == "cpu" else (gpu_speed, gpu_parity):
        for row in part():
            print(row, flush=True)
            rows.append({**row, **source})
    bench.write_rows(
        options.out / f"render_{'cpu' if options.device == 'cpu' else 'gpu'}.jsonl", rows
    )


if __name__ == "__main__":
    main()
