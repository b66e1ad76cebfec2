"""Random shapes: canonical form, the distribution of the paper, reproducibility."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from everlearn.shapes import ShapeStyle, outline, outlines
from everlearn.shapes.overlap import nearest_iou_distances, packed_masks


def test_an_outline_does_not_depend_on_the_batch_or_its_order():
    batch = outlines(7, np.arange(200))
    shuffled = np.random.default_rng(0).permutation(200)
    again = outlines(7, shuffled)
    assert (again.coefficients == batch.coefficients[shuffled]).all()
    for row in (0, 63, 64, 199):
        one = outline(7, row)
        assert (one.coefficients == batch[row].coefficients).all()
        assert one.order == batch.orders[row]


def test_two_processes_sample_the_same_bytes():
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


def test_very_large_ids_are_valid():
    far = outlines(0, np.array([10**18, 2**64 - 1], np.uint64))
    assert far.areas.min() > 0.1


def test_every_box_has_side_one_and_every_centroid_is_the_origin():
    batch = outlines(0, np.arange(3000))
    low, high = batch.boxes
    assert np.abs(high - low - 1).max() < 1e-12
    assert np.abs(batch.centroids).max() < 1e-12
    assert (batch.areas > 0.05).all()
    assert (batch.areas < 1).all()


def test_the_long_axis_is_upright():
    style = ShapeStyle(stretch=False)
    for row in range(20):
        points = outline(3, row, style).points
        moments = np.cov(points.T)
        assert moments[1, 1] > moments[0, 0]


def test_vertices_and_orders_follow_the_distribution_of_the_paper():
    batch = outlines(11, np.arange(4000))
    shares = np.bincount(batch.pieces, minlength=9)[5:] / 4000
    assert len(shares) == 4
    assert (shares > 0.22).all()
    assert (shares < 0.28).all()
    assert 0.47 < (batch.orders == 1).mean() < 0.53


def test_splines_would_intersect_themselves_without_the_check():
    """The check matters: about 1 in 30 splines of the original intersects itself."""
    from everlearn.shapes import PAPER_STYLE
    from everlearn.shapes.sampling import _sample

    ids = np.arange(4000, dtype=np.uint64)
    batch, simple = _sample(1, ids, np.zeros(4000, np.int64), PAPER_STYLE)
    cubic = batch.orders == 3
    assert 0.01 < (~simple[cubic]).mean() < 0.08
    assert simple[~cubic].all()


def test_min_distance_separates_the_shapes_of_a_block():
    style = ShapeStyle(min_distance=0.15, block=32)
    batch = outlines(0, np.arange(96), style)
    for start in (0, 32, 64):
        assert (
            nearest_iou_distances(packed_masks(batch.coefficients[start : start + 32])).min()
            >= 0.15
        )
    unconstrained = outlines(0, np.arange(96))
    assert nearest_iou_distances(packed_masks(unconstrained.coefficients)).min() < 0.15


def test_a_shape_with_min_distance_depends_on_its_id_only():
    style = ShapeStyle(min_distance=0.15, block=32)
    late = outline(0, 32 * 10**6 + 17, style)
    block = outlines(0, 32 * 10**6 + np.arange(32), style)
    assert (late.coefficients == block[17].coefficients).all()


def test_an_infeasible_min_distance_is_an_error():
    style = ShapeStyle(min_distance=0.5, vertices=(8, 8), radius_std=0.01, block=32)
    with pytest.raises(ValueError, match=r"lower\s+min_distance"):
        outlines(0, [5], style)


@pytest.mark.parametrize("ids", [[-1], [0.5], [[1, 2]], [2**70]])
def test_invalid_ids_are_rejected(ids):
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
def test_curves_of_every_style_fit_in_the_unit_box(style):
    batch = outlines(0, np.arange(64), style)
    low, high = batch.boxes
    assert np.isfinite(batch.coefficients).all()
    assert (high - low).max() <= 1 + 1e-9
    assert low.min() > -1
    assert high.max() < 1


def test_every_curve_has_positive_area():
    assert outlines(0, np.arange(3000), ShapeStyle(vertices=(4, 4))).areas.min() > 0
