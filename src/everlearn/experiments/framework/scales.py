"""Scales: the size of the streams of all experiments. `paper` needs a GPU, `small` runs anywhere."""

from __future__ import annotations

from everlearn.evaluation import Plan
from everlearn.render.canvas import Canvas
from everlearn.runs.presets import PRESETS, Preset
from everlearn.stream import Latents, Stream, TaskStream

_NET = {"net": "convnet-pooled", "batch_size": 32, "epochs": 3, "buffer_size": 200}
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
        _NET | {"buffer_size": 20},
        ("small-scale",),
        "a smoke test of everything, in seconds",
        overrides={"epochs": 1, "batch_size": 8},
    ),
    "small": Preset(
        _STREAM, _PLAN, _NET, ("small-scale",), "five tasks of 16 pixels, on two CPU cores"
    ),
    "paper": PRESETS["paper"],
}
# Synthetic latents for the small scales; scale `paper` computes latents of sprites.
_LATENTS = {
    "tiny": Latents(
        classes=4, first=2, classes_per_task=1, sessions=3, test_sessions=(2,), train=10, test=5
    ),
    "small": Latents(),
}
# Upper limits for streams of visual environments.
_ENVIRONMENT_LIMITS = {"tiny": {"tasks": 2, "train": 128, "test": 100, "shapes": 2}}


def find_latents(name: str) -> Latents:
    """Return the stream of synthetic latents of a scale."""
    if name not in _LATENTS:
        raise ValueError(
            f"scale {name!r} has no synthetic latents; scales with them: {', '.join(_LATENTS)}"
        )
    return _LATENTS[name]


def limit_environments(stream: TaskStream, scale: str) -> TaskStream:
    """Reduce environments, images and shapes to the limits of a scale."""
    limits = _ENVIRONMENT_LIMITS.get(scale, {})
    reduced = {name: min(getattr(stream, name), limit) for name, limit in limits.items()}
    return stream.with_changes(**reduced)


def find_scale(name: str) -> Preset:
    """Return a scale by its name."""
    if name not in SCALES:
        raise ValueError(f"unknown scale {name!r}; known: {', '.join(SCALES)}")
    return SCALES[name]
