"""Named streams: benchmarks that can be cited by one word."""

from __future__ import annotations

from everlearn.factors import continuous_space
from everlearn.render.canvas import Canvas
from everlearn.stream.environments import Environments
from everlearn.stream.scenarios.incremental import DomainIncremental, NewInstancesAndClasses
from everlearn.stream.sprites.stream import Stream
from everlearn.stream.synthetic.latents import Latents

# "paper": 500 tasks x 10 classes x 5 values of 4 factors = 6,250 images per task, split 6000/150/100
# (Dziadzio et al. 2023). "parity": the same with the original's resolution and hard edges.
# "idsprites-50": 11 sessions of 50 shapes with 300 images each, to extract latents from; all rows are
# training rows, and the stream of latents chooses the test sessions. "vase-a", "vase-b": the sequences of
# the VASE paper (Achille et al. 2018); their data are read when a task is made. "vase-sprites": a
# sequence that needs no data.
STREAMS: dict[str, Stream | Latents | Environments] = {
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
    "idsprites-50": Stream(
        tasks=11,
        classes_per_task=50,
        scenario=DomainIncremental("orientation", 11),
        split=(50 * 300, 0, 0),
        factors=continuous_space(),
    ),
    "latents-nc": Latents(),
    "latents-nic": Latents(scenario="nic"),
    "vase-a": Environments(),
    "vase-b": Environments(
        ("moving-mnist", "fashion-mnist", "inverse-fashion-mnist", "mnist", "moving-fashion-mnist")
    ),
    "vase-sprites": Environments(
        (
            "moving-sprites",
            "scaled-turned-sprites",
            "moving-sprites-1",
            "inverse-moving-scaled-sprites",
        )
    ),
}


def named(name: str) -> Stream | Latents | Environments:
    """Find a stream by name."""
    if name not in STREAMS:
        raise ValueError(f"unknown stream {name!r}; known: {', '.join(STREAMS)}")
    return STREAMS[name]
