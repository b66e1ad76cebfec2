"""Images born on a GPU equal those of the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from everlearn import Stream
from everlearn.factors import canonical, random
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
def test_g7_the_gpu_agrees_with_the_cpu(canvas):
    count = 10_000
    factors = random(3, count)._replace(color=np.arange(count) % len(canvas.colors))
    shapes = outlines(3, np.arange(count))
    here = render(shapes, factors, canvas).astype(int)
    there = render(shapes, factors, canvas, "cuda").cpu().numpy()
    assert np.abs(here - there).mean() <= 0.1
    assert np.abs(here - there).max() <= 2


def test_shapes_cut_by_the_frame_agree_with_the_cpu():
    rng = np.random.default_rng(0)
    factors = random(0, 500)._replace(
        x=rng.uniform(-1, 2, 500), y=rng.uniform(-1, 2, 500), scale=rng.uniform(0.05, 4, 500)
    )
    shapes, canvas = outlines(0, np.arange(500)), Canvas(size=48, dtype="uint8")
    here = render(shapes, factors, canvas).astype(int)
    there = render(shapes, factors, canvas, "cuda").cpu().numpy()
    assert np.abs(here - there).max() <= 2


def test_two_drawings_are_equal_bit_for_bit():
    shapes, factors = outlines(0, np.arange(2000)), random(0, 2000)
    one, two = (render(shapes, factors, Canvas(), "cuda") for _ in range(2))
    assert bool((one == two).all())


def test_float_images_are_uint8_images_over_255():
    shapes, factors = outlines(0, np.arange(100)), random(0, 100)
    whole = render(shapes, factors, Canvas(dtype="uint8"), "cuda").cpu().numpy()
    fraction = render(shapes, factors, Canvas(), "cuda").cpu().numpy()
    assert (fraction == whole.astype(np.float32) / np.float32(255)).all()


def test_a_stream_gives_the_same_rows_on_either_device():
    stream = Stream(tasks=2, values_per_factor=2)
    for here, there in zip(stream[1].batches(64, 2), stream[1].batches(64, 2, "cuda"), strict=True):
        assert (here.labels == there.labels.cpu()).all()
        assert (here.theta == there.theta.cpu()).all()
        assert (here.images - there.images.cpu()).abs().max() <= 2 / 255 + 1e-6


def test_parity_images_are_the_same_on_either_device():
    shapes, canvas = outlines(0, [0, 1]), Canvas(parity=True)
    there = render(shapes, canonical(2), canvas, "cuda").cpu().numpy()
    assert (there == render(shapes, canonical(2), canvas)).all()
