"""Presets: a stream, a plan of exams and settings of every method that go together."""

from __future__ import annotations

from typing import Any, NamedTuple

from everlearn.exam import Plan
from everlearn.methods import find_method
from everlearn.render.canvas import Canvas
from everlearn.settings import list_settings
from everlearn.stream import AnyStream, Gaussians, Stream
from everlearn.stream.named import STREAMS


class Preset(NamedTuple):
    """What a run is when nothing else is said.

    Attributes:
        common: settings of every method that has them, where they differ from its own.
        settings: of one method, which count more.
        words: what it is for, and what it takes.
    """

    stream: AnyStream
    plan: Plan
    common: dict[str, Any]
    settings: dict[str, dict[str, Any]]
    words: str

    def settings_of(self, method: str) -> dict[str, Any]:
        """The settings of a method that this preset changes."""
        known = list_settings(find_method(method).settings())
        shared = {name: value for name, value in self.common.items() if name in known}
        return shared | self.settings.get(method, {})


_POOLED = {"net": "convnet-pooled", "batch_size": 64}
_MAPS = {"net": "convnet"}
# At 1e-3 a ResNet-18 that sees the current task only does not learn it in 5 epochs (decision 12).
_SLOW = {"rate": 1e-4}
_TASK_BY_TASK = (
    "fine-tuning",
    "lwf",
    "si",
    "ewc",
    "online-ewc",
    "l2",
    "rehearsal-free",
    "agem",
    "gem",
    "der",
    "der++",
)
# New rows of a CWR head should become as long as old ones (docs/methods/gnr.md, "Balance").
_HALVED = (
    "cwr", "cwr-plus", "cwr-star", "ar1", "ar1-star", "ar1-free", "latent-replay", "gnr",
)  # fmt: skip
_FROZEN = ("cwr", "cwr-plus", "cwr-star")
_TOY = {"later_rate": 5e-3, "head_rate": 0.05, "later_head_rate": 0.05}
_NC = {
    "net": "mlp-wide",
    "batch_size": 128,
    "rate": 3e-2,
    "later_rate": 1e-3,
    "head_rate": 3e-2,
    "later_head_rate": 5e-2,
    "epochs": 8,
}
_NIC = {
    "net": "mlp-wide",
    "batch_size": 128,
    "rate": 1e-2,
    "later_rate": 1e-3,
    "head_rate": 1e-2,
    "later_head_rate": 1e-2,
    "memory": 300,
    "share": 0.5,
    "generator_share": 0.5,
}
_POINTS = {"net": "mlp", "optimizer": "sgd", "rate": 0.05, "final_rate": None, "batch_size": 32}
_CODERS = ("vase", "cci-vae", "beta-vae")
_LONG, _SHORT = 6000, 4000  # steps an environment on one GPU, of few environments and of many
_FEW_CODES = {
    "net": "vase-flat",
    "z": 10,
    "most": 5,
    "batch_size": 64,
    "epochs": 1,
    "rate": 1e-3,
    "gamma": 20.0,
    "capacity": 12.0,
    "capacity_steps": 360,
    "limit": 0.35,
    "kappa": 1.25,
}
_FEW_STEPS = 600  # an environment


