"""Scales: how large the streams of experiments are. `paper` is for one GPU, `small` for any machine."""

from __future__ import annotations

from typing import Any

from everlearn.exam import Plan
from everlearn.presets import PRESETS, Preset
from everlearn.render.canvas import Canvas
from everlearn.stream import Environments, Latents, Stream

Knobs = dict[str, Any]

_NET: Knobs = {"net": "convnet-pooled", "batch_size": 32, "epochs": 3, "memory": 200}
_MAPS: Knobs = {"net": "convnet", "batch_size": 32, "epochs": 5}
_OWN: dict[str, Knobs] = {
    "dcl": _MAPS,
    "dcl-plus": _MAPS | {"fit": 3},
    "contrastive": {"batch_size": 64, "epochs": 3, "patience": 0},
    "l2p-lite": {"epochs": 1, "batch_size": 64, "side": 32},
}
_STREAM = Stream(
    tasks=5,
    classes_per_task=3,
    values_per_factor=5,
    canvas=Canvas(size=16),
    split=(0.86, 0.04, 0.1),
)
_PLAN = Plan(one_shot=(10, 20), open_set=True)

SCALES: dict[str, Preset] = {
    "tiny": Preset(
        _STREAM.with_changes(tasks=2, values_per_factor=2, split=(0.75, 0.0, 0.25)),
        Plan(one_shot=(4,), open_set=True),
        _NET | {"epochs": 1, "batch_size": 8, "memory": 20},
        {name: own | {"epochs": 1, "batch_size": 8} for name, own in _OWN.items()},
        "to see that all of it works, in seconds",
    ),
    "small": Preset(_STREAM, _PLAN, _NET, _OWN, "five tasks of 16 pixels, on two CPU cores"),
    "paper": PRESETS["paper"],
}
# Synthetic latents, instead of sprites; `paper` has those of sprites.
_LATENTS = {
    "tiny": Latents(
        classes=4, first=2, classes_per_task=1, sessions=3, test_sessions=(2,), train=10, test=5
    ),
    "small": Latents(),
}
# Of visual environments so many at most.
_MOST_ENVIRONMENTS = {"tiny": {"tasks": 2, "train": 128, "test": 100, "shapes": 2}}


def find_latents(name: str) -> Latents:
    """The synthetic latents of a scale."""
    if name not in _LATENTS:
        raise ValueError(
            f"scale {name!r} has no synthetic latents; those that have: {', '.join(_LATENTS)}"
        )
    return _LATENTS[name]


def shorten(stream: Environments, scale: str) -> Environments:
    """Environments as a scale has them: no more of them, of images and of shapes than it allows."""
    most = _MOST_ENVIRONMENTS.get(scale, {})
    return stream.with_changes(
        **{name: min(getattr(stream, name), value) for name, value in most.items()}
    )


def find_scale(name: str) -> Preset:
    """Look a scale up by its name."""
    if name not in SCALES:
        raise ValueError(f"unknown scale {name!r}; known: {', '.join(SCALES)}")
    return SCALES[name]
