"""Images: the laws every back end obeys, tested on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from everlearn.factors import Factors, canonical, random, theta
from everlearn.render import Canvas, reference, render
from everlearn.render.cpu import Pen
from everlearn.render.trace import BOX, CUT_EDGE, MARK_EDGE, PEN_UP, SHAPE_EDGE, trace
from everlearn.shapes import outline, outlines
from everlearn.warp import normalise

GREY = Canvas(size=64, dtype="uint8")


def _coverage(canvas_size: int, count: int = 200, factors: Factors | None = None) -> np.ndarray:
    """Covered area of every pixel: white on black, without a mark."""
    canvas = Canvas(size=canvas_size, background="black", mark=None, dtype="uint8")
    drawn = render(outlines(0, np.arange(count)), factors or canonical(count), canvas)
    return drawn[:, 0] / 255.0


def _one(scale=1.0, orientation=0.0, x=0.5, y=0.5) -> Factors:
    return Factors(*(np.array([v]) for v in (0, scale, orientation, x, y)))


@pytest.mark.slow
@pytest.mark.parametrize("channels", [1, 3])
def test_the_cpu_agrees_with_sixteen_by_sixteen_samples(channels):
    canvas = Canvas(size=64, channels=channels, colors=("white", "#c03010"), dtype="uint8")
    factors = random(2, 60)._replace(color=np.arange(60) % 2)
    shapes = outlines(2, np.arange(60))
    slow = reference.draw(shapes, np.arange(60), theta(factors), factors.color, canvas)
    difference = np.abs(render(shapes, factors, canvas) - slow)
    assert difference.mean() <= 0.5
    assert difference.max() <= 255 / 32 + 0.5  # half a step of a 16-sample grid, and rounding


@pytest.mark.slow
def test_the_cpu_agrees_with_sixtyfour_by_sixtyfour_samples():
    factors, shapes = random(2, 40), outlines(2, np.arange(40))
    slow = reference.draw(shapes, np.arange(40), theta(factors), factors.color, GREY, 64)
    difference = np.abs(render(shapes, factors, GREY) - slow)
    assert difference.mean() <= 0.5
    assert difference.max() <= 4


@pytest.mark.slow
def test_a_thousand_images_agree_with_the_oracle_on_average():
    factors, shapes = random(6, 1000), outlines(6, np.arange(1000))
    slow = reference.draw(shapes, np.arange(1000), theta(factors), factors.color, GREY)
    assert np.abs(render(shapes, factors, GREY) - slow).mean() <= 0.5


@pytest.mark.parametrize("size", [32, 64, 100])
def test_the_drawn_area_is_the_area_of_the_shape(size):
    factors = random(1, 200)._replace(x=np.full(200, 0.5), y=np.full(200, 0.5))
    drawn = _coverage(size, 200, factors).sum(axis=(1, 2))
    exact = outlines(0, np.arange(200)).areas * (BOX * size * factors.scale) ** 2
    assert np.abs(drawn / exact - 1).max() < 0.01
    assert abs((drawn / exact).mean() - 1) < 0.001


def test_g4_the_canonical_box_has_its_side():
    touched = _coverage(256, 500) > 0
    for axis in (1, 2):
        line = touched.any(axis=axis)
        side = 256 - line.argmax(axis=1) - line[:, ::-1].argmax(axis=1)
        assert np.abs(side - 115.2).max() <= 2


def test_g5_the_centroid_of_the_pixels_is_the_centre():
    covered = _coverage(64, 500)
    at = np.arange(64) + 0.5
    mass = covered.sum(axis=(1, 2))
    x, y = (covered * at).sum(axis=(1, 2)) / mass, (covered * at[:, None]).sum(axis=(1, 2)) / mass
    assert np.abs(np.stack((x, y)) - 32).max() < 0.1


def test_g6_the_mark_covers_about_half_of_the_shape():
    canvas = Canvas(size=64, background="black", mark="red", channels=3, dtype="uint8")
    drawn = render(outlines(0, np.arange(500)), canonical(500), canvas).astype(float)
    whole, unmarked = drawn[:, 0].sum(axis=(1, 2)), drawn[:, 1].sum(axis=(1, 2))
    share = 1 - unmarked / whole
    assert share.min() >= 0.35
    assert share.max() <= 0.65
    assert 0.48 <= np.median(share) <= 0.52


def test_the_mark_is_the_right_half_at_orientation_zero():
    drawn = render(outline(0, 0), canonical(), GREY)[0, 0]
    assert set(np.unique(drawn[:, :32])) >= {169, 255}
    assert 0 not in drawn[:, :32]
    assert 255 not in drawn[:, 32:]


def _warp(images: np.ndarray, maps: np.ndarray) -> np.ndarray:
    return normalise(torch.from_numpy(images), torch.from_numpy(maps).float()).numpy()


@pytest.mark.parametrize("size", [32, 64, 128])
def test_g8_the_true_map_brings_an_image_to_its_exemplar(size):
    shapes, factors = outlines(3, np.arange(200)), random(3, 200)
    canvas = Canvas(size=size)
    seen = _warp(render(shapes, factors, canvas), theta(factors))
    error = np.abs(seen - render(shapes, canonical(200), canvas)).mean(axis=(1, 2, 3))
    assert error.mean() <= 1.2 / size
    assert error.max() <= 2.2 / size


def test_g11_turning_the_factors_turns_the_image():
    shapes, canvas = outlines(4, np.arange(50)), Canvas(size=64)
    angle = random(4, 50).orientation
    turned = canonical(50)._replace(orientation=angle)
    back = theta(canonical(50)._replace(orientation=-angle))
    again = _warp(render(shapes, canonical(50), canvas), back)
    middle = slice(8, 56)
    error = np.abs(again - render(shapes, turned, canvas))[..., middle, middle]
    assert error.mean() <= 1.2 / 64


def test_positive_orientation_turns_clockwise_on_screen():
    drawn = render(outline(0, 0), _one(orientation=np.pi / 2), GREY)[0, 0]
    assert 0 not in drawn[:32]  # the mark points down
    assert 255 not in drawn[32:]


@given(st.integers(-40, 40), st.integers(-40, 40), st.integers(0, 50))
def test_a_shift_by_whole_pixels_shifts_the_image(dx, dy, shape):
    still = render(outline(0, shape), _one(0.6, 1.0), Canvas(size=64, dtype="uint8"))[0, 0]
    moved = render(
        outline(0, shape),
        _one(0.6, 1.0, 0.5 + dx / 32, 0.5 + dy / 32),
        Canvas(size=64, dtype="uint8"),
    )[0, 0]
    wide = np.full((64 * 3, 64 * 3), 169, np.uint8)
    wide[64:128, 64:128] = still
    expected = wide[64 - dy : 128 - dy, 64 - dx : 128 - dx]
    assert np.abs(moved.astype(int) - expected).max() <= 1


@given(st.floats(-3, 4), st.floats(-3, 4), st.floats(0.01, 6), st.floats(-10, 10))
def test_shapes_cut_by_the_frame_agree_with_the_oracle(x, y, scale, orientation):
    canvas = Canvas(size=16, dtype="uint8")
    factors, shapes = _one(scale, orientation, x, y), outlines(0, [2])
    slow = reference.draw(shapes, np.array([0]), theta(factors), np.array([0]), canvas)
    assert np.abs(render(shapes, factors, canvas) - slow).mean() < 1.5


def test_background_is_exact_outside_the_shape():
    drawn = render(outlines(0, np.arange(20)), random(0, 20), Canvas(size=64))
    assert (drawn[:, 0, 0, 0] == np.float32(169) / np.float32(255)).sum() > 15


def test_float_images_are_uint8_images_over_255():
    shapes, factors = outlines(0, np.arange(20)), random(0, 20)
    whole = render(shapes, factors, GREY)
    fraction = render(shapes, factors, Canvas(size=64, dtype="float32"))
    assert (fraction == whole.astype(np.float32) / np.float32(255)).all()


def test_grey_colours_look_the_same_in_grey_and_rgb():
    shapes, factors = outlines(0, np.arange(20)), random(0, 20)
    rgb = render(shapes, factors, Canvas(size=64, channels=3, dtype="uint8"))
    assert (rgb == render(shapes, factors, GREY)).all()


def test_an_image_does_not_depend_on_threads_or_batch():
    shapes, factors = outlines(0, np.arange(10)), random(0, 1000)
    which = np.arange(1000) % 10
    one = Pen(shapes, GREY).draw(which, theta(factors), factors.color, 1)
    three = Pen(shapes, GREY).draw(which, theta(factors), factors.color, 3)
    assert (one == three).all()
    larger = factors._replace(scale=np.where(np.arange(1000) == 5, 3.7, factors.scale))
    mixed = Pen(shapes, GREY).draw(which, theta(larger), factors.color, 1)
    for row in range(0, 1000, 37):
        alone = render(shapes[row % 10], factors.take([row]), GREY)
        assert (alone[0] == one[row]).all()
        assert (alone[0] == mixed[row]).all()


def test_one_outline_serves_many_rows_and_one_row_many_outlines():
    assert render(outline(0, 0), random(0, 5), GREY).shape == (5, 1, 64, 64)
    assert render(outlines(0, [1, 2, 3]), canonical(), GREY).shape == (3, 1, 64, 64)
    listed = render([outline(0, 1), outline(0, 2)], canonical(2), GREY)
    assert (listed == render(outlines(0, [1, 2]), canonical(2), GREY)).all()
    assert render(outlines(0, [1]), canonical(0), GREY).shape == (0, 1, 64, 64)


def test_colours_follow_the_factor():
    canvas = Canvas(size=32, channels=3, colors=("red", "#00ff00"), mark=None, dtype="uint8")
    drawn = render(outline(0, 0), canonical(2)._replace(color=np.array([0, 1])), canvas)
    assert drawn[0, :, 16, 16].tolist() == [255, 0, 0]
    assert drawn[1, :, 16, 16].tolist() == [0, 255, 0]


def test_g14_small_images_are_fast():
    from everlearn.bench import cpu_rate

    assert cpu_rate(32, 1, 0.2) >= 2000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"device": "tpu"}, "unknown device 'tpu'; known: cpu, cuda"),
        ({"which": [0.5]}, "which must be whole numbers"),
        ({"which": [1]}, r"which must lie in 0 \.\. 0"),
        ({"factors": random(0, 3), "outlines": outlines(0, [0, 1])}, "found 2 outlines and 3 rows"),
        ({"outlines": []}, "one outline at least"),
        ({"threads": -1, "factors": random(0, 2000)}, "threads must lie in"),
        ({"factors": None}, "factors must be color, scale"),
        ({"factors": canonical()._replace(scale=np.array([1e7]))}, "'scale' must lie in"),
        ({"factors": canonical()._replace(x=np.array([np.nan]))}, "'x' must be finite"),
    ],
)
def test_bad_requests_are_refused(arguments, message):
    request = {"outlines": outline(0, 0), "factors": canonical(), "canvas": GREY, **arguments}
    with pytest.raises((ValueError, TypeError), match=message):
        render(**request)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_an_error():
    with pytest.raises(ValueError, match="torch sees no GPU here"):
        render(outline(0, 0), canonical(), GREY, "cuda")


@pytest.mark.parametrize("longest", [None, 0.9])
def test_a_trace_closes_every_stroke(longest):
    """Signed edges of either side of the mark sum to zero, so nothing leaks along a row."""
    strokes = trace(outlines(0, np.arange(30)), 28.8, longest)
    for start, end in zip(strokes.starts[:-1], strokes.starts[1:], strict=True):
        points, kinds = strokes.points[start:end].astype(float), strokes.kinds[start:end]
        step = np.diff(points, axis=0)
        by_kind = {k: step[kinds[:-1] == k].sum(axis=0) for k in (SHAPE_EDGE, MARK_EDGE, CUT_EDGE)}
        assert np.abs(by_kind[MARK_EDGE] + by_kind[CUT_EDGE]).max() < 1e-5
        assert np.abs(by_kind[SHAPE_EDGE] - by_kind[CUT_EDGE]).max() < 1e-5
        assert kinds[-1] == PEN_UP
        if longest:
            drawn = kinds[:-1] != PEN_UP
            assert np.linalg.norm(step[drawn], axis=1).max() * 28.8 <= longest * 1.001


@pytest.mark.parametrize("scale", [50.0, 1000.0])
def test_huge_shapes_fill_the_frame(scale):
    canvas = Canvas(size=64, dtype="uint8", mark=None)
    assert (render(outline(0, 1), _one(scale), canvas) == 255).all()
