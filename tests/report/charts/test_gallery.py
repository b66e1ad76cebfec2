"""The gallery of inputs, normalised images and matches."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from everlearn.report.charts.gallery import gallery


def _picture(**changes):
    given = {"inputs": np.zeros((2, 1, 32, 32), np.uint8), "labels": [3, 4], "predicted": [3, 5]}
    given |= {"normalised": given["inputs"], "matches": given["inputs"]} | changes
    return np.asarray(Image.open(io.BytesIO(gallery(**given))).convert("RGB")).astype(int)


def test_each_row_shows_its_images_at_80_pixels():
    rows = [np.full((2, 3, 32, 32), 0.0, np.float32) for _ in range(3)]
    for channel, row in enumerate(rows):
        row[:, channel] = 1.0
    shown = _picture(**dict(zip(("inputs", "normalised", "matches"), rows, strict=True)))
    for channel in range(3):
        pure = (shown == 255 * np.eye(3, dtype=int)[channel]).all(axis=2)
        assert pure.sum() == 2 * 80 * 80


def test_small_images_keep_their_pixels():
    board = np.indices((8, 8)).sum(axis=0) % 2 * 255
    images = np.broadcast_to(board, (2, 1, 8, 8)).astype(np.uint8)
    shown = _picture(inputs=images)
    assert not (shown[20:80, 160:170] % 255).any()


def test_correct_is_green_and_wrong_is_red():
    shown = _picture(labels=[1, 1], predicted=[1, 2])
    green = (shown == (0, 128, 90)).all(axis=2).any(axis=0).nonzero()[0]
    red = (shown == (200, 60, 20)).all(axis=2).any(axis=0).nonzero()[0]
    assert green.max() < red.min()


def test_floats_are_clipped_to_0_and_1():
    wild = np.array([[-1.0], [np.nan]]).reshape(2, 1, 1, 1) * np.ones((2, 1, 32, 32))
    assert (_picture(inputs=wild) == _picture()).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": np.zeros((2, 32, 32))}, "must be"),
        ({"inputs": np.zeros((2, 2, 4, 4))}, "C 1 or 3"),
        ({"labels": [1]}, "one image per label"),
        ({"matches": np.zeros((3, 1, 4, 4))}, "one image per label"),
    ],
)
def test_wrong_shapes_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        _picture(**changes)


def test_integers_other_than_uint8_are_refused():
    with pytest.raises(TypeError, match="found int64"):
        _picture(inputs=np.zeros((2, 1, 4, 4), np.int64))


@pytest.mark.parametrize("count", [0, 33])
def test_too_many_or_no_images_are_refused(count):
    images, labels = np.zeros((count, 1, 4, 4)), [0] * count
    with pytest.raises(ValueError, match=r"shows 1 .. 32 images, found"):
        gallery(images, images, images, labels, labels)
