"""Parity mode renders like the original package."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from everlearn.factors import random_factors, theta
from everlearn.render import Canvas, cpu_renderer, render
from everlearn.render.parity import add_edge
from everlearn.shapes import outlines


def fill(vertices, size):
    """Fill a polygon (n, 2) of integers by sorted crossings and rounded lines, in floating point."""
    filled = np.zeros((size, size), bool)
    edges = np.stack((vertices, np.roll(vertices, -1, axis=0)), axis=1)
    for y in range(size):
        (x0, y0), (x1, y1) = edges[(edges[:, 0, 1] <= y) != (edges[:, 1, 1] <= y)].transpose(
            1, 2, 0
        )
        crossings = np.sort(x0 + (y - y0) * (x1 - x0) / (y1 - y0))
        for low, high in crossings.reshape(-1, 2):
            filled[y, max(int(np.ceil(low)), 0) : max(int(np.floor(high)) + 1, 0)] = True
    for start, end in np.unique(edges, axis=0):
        steps = max(np.abs(end - start).max(), 1)
        line = np.rint(start + (end - start) * np.arange(steps + 1)[:, None] / steps).astype(int)
        x, y = line[((line >= 0) & (line < size)).all(axis=1)].T
        filled[y, x] = True
    return filled


def draw_plainly(outline, matrix, canvas):
    """Render one image of three levels, (H, W): 0 background, 1 shape, 2 mark."""
    size = canvas.size
    center = (1.0 + matrix[:, 2]) * (size / 2)
    vertices = outline.points @ (0.45 * size * matrix[:, :2]).T + center
    x, y = np.meshgrid(np.arange(size), np.arange(size))
    marked = matrix[0, 0] * (x - center[0]) + matrix[1, 0] * (y - center[1]) > 0
    return fill(vertices.astype(np.int64), size) * np.where(marked, 2, 1)


@pytest.mark.parametrize(
    ("size", "scale", "count"),
    [(64, (0.5, 1), 150), (33, (0.01, 4), 100), (100, (1, 3), 30), (48, (4, 1000), 40)],
)
def test_pixels_equal_scan_lines_in_floating_point(size, scale, count):
    rng = np.random.default_rng(size)
    spread = 0 if scale[1] <= 1 else 1  # larger shapes also lie outside the image
    position = rng.uniform(-spread, 1 + spread, (2, count))
    factors = random_factors(size, count)._replace(
        scale=np.exp(rng.uniform(*np.log(scale), count)), x=position[0], y=position[1]
    )
    colors = {"background": "#000000", "colors": ("#010101",), "mark": "#020202"}
    canvas = Canvas(size=size, parity=True, dtype="uint8", **colors)
    shapes = outlines(size, np.arange(count))
    expected = [draw_plainly(shapes[i], m, canvas) for i, m in enumerate(theta(factors))]
    assert (render(shapes, factors, canvas)[:, 0] == expected).all()


def exact_cells(size, xa, ya, xb, yb):
    """Return what `add_edge` must mark, by fractions: bit 1 where rows are crossed, bit 2 on the line."""
    cells = np.zeros((size, size), np.uint8)
    for y in range(max(min(ya, yb), 0), min(max(ya, yb), size)):
        column = max(ceil(xa + Fraction((y - ya) * (xb - xa), yb - ya)), 0)
        if column < size:
            cells[y, column] += 1
    steps = max(abs(xb - xa), abs(yb - ya))
    for k in range(1, steps):
        # `round` of a fraction is exact and rounds halves to the even number.
        x = round(xa + Fraction((xb - xa) * k, steps))
        y = round(ya + Fraction((yb - ya) * k, steps))
        if 0 <= x < size and 0 <= y < size:
            cells[y, x] |= 2
    return cells


def test_an_edge_marks_the_rows_and_pixels_that_fractions_give():
    rng = np.random.default_rng(0)
    near = rng.integers(0, 8, (600, 4))
    far = rng.integers(-40, 60, (600, 4))
    for edge in np.concatenate((near, far)).tolist():
        cells = np.zeros((20, 20), np.uint8)
        add_edge(cells, *edge)
        assert (cells == exact_cells(20, *edge)).all(), edge


def test_threads_do_not_change_images():
    count = 600
    renderer = cpu_renderer(outlines(0, np.arange(3)), Canvas(parity=True))
    images = np.arange(count) % 3, theta(random_factors(0, count)), np.zeros(count, np.int64)
    assert (renderer.draw(*images, threads=1) == renderer.draw(*images, threads=2)).all()


def test_every_colour_channel_has_its_own_levels():
    canvas = Canvas(channels=3, colors=("white", "#102030"), mark=None, parity=True, dtype="uint8")
    factors = random_factors(0, 6)._replace(color=np.arange(6) % 2)
    shapes = outlines(0, np.arange(6))
    grey = render(shapes, factors._replace(color=np.zeros(6)), Canvas(mark=None, parity=True))
    filled = grey[:, 0] == 1
    drawn = render(shapes, factors, canvas)
    for c, level in enumerate((16, 32, 48)):
        assert (drawn[::2, c] == np.where(filled[::2], 255, 169)).all()
        assert (drawn[1::2, c] == np.where(filled[1::2], level, 169)).all()


def test_images_have_exactly_three_levels():
    canvas = Canvas(size=64, parity=True)
    drawn = render(outlines(0, np.arange(20)), random_factors(0, 20), canvas)
    assert np.unique(drawn * 255).tolist() == [0, 169, 255]


def test_aliased_shapes_are_too_large():
    """Truncated vertices and filled boundaries bias the area, which exact coverage avoids."""
    canvas = Canvas(size=64, parity=True, background="black", mark=None)
    shapes = outlines(0, np.arange(100))
    area = render(shapes, random_factors(0, 100)._replace(scale=np.ones(100)), canvas).sum(
        axis=(1, 2, 3)
    )
    assert 1.05 < (area / (shapes.areas * 28.8**2)).mean() < 1.2


def test_pixels_equal_stored_images_of_the_original_package():
    """original.png holds 24 images that idsprites 1.0.1 drew of these outlines in these poses."""
    sheet = np.asarray(Image.open(Path(__file__).with_name("original.png")))
    original = sheet.reshape(4, 64, 6, 64).transpose(0, 2, 1, 3).reshape(24, 64, 64)
    shapes, factors = outlines(5, np.arange(24)), random_factors(4, 24)
    ours = render(shapes, factors, Canvas(size=64, parity=True, dtype="uint8"))
    assert (ours[:, 0] == original).all()


@pytest.mark.parametrize("size", [64, 100])
def test_pixels_equal_those_of_the_installed_original_package(size):
    peer = pytest.importorskip("idsprites.infinite_dsprites", reason="idsprites is not installed")
    shapes, factors = outlines(5, np.arange(30)), random_factors(4, 30)
    ours = render(shapes, factors, Canvas(size=size, parity=True, dtype="uint8"))
    original = peer.InfiniteDSprites(img_size=size, grayscale=True)
    for row in range(30):
        pose = [column[row] for column in factors[1:]]
        theirs = original.draw(peer.Factors(shapes[row].points.T, (1.0, 1.0, 1.0), 0, *pose))
        assert (np.rint(theirs * 255) == ours[row]).all()
