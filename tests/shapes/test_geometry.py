"""Exact geometry of closed piecewise-cubic curves."""

from __future__ import annotations

import numpy as np
import pytest

from everlearn.shapes import geometry

SQUARE = np.array([[[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.0, 1.0]]])


def _spline(seed: int = 0, count: int = 6) -> np.ndarray:
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * (np.arange(count) + rng.uniform(-0.3, 0.3, (1, count))) / count
    radius = rng.uniform(0.5, 1.5, (1, count))
    return np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=2)


def _dense(curve: np.ndarray, steps: int = 4000) -> np.ndarray:
    return geometry.evaluate(curve, np.arange(steps) / steps)[0].reshape(-1, 2)


def test_area_centroid_and_box_of_a_rectangle():
    curve = geometry.polygon(SQUARE)
    area, centroid = geometry.area_and_centroid(curve)
    low, high = geometry.bounding_box(curve)
    assert area[0] == pytest.approx(2)
    assert centroid[0] == pytest.approx([1, 0.5])
    assert low[0] == pytest.approx([0, 0])
    assert high[0] == pytest.approx([2, 1])


@pytest.mark.parametrize("seed", range(5))
def test_area_centroid_and_box_of_a_spline_agree_with_a_fine_polygon(seed):
    curve = geometry.periodic_spline(_spline(seed))
    fine = _dense(curve)
    x, y = fine.T
    nx, ny = np.roll(fine, -1, axis=0).T
    cross = x * ny - nx * y
    area = cross.sum() / 2
    center = np.array([((x + nx) * cross).sum(), ((y + ny) * cross).sum()]) / (6 * area)
    found, centroid = geometry.area_and_centroid(curve)
    low, high = geometry.bounding_box(curve)
    assert found[0] == pytest.approx(area, abs=1e-6)
    assert centroid[0] == pytest.approx(center, abs=1e-6)
    assert low[0] == pytest.approx(fine.min(axis=0), abs=1e-6)
    assert high[0] == pytest.approx(fine.max(axis=0), abs=1e-6)


@pytest.mark.parametrize("count", [3, 5, 8])
def test_a_spline_passes_through_its_vertices_with_continuous_derivatives(count):
    vertices = _spline(3, count)
    curve = geometry.periodic_spline(vertices)
    start = geometry.evaluate(curve, np.array([0.0]))[:, :, 0]
    end = geometry.evaluate(curve, np.array([1.0]))[:, :, 0]
    assert start == pytest.approx(vertices)
    assert end == pytest.approx(np.roll(vertices, -1, axis=1))
    chord = np.linalg.norm(np.roll(vertices, -1, axis=1) - vertices, axis=2)[..., None]
    first = geometry.derivative(curve, np.array([0.0, 1.0])) / chord[:, :, None]
    assert first[:, :, 1] == pytest.approx(np.roll(first[:, :, 0], -1, axis=1))
    c2, c3 = curve[:, :, 2], curve[:, :, 3]
    second_start, second_end = 2 * c2 / chord**2, (2 * c2 + 6 * c3) / chord**2
    assert second_end == pytest.approx(np.roll(second_start, -1, axis=1))


def test_points_on_a_circle_give_nearly_a_circle():
    turns = 2 * np.pi * np.arange(32) / 32
    curve = geometry.periodic_spline(np.stack((np.cos(turns), np.sin(turns)), axis=1)[None])
    assert np.linalg.norm(_dense(curve), axis=1) == pytest.approx(1, abs=1e-4)


def test_long_axis_of_a_rotated_bar():
    angle = 0.7
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    bar = np.array([[-3, -1], [3, -1], [3, 1], [-3, 1]]) @ turn.T
    axis = geometry.long_axis(geometry.polygon(bar[None]), np.array([[6.0, 2, 6, 2]]))
    assert axis[0] == pytest.approx([np.cos(angle), np.sin(angle)])


def test_long_axis_of_an_isotropic_curve_is_a_unit_vector():
    square = np.array([[[1.0, 0], [0, 1], [-1, 0], [0, -1]]])
    axis = geometry.long_axis(geometry.polygon(square), np.ones((1, 4)))
    assert np.linalg.norm(axis) == pytest.approx(1)
