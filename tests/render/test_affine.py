"""Affine maps obey the laws of maps, and images seen through true maps are exemplars."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from everlearn import Canvas, Stream, theta
from everlearn.factors import random_factors
from everlearn.render.affine import (
    compose,
    invert,
    nearest_similarity,
    similarity_maps,
    transform_images,
)

IDENTITY = torch.eye(2, 3, dtype=torch.float64)


@st.composite
def maps(draw):
    """Turn, stretch by 0.3 to 3 along two axes, turn again, shift: all well-behaved maps."""
    angle = st.floats(-math.pi, math.pi)
    stretch = [draw(st.floats(0.3, 3)) * draw(st.sampled_from([-1, 1])) for _ in range(2)]
    turn = rotation(draw(angle)) @ np.diag(stretch) @ rotation(draw(angle))
    shift = [[draw(st.floats(-2, 2))], [draw(st.floats(-2, 2))]]
    return torch.from_numpy(np.concatenate((turn, shift), axis=1))


def rotation(angle):
    return np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])


def apply(one, points):
    """Apply one map to points (N, 2), by the definition."""
    return points @ one[:, :2].T + one[:, 2]


def translation(x, y, size):
    """The map that shows an image x pixels to the left and y up."""
    return torch.tensor([[[1.0, 0, 2 * x / size], [0, 1.0, 2 * y / size]]])


def close(one, two):
    return torch.allclose(one, two, rtol=1e-9, atol=1e-9)


@given(maps(), maps())
def test_compose_applies_the_inner_map_first(outer, inner):
    points = torch.tensor([[0.0, 0], [1, 0], [0, 1], [-0.7, 0.3]], dtype=torch.float64)
    assert close(apply(compose(outer, inner), points), apply(outer, apply(inner, points)))


@given(maps(), maps(), maps())
def test_compose_is_associative(a, b, c):
    assert close(compose(compose(a, b), c), compose(a, compose(b, c)))


@given(maps())
def test_invert_is_a_two_sided_inverse(one):
    assert close(compose(one, invert(one)), IDENTITY)
    assert close(compose(invert(one), one), IDENTITY)


@given(maps(), maps())
def test_inverse_of_a_composition_is_the_reversed_composition(outer, inner):
    assert close(invert(compose(outer, inner)), compose(invert(inner), invert(outer)))


@given(maps())
def test_invert_agrees_with_the_inverse_of_the_3_by_3_matrix(one):
    matrix = np.vstack((one.numpy(), [0, 0, 1]))
    assert np.allclose(invert(one).numpy(), np.linalg.inv(matrix)[:2], rtol=1e-9, atol=1e-9)


def test_maps_may_have_any_leading_axes():
    rng = torch.Generator().manual_seed(0)
    a, b = (torch.randn(4, 5, 2, 3, generator=rng, dtype=torch.float64) for _ in range(2))
    both, back = compose(a, b), invert(a)
    for place in [(0, 0), (3, 4), (1, 2)]:
        assert close(both[place], compose(a[place], b[place]))
        assert torch.allclose(back[place], invert(a[place]))


@pytest.mark.parametrize(("channels", "size"), [(1, 32), (3, 33), (3, 64), (1, 224)])
def test_the_identity_leaves_images_unchanged(channels, size):
    images = torch.rand(2, channels, size, size, generator=torch.Generator().manual_seed(0))
    exact = transform_images(images.double(), IDENTITY.expand(2, 2, 3))
    assert (exact - images).abs().max() <= 1e-6
    # Places in float32 are off by about size * 2^-23 pixels; neighbours here differ by up to 1.
    assert (
        transform_images(images, IDENTITY.float().expand(2, 2, 3)) - images
    ).abs().max() <= size * 2**-22


@pytest.mark.parametrize(("x", "y"), [(2, 0), (0, 3), (-1, 2), (-3, -4)])
def test_translation_by_whole_pixels_copies_pixels_and_repeats_the_border(x, y):
    images = torch.rand(1, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    rows = (torch.arange(8) + y).clamp(0, 7)
    columns = (torch.arange(8) + x).clamp(0, 7)
    expected = images[:, :, rows][..., columns]
    assert (transform_images(images, translation(x, y, 8)) - expected).abs().max() <= 1e-5


def test_two_translations_equal_their_composition():
    images = torch.rand(1, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    first, second = translation(2, 1, 16), translation(3, 4, 16)
    twice = transform_images(transform_images(images, first), second)
    assert (twice - transform_images(images, compose(first, second))).abs().max() <= 1e-5
    assert (twice - transform_images(images, translation(5, 5, 16))).abs().max() <= 1e-5


def test_rotation_by_90_degrees_equals_rot90():
    images = torch.rand(1, 1, 9, 9, generator=torch.Generator().manual_seed(0))
    turn = torch.from_numpy(similarity_maps(np.ones(1), np.full(1, np.pi / 2), np.zeros((1, 2))))
    # The right end of the result (u = (1, 0)) shows the lower end of the image, (0, 1): y is down.
    seen = transform_images(images, turn)
    assert abs(seen[0, 0, 4, 8] - images[0, 0, 8, 4]) <= 1e-5
    assert (seen - torch.rot90(images, 1, (2, 3))).abs().max() <= 1e-5


def test_similarity_maps_of_a_hand_calculation():
    found = similarity_maps(np.array(2.0), np.array(np.pi / 2), np.array([0.1, -0.2]))
    assert np.allclose(found, [[0, -2, 0.1], [2, 0, -0.2]], atol=1e-7)


def test_similarity_maps_agree_with_theta():
    factors = random_factors(0, 100)
    shift = np.stack((factors.x, factors.y), axis=-1) - 0.5
    found = similarity_maps(factors.scale, factors.orientation, shift)
    assert found.shape == (100, 2, 3)
    assert np.abs(found - theta(factors)).max() <= 1e-6


@pytest.fixture(scope="module")
def sprites():
    """Images at 64 pixels, their maps and the exemplars of their classes."""
    task = Stream(seed=1, tasks=1, classes_per_task=20, canvas=Canvas(size=64))[0]
    batch, shown = task.split("test").batch(slice(None)), task.exemplars()
    return batch.images, batch.theta, shown.images[batch.labels]


def test_true_maps_give_exemplars_and_inverse_maps_do_not(sprites):
    images, truth, exemplars = sprites
    error = (transform_images(images, truth) - exemplars).abs().mean()
    wrong = (transform_images(images, invert(truth)) - exemplars).abs().mean()
    assert len(images) >= 100
    assert error <= 0.02
    assert wrong >= 3 * error


def test_gradient_of_the_image_loss_agrees_with_finite_differences(sprites):
    images, truth, exemplars = (one[:16].double() for one in sprites)
    rng = torch.Generator().manual_seed(0)
    start = truth + 0.05 * torch.randn(truth.shape, generator=rng, dtype=torch.float64)

    def loss(guess):
        return (transform_images(images, guess) - exemplars).square().mean()

    guess = start.clone().requires_grad_()
    loss(guess).backward()
    for entry in range(6):
        step = torch.zeros(6, dtype=torch.float64)
        step[entry] = 1e-7
        step = step.reshape(2, 3)
        gradient = (loss(start + step) - loss(start - step)) / 2e-7
        found = guess.grad.sum(0).reshape(6)[entry]
        assert found.isfinite()
        assert gradient != 0
        assert abs(found - gradient) <= 1e-2 * abs(gradient)


@given(maps())
def test_nearest_similarity_is_a_similarity_and_the_nearest(one):
    found = nearest_similarity(one)
    (a, b, x), (c, d, y) = found.tolist()
    assert (a, b, x, y) == (d, -c, *one[:, 2].tolist())
    here = (found - one).square().sum()
    for direction in ([[1.0, 0, 0], [0, 1, 0]], [[0.0, -1, 0], [1, 0, 0]]):
        for size in (0.01, -0.01):
            assert (found + size * torch.tensor(direction) - one).square().sum() > here
    assert close(nearest_similarity(found), found)
