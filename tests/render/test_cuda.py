"""Images rendered on a GPU equal those of the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from everlearn import Stream
from everlearn.factors import random_factors
from everlearn.render import Canvas, render
from everlearn.shapes import outlines

pytestmark = pytest.mark.gpu
CANVASES = [
    Canvas(size=64, dtype="uint8"),
    Canvas(size=64, channels=3, colors=("white", "red", "#123456"), dtype="uint8"),
    Canvas(size=100, mark=None, dtype="uint8"),
    Canvas(size=33, dtype="uint8"),
]


@pytest.mark.parametrize("canvas", CANVASES)
def test_gpu_images_agree_with_the_cpu(canvas):
    count = 10_000
    factors = random_factors(3, count)._replace(color=np.arange(count) % len(canvas.colors))
    shapes = outlines(3, np.arange(count))
    on_cpu = render(shapes, factors, canvas).astype(int)
    on_gpu = render(shapes, factors, canvas, "cuda").cpu().numpy()
    assert np.abs(on_cpu - on_gpu).mean() <= 0.1
    assert np.abs(on_cpu - on_gpu).max() <= 2


def test_clipped_shapes_agree_with_the_cpu():
    rng = np.random.default_rng(0)
    factors = random_factors(0, 500)._replace(
        x=rng.uniform(-1, 2, 500), y=rng.uniform(-1, 2, 500), scale=rng.uniform(0.05, 4, 500)
    )
    shapes, canvas = outlines(0, np.arange(500)), Canvas(size=48, dtype="uint8")
    on_cpu = render(shapes, factors, canvas).astype(int)
    on_gpu = render(shapes, factors, canvas, "cuda").cpu().numpy()
    assert np.abs(on_cpu - on_gpu).max() <= 2


def test_rendering_twice_gives_the_same_bits():
    shapes, factors = outlines(0, np.arange(2000)), random_factors(0, 2000)
    one, two = (render(shapes, factors, Canvas(), "cuda") for _ in range(2))
    assert bool((one == two).all())


def test_float_images_are_uint8_images_over_255():
    shapes, factors = outlines(0, np.arange(100)), random_factors(0, 100)
    integer = render(shapes, factors, Canvas(dtype="uint8"), "cuda").cpu().numpy()
    floating = render(shapes, factors, Canvas(), "cuda").cpu().numpy()
    assert (floating == integer.astype(np.float32) / np.float32(255)).all()


def test_a_stream_gives_the_same_batches_on_both_devices():
    stream = Stream(tasks=2, values_per_factor=2)
    for on_cpu, on_gpu in zip(
        stream[1].batches(64, 2), stream[1].batches(64, 2, "cuda"), strict=True
    ):
        assert (on_cpu.labels == on_gpu.labels.cpu()).all()
        assert (on_cpu.theta == on_gpu.theta.cpu()).all()
        assert (on_cpu.images - on_gpu.images.cpu()).abs().max() <= 2 / 255 + 1e-6
