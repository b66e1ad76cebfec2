"""Shapes cut by the frame."""

from __future__ import annotations

import numpy as np

from everlearn.factors import Factors, canonical, random
from everlearn.render import Canvas, render
from everlearn.render.frame import fits
from everlearn.shapes import outlines


def _corners(count: int) -> Factors:
    turn = random(0, count).orientation
    zero = np.zeros(count)
    return Factors(zero.astype(int), np.ones(count), turn, zero, zero)


def test_canonical_shapes_fit():
    assert fits(outlines(0, np.arange(500)), canonical(500)).all()


def test_some_large_shapes_are_cut_at_the_corners():
    share = 1 - fits(outlines(0, np.arange(2000)), _corners(2000)).mean()
    assert 0.2 < share < 0.45


def test_a_shape_that_fits_leaves_the_border_as_background():
    shapes, factors = outlines(0, np.arange(300)), _corners(300)
    canvas = Canvas(size=64, background="black", mark=None, dtype="uint8")
    drawn = render(shapes, factors, canvas)[:, 0].astype(float)
    whole = shapes.areas * 28.8**2 * 255
    lost = 1 - drawn.sum(axis=(1, 2)) / whole
    inside = fits(shapes, factors)
    assert np.abs(lost[inside]).max() < 0.01
    assert lost[~inside].max() > 0.01
    assert lost.min() > -0.01