def _halved(own: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Settings of all nets in two halves; a frozen one stays frozen."""
    frozen = {name: own | {"later_rate": 0.0} for name in _FROZEN}
    return dict.fromkeys(_HALVED, own) | frozen


def _of_codes(name: str, steps: int) -> Preset:
    """A stream of environments in full, its codes probed four times an environment.

    Every image is seen five times, in batches of 64; capacity grows for 3/5 of an environment.
    """
    return Preset(
        STREAMS[name].with_changes(train=64 * steps // 5),
        Plan(codes=steps // 4, code_ahead=True, latents=True),
        {},
        {
            **{coder: {"capacity_steps": 3 * steps // 5} for coder in _CODERS},
            "gdumb": {"batch_size": 256, "epochs": 64},
        },
        "visual environments of 64 pixels, for methods that make codes, on one GPU",
    )


_ON_CPU: dict[str, dict[str, Any]] = {
    "dcl": _MAPS,
    "dcl-plus": _MAPS,
    **dict.fromkeys(_CODERS, _FEW_CODES),
    **_halved({"later_head_rate": 1e-2}),
}
PRESETS: dict[str, Preset] = {
    "toy": Preset(
        Gaussians(),
        Plan(within=True),
        {
            "net": "mlp",
            "optimizer": "sgd",
            "rate": 0.05,
            "final_rate": None,
            "batch_size": 32,
            "unmet": True,
            "fresh": False,
            "memory": 200,
        },
        {
            "gdumb": {"batch_size": 16, "final_rate": 5e-4},
            "icarl": {"unmet": False},
            "contrastive": {"rate": 1e-3, "final_rate": 1e-5},  # Adam's: it knows no other
            "bir": {"rate": 1e-3, "units": 200},  # likewise
            **_halved(_TOY),
            "ar1": _TOY | {"later_rate": 1e-3},  # a firm hold swings where the rate is large
            "ar1-star": _TOY | {"later_rate": 1e-3},
        },
        "points instead of images, in seconds",
    ),
    "latents-nc": Preset(
        STREAMS["latents-nc"],
        Plan(whole=1),
        _POINTS,
        _halved(_NC) | {"bir": {"rate": 1e-3, "units": 200}},
        "synthetic latents, nine tasks of new classes, in seconds",
    ),
    "latents-nic": Preset(
        STREAMS["latents-nic"],
        Plan(every=391, test_tasks=50, whole=10),
        _POINTS,
        _halved(_NIC)
        | {"latent-replay": _NIC | {"share": None}, "bir": {"rate": 1e-3, "units": 200}},
        "synthetic latents, 391 tasks, one class in one session after the first",
    ),
    "quickstart": Preset(
        Stream(tasks=6, classes_per_task=5, canvas=Canvas(size=32)),
        Plan(probe=10, probe_images=25),
        _POOLED | {"epochs": 3, "batch_size": 32, "memory": 500},
        {
            "dcl": _MAPS | {"batch_size": 64, "epochs": 10},
            "dcl-plus": _MAPS | {"batch_size": 64, "epochs": 5},
            "joint": {"batch_size": 64, "epochs": 2},
            "contrastive": {"batch_size": 64, "epochs": 5, "patience": 0},
            "gdumb": {"epochs": 32},  # passes over its memory, not over a task
            **dict.fromkeys(_CODERS, _FEW_CODES),
            **_halved({"later_head_rate": 1e-2}),
        },
        "forgetting in minutes, on two CPU cores",
    ),
    "small": Preset(
        STREAMS["small"],
        Plan(within=True, one_shot=(10, 100)),
        _POOLED | {"memory": 500},
        _ON_CPU,
        "twelve tasks of 32 pixels, on a CPU",
    ),
    "pictures": Preset(
        Stream(tasks=5, classes_per_task=5, canvas=Canvas(size=32)),
        Plan(within=True),
        _POOLED | {"memory": 500},
        _ON_CPU,
        "five tasks of 32 pixels, to compare methods on a CPU",
    ),
    "paper": Preset(
        STREAMS["paper"],
        Plan(every=10, one_shot=(10, 100, 1000), open_set=True, finals=(200,)),
        {},
        # 5,000 classes: GDumb as often as is affordable, iCaRL with an exemplar of each.
        {
            **dict.fromkeys(_TASK_BY_TASK, _SLOW),
            "gdumb": {"every": 100, "batch_size": 256, "epochs": 64},
            "icarl": {"memory": 5000},
            **_halved({"later_head_rate": 3e-3, "memory": 5000}),
            "ar1": {},  # their own rates: slow, and all the same
            "ar1-star": {},
        },
        "the paper's 500 tasks, on one GPU",
    ),
    "environments": Preset(
        STREAMS["vase-sprites"].with_changes(size=32, train=64 * _FEW_STEPS, test=1000),
        Plan(
            codes=_FEW_STEPS // 2,
            code_images=1000,
            code_tests=500,
            code_ahead=True,
            latents=True,
        ),
        _POOLED | {"epochs": 1, "memory": 500},
        _ON_CPU | {"gdumb": {"epochs": 32}},
        "visual environments of 32 pixels, for methods that make codes, in a minute on a CPU",
    ),
    "vase-a": _of_codes("vase-a", _LONG),
    "vase-b": _of_codes("vase-b", _SHORT),
    "vase-sprites": _of_codes("vase-sprites", _SHORT),
}


def find_preset(name: str) -> Preset:
    """Look a preset up by its name."""
    if name not in PRESETS:
        raise ValueError(f"unknown preset {name!r}; known: {', '.join(PRESETS)}")
    return PRESETS[name]
