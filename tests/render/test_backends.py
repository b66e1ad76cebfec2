"""Rendered images: properties of every backend, tested on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from everlearn.factors import Factors, canonical_factors, random_factors, theta
from everlearn.render import Canvas, render
from everlearn.render import oracle as reference
from everlearn.render.affine import transform_images
from everlearn.render.cpu import CpuRenderer
from everlearn.render.edges import BOX_FRACTION
from everlearn.shapes import outline, outlines

GREY = Canvas(size=64, dtype="uint8")


def _coverage(canvas_size: int, count: int = 200, factors: Factors | None = None) -> np.ndarray:
    """Return the covered area of every pixel: white on black, without a mark."""
    canvas = Canvas(size=canvas_size, background="black", mark=None, dtype="uint8")
    drawn = render(outlines(0, np.arange(count)), factors or canonical_factors(count), canvas)
    return drawn[:, 0] / 255.0


def _single_pose(scale=1.0, orientation=0.0, x=0.5, y=0.5) -> Factors:
    return Factors(*(np.array([v]) for v in (0, scale, orientation, x, y)))


@pytest.mark.slow
@pytest.mark.parametrize("channels", [1, 3])
def test_cpu_agrees_with_16_by_16_samples_per_pixel(channels):
    canvas = Canvas(size=64, channels=channels, colors=("white", "#c03010"), dtype="uint8")
    factors = random_factors(2, 60)._replace(color=np.arange(60) % 2)
    shapes = outlines(2, np.arange(60))
    expected = reference.draw(shapes, np.arange(60), theta(factors), factors.color, canvas)
    difference = np.abs(render(shapes, factors, canvas) - expected)
    assert difference.mean() <= 0.5
    assert difference.max() <= 255 / 32 + 0.5  # half a step of a 16-sample grid, and rounding


@pytest.mark.slow
def test_cpu_agrees_with_64_by_64_samples_per_pixel():
    factors, shapes = random_factors(2, 40), outlines(2, np.arange(40))
    expected = reference.draw(shapes, np.arange(40), theta(factors), factors.color, GREY, 64)
    difference = np.abs(render(shapes, factors, GREY) - expected)
    assert difference.mean() <= 0.5
    assert difference.max() <= 4


@pytest.mark.slow
def test_a_thousand_images_agree_with_the_oracle_on_average():
    factors, shapes = random_factors(6, 1000), outlines(6, np.arange(1000))
    expected = reference.draw(shapes, np.arange(1000), theta(factors), factors.color, GREY)
    assert np.abs(render(shapes, factors, GREY) - expected).mean() <= 0.5


@pytest.mark.parametrize("size", [32, 64, 100])
def test_rendered_area_equals_the_area_of_the_shape(size):
    factors = random_factors(1, 200)._replace(x=np.full(200, 0.5), y=np.full(200, 0.5))
    drawn = _coverage(size, 200, factors).sum(axis=(1, 2))
    exact = outlines(0, np.arange(200)).areas * (BOX_FRACTION * size * factors.scale) ** 2
    assert np.abs(drawn / exact - 1).max() < 0.01
    assert abs((drawn / exact).mean() - 1) < 0.001


def test_canonical_shapes_fill_45_percent_of_the_canvas():
    touched = _coverage(256, 500) > 0
    for axis in (1, 2):
        line = touched.any(axis=axis)
        side = 256 - line.argmax(axis=1) - line[:, ::-1].argmax(axis=1)
        assert np.abs(side - 115.2).max() <= 2


def test_canonical_shapes_have_their_centroid_in_the_middle():
    covered = _coverage(64, 500)
    at = np.arange(64) + 0.5
    mass = covered.sum(axis=(1, 2))
    x, y = (covered * at).sum(axis=(1, 2)) / mass, (covered * at[:, None]).sum(axis=(1, 2)) / mass
    assert np.abs(np.stack((x, y)) - 32).max() < 0.1


def test_the_mark_covers_about_half_of_the_shape():
    canvas = Canvas(size=64, background="black", mark="red", channels=3, dtype="uint8")
    drawn = render(outlines(0, np.arange(500)), canonical_factors(500), canvas).astype(float)
    total = drawn[:, 0].sum(axis=(1, 2))
    unmarked = drawn[:, 1].sum(axis=(1, 2))
    share = 1 - unmarked / total
    assert share.min() >= 0.35
    assert share.max() <= 0.65
    assert 0.48 <= np.median(share) <= 0.52


def test_the_mark_is_the_right_half_at_orientation_zero():
    drawn = render(outline(0, 0), canonical_factors(), GREY)[0, 0]
    assert set(np.unique(drawn[:, :32])) >= {169, 255}
    assert 0 not in drawn[:, :32]
    assert 255 not in drawn[:, 32:]


def _transform(images: np.ndarray, maps: np.ndarray) -> np.ndarray:
    return transform_images(torch.from_numpy(images), torch.from_numpy(maps).float()).numpy()


@pytest.mark.parametrize("size", [32, 64, 128])
def test_theta_transforms_an_image_into_canonical_form(size):
    shapes, factors = outlines(3, np.arange(200)), random_factors(3, 200)
    canvas = Canvas(size=size)
    transformed = _transform(render(shapes, factors, canvas), theta(factors))
    error = np.abs(transformed - render(shapes, canonical_factors(200), canvas)).mean(
        axis=(1, 2, 3)
    )
    assert error.mean() <= 1.2 / size
    assert error.max() <= 2.2 / size


def test_rotating_the_factors_rotates_the_image():
    shapes, canvas = outlines(4, np.arange(50)), Canvas(size=64)
    angle = random_factors(4, 50).orientation
    rotated = canonical_factors(50)._replace(orientation=angle)
    rotation = theta(canonical_factors(50)._replace(orientation=-angle))
    transformed = _transform(render(shapes, canonical_factors(50), canvas), rotation)
    middle = slice(8, 56)
    error = np.abs(transformed - render(shapes, rotated, canvas))[..., middle, middle]
    assert error.mean() <= 1.2 / 64


def test_positive_orientation_rotates_clockwise_on_screen():
    drawn = render(outline(0, 0), _single_pose(orientation=np.pi / 2), GREY)[0, 0]
    assert 0 not in drawn[:32]  # the mark points down
    assert 255 not in drawn[32:]


@given(st.integers(-40, 40), st.integers(-40, 40), st.integers(0, 50))
def test_translation_by_whole_pixels_translates_the_image(dx, dy, shape):
    still = render(outline(0, shape), _single_pose(0.6, 1.0), Canvas(size=64, dtype="uint8"))[0, 0]
    moved = render(
        outline(0, shape),
        _single_pose(0.6, 1.0, 0.5 + dx / 32, 0.5 + dy / 32),
        Canvas(size=64, dtype="uint8"),
    )[0, 0]
    wide = np.full((64 * 3, 64 * 3), 169, np.uint8)
    wide[64:128, 64:128] = still
    expected = wide[64 - dy : 128 - dy, 64 - dx : 128 - dx]
    assert np.abs(moved.astype(int) - expected).max() <= 1


@given(st.floats(-3, 4), st.floats(-3, 4), st.floats(0.01, 6), st.floats(-10, 10))
def test_clipped_shapes_agree_with_the_oracle(x, y, scale, orientation):
    canvas = Canvas(size=16, dtype="uint8")
    factors, shapes = _single_pose(scale, orientation, x, y), outlines(0, [2])
    expected = reference.draw(shapes, np.array([0]), theta(factors), np.array([0]), canvas)
    assert np.abs(render(shapes, factors, canvas) - expected).mean() < 1.5


def test_background_is_exact_outside_the_shape():
    drawn = render(outlines(0, np.arange(20)), random_factors(0, 20), Canvas(size=64))
    assert (drawn[:, 0, 0, 0] == np.float32(169) / np.float32(255)).sum() > 15


def test_float_images_are_uint8_images_over_255():
    shapes, factors = outlines(0, np.arange(20)), random_factors(0, 20)
    integer = render(shapes, factors, GREY)
    floating = render(shapes, factors, Canvas(size=64, dtype="float32"))
    assert (floating == integer.astype(np.float32) / np.float32(255)).all()


def test_grey_shapes_are_equal_in_grey_and_rgb():
    shapes, factors = outlines(0, np.arange(20)), random_factors(0, 20)
    rgb = render(shapes, factors, Canvas(size=64, channels=3, dtype="uint8"))
    assert (rgb == render(shapes, factors, GREY)).all()


def test_an_image_does_not_depend_on_threads_or_batch():
    shapes, factors = outlines(0, np.arange(10)), random_factors(0, 1000)
    which = np.arange(1000) % 10
    serial = CpuRenderer(shapes, GREY).draw(which, theta(factors), factors.color, 1)
    threaded = CpuRenderer(shapes, GREY).draw(which, theta(factors), factors.color, 3)
    assert (serial == threaded).all()
    larger = factors._replace(scale=np.where(np.arange(1000) == 5, 3.7, factors.scale))
    mixed = CpuRenderer(shapes, GREY).draw(which, theta(larger), factors.color, 1)
    for row in range(0, 1000, 37):
        alone = render(shapes[row % 10], factors.take([row]), GREY)
        assert (alone[0] == serial[row]).all()
        assert (alone[0] == mixed[row]).all()


def test_a_single_outline_or_row_of_factors_is_broadcast():
    assert render(outline(0, 0), random_factors(0, 5), GREY).shape == (5, 1, 64, 64)
    assert render(outlines(0, [1, 2, 3]), canonical_factors(), GREY).shape == (3, 1, 64, 64)
    listed = render([outline(0, 1), outline(0, 2)], canonical_factors(2), GREY)
    assert (listed == render(outlines(0, [1, 2]), canonical_factors(2), GREY)).all()
    assert render(outlines(0, [1]), canonical_factors(0), GREY).shape == (0, 1, 64, 64)


def test_the_color_factor_selects_the_colour():
    canvas = Canvas(size=32, channels=3, colors=("red", "#00ff00"), mark=None, dtype="uint8")
    drawn = render(outline(0, 0), canonical_factors(2)._replace(color=np.array([0, 1])), canvas)
    assert drawn[0, :, 16, 16].tolist() == [255, 0, 0]
    assert drawn[1, :, 16, 16].tolist() == [0, 255, 0]


def test_one_thread_renders_2000_small_images_per_second():
    from everlearn.render.benchmark import cpu_rate

    assert cpu_rate(32, 1, 0.2) >= 2000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"device": "tpu"}, "unknown device 'tpu'; known: cpu, cuda"),
        ({"which": [0.5]}, "which must hold one whole number per image"),
        ({"which": [1]}, r"which must lie in 0 \.\. 0"),
        (
            {"factors": random_factors(0, 3), "outlines": outlines(0, [0, 1])},
            "found 2 outlines and 3 rows",
        ),
        ({"outlines": []}, "at least one outline"),
        ({"threads": -1, "factors": random_factors(0, 2000)}, "threads must lie in"),
        ({"factors": None}, "factors must be a Factors tuple"),
        ({"factors": canonical_factors()._replace(scale=np.array([1e7]))}, "'scale' must lie in"),
        ({"factors": canonical_factors()._replace(x=np.array([np.nan]))}, "'x' must be finite"),
    ],
)
def test_invalid_arguments_are_rejected(arguments, message):
    request = {
        "outlines": outline(0, 0),
        "factors": canonical_factors(),
        "canvas": GREY,
        **arguments,
    }
    with pytest.raises((ValueError, TypeError), match=message):
        render(**request)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_requesting_a_missing_gpu_is_an_error():
    with pytest.raises(ValueError, match="torch sees no GPU; use"):
        render(outline(0, 0), canonical_factors(), GREY, "cuda")


@pytest.mark.parametrize("scale", [50.0, 1000.0])
def test_huge_shapes_fill_the_image(scale):
    canvas = Canvas(size=64, dtype="uint8", mark=None)
    assert (render(outline(0, 1), _single_pose(scale), canvas) == 255).all()
