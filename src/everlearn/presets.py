"""Presets: a stream, a plan of exams and settings of every method that go together."""

from __future__ import annotations

from typing import Any, NamedTuple

from everlearn.exam import Plan
from everlearn.render.canvas import Canvas
from everlearn.stream import Stream
from everlearn.stream.named import STREAMS


class Preset(NamedTuple):
    """What a run is when nothing else is said.

    Attributes:
        settings: of each method, where they differ from its own.
        words: what it is for, and what it takes.
    """

    stream: Stream
    plan: Plan
    settings: dict[str, dict[str, Any]]
    words: str


_SMALL_MAPS = {"net": "convnet", "batch_size": 64}
_SMALL_CLASSES = {"net": "convnet-pooled", "batch_size": 64}

PRESETS: dict[str, Preset] = {
    "quickstart": Preset(
        Stream(tasks=6, classes_per_task=5, canvas=Canvas(size=32)),
        Plan(probe=10, probe_images=25),
        {
            "dcl": _SMALL_MAPS | {"epochs": 10},
            "dcl-plus": _SMALL_MAPS,
            "fine-tuning": _SMALL_CLASSES | {"epochs": 3, "batch_size": 32, "unmet": False},
            "joint": _SMALL_CLASSES | {"epochs": 2},
        },
        "forgetting in minutes, on two CPU cores",
    ),
    "small": Preset(
        STREAMS["small"],
        Plan(within=True, one_shot=(10, 100)),
        {
            "dcl": _SMALL_MAPS,
            "dcl-plus": _SMALL_MAPS,
            "fine-tuning": _SMALL_CLASSES,
            "joint": _SMALL_CLASSES,
        },
        "twelve tasks of 32 pixels, on a CPU",
    ),
    "paper": Preset(
        STREAMS["paper"],
        Plan(every=10, one_shot=(10, 100, 1000), open_set=True, finals=(200,)),
        {},
        "the paper's 500 tasks, on one GPU",
    ),
}


def find_preset(name: str) -> Preset:
    """Look a preset up by its name."""
    if name not in PRESETS:
        raise ValueError(f"unknown preset {name!r}; known: {', '.join(PRESETS)}")
    return PRESETS[name]
