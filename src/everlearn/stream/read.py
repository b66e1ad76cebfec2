"""Read a stream of any kind back from its JSON."""

from __future__ import annotations

from pathlib import Path

from everlearn.stream.codec import find_key
from everlearn.stream.datasets.stream import ArrayStream
from everlearn.stream.environments.stream import Environments
from everlearn.stream.protocol import TaskStream
from everlearn.stream.sprites.stream import Stream
from everlearn.stream.synthetic.gaussians import Gaussians
from everlearn.stream.synthetic.latents import Latents

_WITHOUT_DATA = {kind.KEY: kind for kind in (Stream, Gaussians, Latents)}
_WITH_DATA = {kind.KEY: kind for kind in (ArrayStream, Environments)}


def read_stream(text: str, data: str | Path | None = None) -> TaskStream:
    """Build the stream that `to_json` described.

    Args:
        data: the data folder, for streams over data sets; EVERLEARN_DATA by default.
    """
    key = find_key(text, [*_WITHOUT_DATA, *_WITH_DATA])
    if key in _WITHOUT_DATA:
        return _WITHOUT_DATA[key].from_json(text)
    return _WITH_DATA[key].from_json(text, data)
