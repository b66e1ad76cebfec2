"""Presets: a stream, an evaluation plan and settings of every method that go together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from everlearn.core.settings import list_settings
from everlearn.evaluation import Plan
from everlearn.methods import find_method
from everlearn.render.canvas import Canvas
from everlearn.stream import Gaussians, Stream, TaskStream
from everlearn.stream.named import STREAMS


class Preset(NamedTuple):
    """The defaults of a run.

    Attributes:
        common: settings for every method that has them.
        groups: names under which methods keep settings of their own for it (`Method.presets`); these
            take precedence over common ones, and later groups over earlier ones.
        summary: what it is for, and what it costs.
        overrides: settings for every method that has them, which take precedence over all others.
    """

    stream: TaskStream
    plan: Plan
    common: Mapping[str, object]
    groups: tuple[str, ...]
    summary: str
    overrides: Mapping[str, object] = {}

    def settings_of(self, name: str) -> dict[str, Any]:
        """Return the settings of a method that this preset changes."""
        method = find_method(name)
        known = list_settings(method.settings())
        common = {name: value for name, value in self.common.items() if name in known}
        overrides = {name: value for name, value in self.overrides.items() if name in known}
        return common | method.settings_for(*self.groups) | overrides


_POOLED = {"net": "convnet-pooled", "batch_size": 64, "buffer_size": 500}
_POINTS = {
    "net": "mlp",
    "optimizer": "sgd",
    "learning_rate": 0.05,
    "final_learning_rate": None,
    "batch_size": 32,
}
_PAPER_PLAN = Plan(every=10, one_shot=(10, 100, 1000), open_set=True, final_after=(200,))
_FEW_STEPS = 600  # per environment, on a CPU


def _of_codes(name: str, steps: int) -> Preset:
    """A stream of environments of so many steps each, with four probes of the codes per environment.

    Every image is seen five times, in batches of 64.
    """
    return Preset(
        STREAMS[name].with_changes(train=64 * steps // 5),
        Plan(code_probe_every=steps // 4, code_all_tasks=True, describe_latents=True),
        {},
        ("gpu", name),
        "visual environments of 64 pixels, for methods that make codes, on one GPU",
    )


PRESETS: dict[str, Preset] = {
    "toy": Preset(
        Gaussians(),
        Plan(within_task=True),
        _POINTS | {"include_unseen": True, "buffer_size": 200},
        ("toy",),
        "points instead of images, in seconds",
    ),
    "latents-nc": Preset(
        STREAMS["latents-nc"],
        Plan(all_classes_every=1),
        _POINTS,
        ("latents-nc",),
        "synthetic latents, nine tasks of new classes, in seconds",
    ),
    "latents-nic": Preset(
        STREAMS["latents-nic"],
        Plan(every=391, max_test_tasks=50, all_classes_every=10),
        _POINTS,
        ("latents-nic",),
        "synthetic latents, 391 tasks, one class in one session after the first",
    ),
    "quickstart": Preset(
        Stream(tasks=5, classes_per_task=3, canvas=Canvas(size=32)),
        Plan(probe_every=25, probe_images=20),
        _POOLED | {"epochs": 2, "batch_size": 32},
        ("cpu", "quickstart"),
        "forgetting, replay and DCL in a minute, on two CPU cores",
    ),
    "small": Preset(
        STREAMS["small"],
        Plan(within_task=True, one_shot=(10, 100)),
        _POOLED,
        ("cpu",),
        "twelve tasks of 32 pixels, on a CPU",
    ),
    "pictures": Preset(
        Stream(tasks=5, classes_per_task=5, canvas=Canvas(size=32)),
        Plan(within_task=True),
        _POOLED,
        ("cpu",),
        "five tasks of 32 pixels, to compare methods on a CPU",
    ),
    "paper": Preset(
        STREAMS["paper"],
        _PAPER_PLAN,
        {},
        ("gpu", "paper"),
        "the paper's 500 tasks, on one GPU",
    ),
    "paper-exact": Preset(
        STREAMS["parity"],
        _PAPER_PLAN,
        {},
        ("gpu", "paper"),
        "the same with the original images: 224 pixels, three channels, hard edges",
    ),
    "environments": Preset(
        STREAMS["vase-sprites"].with_changes(size=32, train=64 * _FEW_STEPS, test=1000),
        Plan(
            code_probe_every=_FEW_STEPS // 2,
            code_train_images=1000,
            code_test_images=500,
            code_all_tasks=True,
            describe_latents=True,
        ),
        _POOLED | {"epochs": 1},
        ("cpu", "environments"),
        "visual environments of 32 pixels, for methods that make codes, in a minute on a CPU",
    ),
    "vase-a": _of_codes("vase-a", 6000),
    "vase-b": _of_codes("vase-b", 4000),
    "vase-sprites": _of_codes("vase-sprites", 4000),
}


def find_preset(name: str) -> Preset:
    """Return a preset, or raise an error that lists the known names."""
    if name not in PRESETS:
        raise ValueError(f"unknown preset {name!r}; known: {', '.join(PRESETS)}")
    return PRESETS[name]
