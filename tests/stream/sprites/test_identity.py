"""The data of a released format never change: these digests were equal on AMD and Intel machines,
with Python 3.11 and 3.12. A change here changes everybody's data and needs a new stream format."""

from __future__ import annotations

import hashlib

import numpy as np

from everlearn import Canvas, Stream, outlines


def _digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def test_shapes_are_those_of_format_one():
    digest = "14eb24c62ebe2fbaf659bce7cdf44174502919ae408cabe2b2a70e26a45d2f76"
    assert _digest(outlines(5, np.arange(5000)).coefficients) == digest


def test_rows_and_images_of_the_paper_stream_are_those_of_format_one():
    train = Stream(canvas=Canvas(dtype="uint8"))[7].train
    digest = "ff4ed2f35b798c542e73bbb361515b304aece23969dba19fa6c5b073dfe89433"
    assert _digest(train.theta) == digest
    batch = train.batch(slice(None))
    assert _digest(batch.labels.numpy()).startswith("f7ce5e25e0e90a7f")
    digest = "b08b3317ee490b9c577a958dcc28edb160b96c2c91f3ef0658d77bb6bafe7bcb"
    assert _digest(batch.images.numpy()) == digest
