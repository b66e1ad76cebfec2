"""Named streams."""

from __future__ import annotations

import pytest

from everlearn import Stream
from everlearn.stream.named import STREAMS, named


def test_the_paper_stream_is_the_default():
    assert named("paper") == Stream(seed=0, tasks=500, classes_per_task=10, values_per_factor=5)


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_every_named_stream_gives_tasks_and_round_trips(name):
    stream = named(name)
    assert len(stream[1].train) > 0
    assert Stream.from_json(stream.to_json()) == stream


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="unknown stream 'papper'; known: paper"):
        named("papper")
