"""Parity mode renders like the original package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from everlearn.factors import random_factors
from everlearn.render import Canvas, render
from everlearn.shapes import outlines


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
