"""Shapes clipped by the image."""

from __future__ import annotations

import numpy as np

from everlearn.factors import Factors, canonical_factors, random_factors
from everlearn.render import Canvas, render
from everlearn.render.clipping import fully_visible
from everlearn.shapes import outlines


def _corners(count: int) -> Factors:
    orientation = random_factors(0, count).orientation
    zero = np.zeros(count)
    return Factors(zero.astype(int), np.ones(count), orientation, zero, zero)


def test_canonical_shapes_are_fully_visible():
    assert fully_visible(outlines(0, np.arange(500)), canonical_factors(500)).all()


def test_some_large_shapes_are_clipped_at_the_corners():
    share = 1 - fully_visible(outlines(0, np.arange(2000)), _corners(2000)).mean()
    assert 0.2 < share < 0.45


def test_fully_visible_shapes_lose_no_area():
    shapes, factors = outlines(0, np.arange(300)), _corners(300)
    canvas = Canvas(size=64, background="black", mark=None, dtype="uint8")
    drawn = render(shapes, factors, canvas)[:, 0].astype(float)
    expected = shapes.areas * 28.8**2 * 255
    lost = 1 - drawn.sum(axis=(1, 2)) / expected
    inside = fully_visible(shapes, factors)
    assert np.abs(lost[inside]).max() < 0.01
    assert lost[~inside].max() > 0.01
    assert lost.min() > -0.01
