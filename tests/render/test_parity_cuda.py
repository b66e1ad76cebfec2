"""Parity images rendered on a GPU equal those of the CPU, pixel by pixel."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from everlearn import Stream
from everlearn.factors import canonical_factors, random_factors, theta
from everlearn.render import Canvas, render
from everlearn.shapes import outlines

pytestmark = pytest.mark.gpu
COLORS = ("white", "red", "#123456")


def different_pixels(shapes, factors, canvas):
    on_gpu = render(shapes, factors, canvas, "cuda").cpu().numpy()
    on_cpu = render(shapes, factors, canvas)
    assert on_gpu.dtype == on_cpu.dtype
    return (on_gpu != on_cpu).sum()


@pytest.mark.parametrize(
    ("canvas", "count"),
    [
        (Canvas(size=64, dtype="uint8", parity=True), 10_000),
        (Canvas(size=64, parity=True), 2000),
        (Canvas(size=128, channels=3, colors=COLORS, parity=True), 2000),
        (Canvas(size=224, channels=3, colors=COLORS, dtype="uint8", parity=True), 2000),
        (Canvas(size=256, parity=True), 500),
        (Canvas(size=32, channels=3, mark=None, dtype="uint8", parity=True), 2000),
        (Canvas(size=33, dtype="uint8", parity=True), 2000),
    ],
)
def test_no_pixel_differs(canvas, count):
    factors = random_factors(3, count)._replace(color=np.arange(count) % len(canvas.colors))
    assert different_pixels(outlines(3, np.arange(count)), factors, canvas) == 0


def test_no_pixel_of_a_canonical_image_differs():
    canvas = Canvas(size=224, dtype="uint8", parity=True)
    assert different_pixels(outlines(0, np.arange(1000)), canonical_factors(1000), canvas) == 0


@pytest.mark.parametrize("largest", [4, 1000])
def test_no_pixel_of_a_clipped_shape_differs(largest):
    rng = np.random.default_rng(0)
    factors = random_factors(0, 2000)._replace(
        x=rng.uniform(-1, 2, 2000),
        y=rng.uniform(-1, 2, 2000),
        scale=np.exp(rng.uniform(np.log(0.001), np.log(largest), 2000)),
    )
    canvas = Canvas(size=48, dtype="uint8", parity=True)
    assert different_pixels(outlines(0, np.arange(2000)), factors, canvas) == 0


def test_a_stream_gives_the_same_batches_on_both_devices():
    stream = Stream(tasks=2, values_per_factor=2, canvas=Canvas(parity=True))
    for on_cpu, on_gpu in zip(
        stream[1].batches(64, 2), stream[1].batches(64, 2, "cuda"), strict=True
    ):
        assert (on_cpu.labels == on_gpu.labels.cpu()).all()
        assert (on_cpu.images == on_gpu.images.cpu()).all()


def test_images_of_a_replayed_graph_are_those_of_its_inputs():
    from everlearn.render.parity_cuda import parity_cuda_renderer

    renderer = parity_cuda_renderer(outlines(0, np.arange(8)), Canvas(parity=True), "cuda")
    which = torch.arange(8, dtype=torch.int32, device="cuda")
    color = torch.zeros(8, dtype=torch.int32, device="cuda")
    maps = torch.from_numpy(theta(random_factors(0, 8))).cuda()
    out = renderer.draw(which, maps, color)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        renderer.draw(which, maps, color, out)
    maps.copy_(torch.from_numpy(theta(random_factors(1, 8))))
    graph.replay()
    expected = render(outlines(0, np.arange(8)), random_factors(1, 8), Canvas(parity=True))
    assert (out.cpu().numpy() == expected).all()
