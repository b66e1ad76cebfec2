"""Streams that have a name: benchmarks to cite in a word."""

from __future__ import annotations

from everlearn.render.canvas import Canvas
from everlearn.stream.scenarios import NewInstancesAndClasses
from everlearn.stream.spec import Stream

# "paper": 500 tasks x 10 classes x 5 values of 4 factors = 6,250 images a task, split 6000/150/100
# (Dziadzio et al. 2023); "parity": the same in the original's resolution and hard edges.
STREAMS: dict[str, Stream] = {
    "paper": Stream(),
    "parity": Stream(canvas=Canvas(size=224, channels=3, parity=True)),
    "small": Stream(tasks=12, canvas=Canvas(size=32)),
    "endless": Stream(tasks=None),
    "continuous": Stream(test_factors="continuous"),
    "online": Stream(online=True),
    "domain": Stream(tasks=10, scenario="domain"),
    "nic-391": Stream(tasks=391, scenario=NewInstancesAndClasses()),
    "blurry": Stream(tasks=5, scenario="blurry", online=True),
    "recurring": Stream(scenario="recurring"),
}


def named(name: str) -> Stream:
    """Look a stream up by its name."""
    if name not in STREAMS:
        raise ValueError(f"unknown stream {name!r}; known: {', '.join(STREAMS)}")
    return STREAMS[name]
