"""Streams of every kind are read back from their JSON."""

from __future__ import annotations

import json

import pytest

from everlearn import Environments, Gaussians, Latents, Stream
from everlearn.stream import TaskStream, read_stream


@pytest.mark.parametrize("stream", [Stream(), Gaussians(), Latents(), Environments()])
def test_every_kind_of_stream_is_read_back_equal(stream: TaskStream) -> None:
    assert read_stream(stream.to_json()) == stream


def test_the_format_key_decides_not_the_text() -> None:
    text = json.dumps({"everlearn_stream": 1, "orientation_grid": "everlearn_gaussians"})
    with pytest.raises(ValueError, match="orientation"):
        read_stream(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"everlearn_video": 1, "seed": 0}', "found everlearn_video, seed; write the file with"),
        ("{}", "found no keys"),
        ('{"everlearn_stream": 1, "everlearn_latents": 1}', "exactly one of the keys"),
        ("[1]", "must be a JSON object, found list"),
        ("seed: 0", "must be JSON"),
    ],
)
def test_unknown_formats_are_refused_with_the_known_ones(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_stream(text)
    if text.startswith("{"):
        with pytest.raises(ValueError, match="everlearn_stream, everlearn_gaussians"):
            read_stream(text)
