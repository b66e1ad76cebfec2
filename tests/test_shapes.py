"""Shapes: exact canonical form, the distribution of the paper, addressing."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from everlearn import curves
from everlearn.likeness import distances_to, masks, nearest_distances
from everlearn.shapes import ShapeStyle, outline, outlines


def _crossings(points: np.ndarray) -> int:
    """Count proper crossings among all pairs of edges of a closed polygon, the slow way."""
    a, b = points, np.roll(points, -1, axis=0)

    def side(p, q, r):
        return (q[..., 0] - p[..., 0]) * (r[..., 1] - p[..., 1]) - (q[..., 1] - p[..., 1]) * (
            r[..., 0] - p[..., 0]
        )

    one, two = side(a[:, None], b[:, None], a[None]), side(a[:, None], b[:, None], b[None])
    three, four = side(a[None], b[None], a[:, None]), side(a[None], b[None], b[:, None])
    return int(((one * two < 0) & (three * four < 0)).sum())


def test_g1_an_outline_is_the_same_alone_in_a_batch_and_in_any_order():
    batch = outlines(7, np.arange(200))
    shuffled = np.random.default_rng(0).permutation(200)
    again = outlines(7, shuffled)
    assert (again.coefficients == batch.coefficients[shuffled]).all()
    for row in (0, 63, 64, 199):
        one = outline(7, row)
        assert (one.coefficients == batch[row].coefficients).all()
        assert one.order == batch.orders[row]


def test_g1_another_process_draws_the_same_bytes():
    code = (
        "import hashlib, numpy as np; from everlearn import outlines; "
        "print(hashlib.sha256(outlines(5, np.arange(100)).coefficients.tobytes()).hexdigest())"
    )
    runs = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                           check=True).stdout for _ in range(2)}  # fmt: skip
    assert len(runs) == 1


def test_seeds_and_ids_give_different_shapes():
    table = np.concatenate([outlines(s, np.arange(50)).coefficients for s in (0, 1, 2**40)])
    assert len(np.unique(table.reshape(150, -1), axis=0)) == 150


def test_ids_far_out_are_shapes_like_any_other():
    far = outlines(0, np.array([10**18, 2**64 - 1], np.uint64))
    assert far.areas.min() > 0.1


def test_every_box_has_side_one_and_every_centroid_is_the_origin():
    batch = outlines(0, np.arange(3000))
    low, high = batch.boxes
    assert np.abs(high - low - 1).max() < 1e-12
    assert np.abs(batch.centroids).max() < 1e-12
    assert (batch.areas > 0.05).all()
    assert (batch.areas < 1).all()


def test_the_long_axis_stands_upright():
    style = ShapeStyle(stretch=False)
    for row in range(20):
        points = outline(3, row, style).points
        moments = np.cov(points.T)
        assert moments[1, 1] > moments[0, 0]


def test_points_lie_on_the_curve_and_hold_its_knots():
    one = outline(0, 2)
    assert one.points.shape == (1000, 2)
    gaps = np.abs(one.points[:, None] - one.coefficients[None, :, 0]).sum(axis=2).min(axis=0)
    assert gaps.max() == 0
    x, y = one.points.T
    nx, ny = np.roll(one.points, -1, axis=0).T
    assert (x * ny - nx * y).sum() / 2 == pytest.approx(one.area, rel=1e-4)


def test_g10_vertices_and_orders_follow_the_paper():
    batch = outlines(11, np.arange(4000))
    shares = np.bincount(batch.pieces, minlength=9)[5:] / 4000
    assert len(shares) == 4
    assert (shares > 0.22).all()
    assert (shares < 0.28).all()
    assert 0.47 < (batch.orders == 1).mean() < 0.53


def test_no_shape_crosses_itself():
    batch = outlines(1, np.arange(600))
    for row in np.flatnonzero(batch.orders == 3):
        curve = batch.coefficients[row : row + 1, : batch.pieces[row]]
        points = curves.evaluate(curve, np.arange(40) / 40).reshape(-1, 2)
        assert _crossings(points) == 0


def test_splines_drawn_without_the_check_do_cross_themselves():
    """The check matters: about 1 in 30 splines of the original crosses itself."""
    from everlearn.shapes import PAPER_STYLE
    from everlearn.shapes.draw import _draw

    ids = np.arange(4000, dtype=np.uint64)
    batch, good = _draw(1, ids, np.zeros(4000, np.int64), PAPER_STYLE)
    cubic = batch.orders == 3
    assert 0.01 < (~good[cubic]).mean() < 0.08
    assert good[~cubic].all()


def test_min_distance_keeps_the_shapes_of_a_block_apart():
    style = ShapeStyle(min_distance=0.15, block=32)
    batch = outlines(0, np.arange(96), style)
    for start in (0, 32, 64):
        assert nearest_distances(masks(batch.coefficients[start : start + 32])).min() >= 0.15
    plain = outlines(0, np.arange(96))
    assert nearest_distances(masks(plain.coefficients)).min() < 0.15


def test_min_distance_leaves_a_shape_a_function_of_its_id():
    style = ShapeStyle(min_distance=0.15, block=32)
    late = outline(0, 32 * 10**6 + 17, style)
    block = outlines(0, 32 * 10**6 + np.arange(32), style)
    assert (late.coefficients == block[17].coefficients).all()


def test_min_distance_that_cannot_be_had_is_an_error():
    style = ShapeStyle(min_distance=0.5, vertices=(8, 8), radius_std=0.01, block=32)
    with pytest.raises(ValueError, match=r"lower\s+min_distance"):
        outlines(0, [5], style)


def test_distance_is_one_minus_intersection_over_union():
    def box(left, right):
        corners = np.array([[[left, -0.5], [right, -0.5], [right, 0.5], [left, 0.5]]])
        return masks(curves.polygon(corners))

    a, b = box(-0.5, 0.5), box(0.0, 1.0)
    assert distances_to(a[0], b)[0] == pytest.approx(1 - 1 / 3, abs=0.02)
    assert distances_to(a[0], a)[0] == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"vertices": (3, 8)},
        {"vertices": 5},
        {"orders": ([1],)},
        {"radius_clip": (1e-200, 2)},
        {"vertices": (8, 5)},
        {"vertices": (5.0, 8)},
        {"radius_std": -1},
        {"radius_std": float("nan")},
        {"radius_clip": (0, 2)},
        {"angle_std": float("inf")},
        {"orders": (2,)},
        {"orders": ()},
        {"center": "top"},
        {"align": 1},
        {"min_distance": 0.9},
        {"block": 1},
    ],
)
def test_a_style_that_makes_no_sense_is_refused(changes):
    with pytest.raises((ValueError, TypeError), match=next(iter(changes))):
        ShapeStyle(**changes)


@pytest.mark.parametrize("ids", [[-1], [0.5], [[1, 2]], [2**70]])
def test_ids_that_are_none_are_refused(ids):
    with pytest.raises((ValueError, TypeError), match="shape ids"):
        outlines(0, ids)


@pytest.mark.parametrize(
    "style",
    [
        ShapeStyle(align=False),
        ShapeStyle(stretch=False),
        ShapeStyle(center="box"),
        ShapeStyle(vertices=(4, 12), orders=(3,)),
        ShapeStyle(radius_std=0, angle_std=0, vertices=(4, 4)),
    ],
)
def test_every_style_gives_curves_inside_the_unit_circle_of_the_box(style):
    batch = outlines(0, np.arange(64), style)
    low, high = batch.boxes
    assert np.isfinite(batch.coefficients).all()
    assert (high - low).max() <= 1 + 1e-9
    assert low.min() > -1
    assert high.max() < 1


def test_no_curve_runs_backwards():
    assert outlines(0, np.arange(3000), ShapeStyle(vertices=(4, 4))).areas.min() > 0
