"""Named streams."""

from __future__ import annotations

import numpy as np
import pytest

from everlearn import Environments, Stream
from everlearn.stream import read_stream
from everlearn.stream.named import STREAMS, named

from ..conftest import data_file


def test_the_paper_stream_is_the_default():
    assert named("paper") == Stream(seed=0, tasks=500, classes_per_task=10, values_per_factor=5)


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_every_named_stream_gives_tasks_and_round_trips(name):
    stream = named(name)
    assert read_stream(stream.to_json()) == stream
    if isinstance(stream, Environments) and "sprites" not in name:
        stream = stream.with_changes(data=data_file("MNIST").parent)
    assert len(stream[1].train) > 0


def test_idsprites_50_sessions_are_bands_of_orientation_with_300_images_per_class():
    stream = named("idsprites-50")
    assert (len(stream), len(stream.class_ids), stream.canvas.size) == (11, 50, 64)
    for index in (0, 10):
        task, width = stream[index], 2 * np.pi / 11
        assert np.bincount(task.train.labels).tolist() == [300] * 50
        assert len(task.val) == len(task.test) == 0
        turned = task.train.factors.orientation / width
        assert index <= turned.min() < index + 0.01
        assert index + 0.99 < turned.max() < index + 1
        for name, low in (("scale", 0.5), ("x", 0), ("y", 0)):
            values = getattr(task.train.factors, name)
            assert len(np.unique(values)) == len(values)
            assert values.mean() == pytest.approx((low + 1) / 2, abs=0.01)


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="unknown stream 'papper'; known: paper"):
        named("papper")
