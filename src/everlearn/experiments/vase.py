"""Trials of VASE, of its ablations and of what it is compared with, which several experiments share.

How long and with which numbers they learn is for the presets to say that their bases name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from everlearn.experiments.learners import SEEDS
from everlearn.experiments.trial import (
    FEW_SPRITES,
    MANY_SPRITES,
    NOTHING,
    PAPER,
    SMALL,
    Trial,
)

# S: environments, D: dreams, A: masks; [41] is a work that holds codes of dreams alone, not the images.
ABLATIONS = ("none", "S", "D", "A", "SA", "DA", "SD", "SD-[41]", "SDA")
VASE, PLAIN = "SDA", "none"
_LABELS = {VASE: "VASE", PLAIN: "CCI-VAE"}
_PARTS = {"S": "environments", "D": "dreams", "A": "masks"}
_DATA = "Needs MNIST and Fashion-MNIST: give --data."


class Course(NamedTuple):
    """Environments one after another, and how a method learns them.

    Attributes:
        base: the preset they are of.
        stream: what differs from it; likewise the plan.
        most: environments at most.
        label: what figures add to a trial's own.
    """

    name: str
    base: str
    stream: Mapping[str, Any] = NOTHING
    plan: Mapping[str, Any] = NOTHING
    most: int | None = None
    label: str = ""

    def ablation(self, name: str, entangled: bool = False, seeds: tuple[int, ...] = (0,)) -> Trial:
        """VASE, or what is left of it; entangled: its KL weighs 1, instead of having a capacity."""
        words = "".join(letter for letter in name.lower() if letter.isalnum())
        settings = {**_settings(name), **({"beta": 1.0} if entangled else {})}
        trial = self.trial(
            f"{words}{'-entangled' if entangled else ''}", "cci-vae" if name == PLAIN else "vase",
            label_of(name, entangled),
        )  # fmt: skip
        return trial._replace(settings=settings, seeds=seeds)

    def trial(self, name: str, method: str, label: str) -> Trial:
        """Any method on this course."""
        return Trial(
            f"{self.name}-{name}", method, stream=self.stream, plan=self.plan, most=self.most,
            label=label + self.label, base=self.base,
        )  # fmt: skip


def label_of(ablation: str, entangled: bool = False) -> str:
    """What figures call an ablation: VASE is SDA, and CCI-VAE is what has none of the three."""
    return _LABELS.get(ablation, ablation) + (", entangled" if entangled else "")


def _settings(ablation: str) -> dict[str, Any]:
    """Which parts of VASE an ablation has."""
    letters = "" if ablation == PLAIN else ablation.partition("-")[0]
    parts: dict[str, Any] = {part: letter in letters for letter, part in _PARTS.items()}
    return parts | ({"decoder_weight": 0.0} if ablation.endswith("[41]") else {})


A = {
    SMALL: Course(
        "vase-a", FEW_SPRITES, {"sequence": ("moving-sprites", "turned-sprites-1", "moving-sprites-1")}
    ),
    PAPER: Course("vase-a", "vase-a"),
}  # fmt: skip
SPRITES = {
    SMALL: Course(
        "vase-sprites", FEW_SPRITES,
        {
            "sequence": ("moving-sprites", "scaled-turned-sprites", "moving-sprites-1"),
            "shapes": 5,
            "train": 64 * 450,
        },
        {"disentanglement": True},
    ),
    PAPER: Course("vase-sprites", MANY_SPRITES, plan={"disentanglement": True}),
}  # fmt: skip
B = {SMALL: SPRITES[SMALL], PAPER: Course("vase-b", "vase-b")}
# Two in which items move, to go from one to the other.
PAIR = {
    SMALL: SPRITES[SMALL],
    PAPER: Course(
        "vase-pair", "vase-a", {"sequence": ("moving-fashion-mnist", "inverse-moving-mnist")},
        label=", two that move",
    ),
}  # fmt: skip
TWO = {
    scale: course._replace(name="vase-two", most=2, label=", the first two")
    for scale, course in A.items()
}
MORE_SEEDS = (*SEEDS, 3, 4)


def of_paper(scale: str, seeds: tuple[int, ...]) -> tuple[int, ...]:
    """Seeds at scale `paper`; the first one alone at any other."""
    return seeds if scale == PAPER else seeds[:1]


def each_seed(trial: Trial) -> list[Trial]:
    """A trial of every seed."""
    return [trial._replace(seeds=(seed,)) for seed in trial.seeds]


def note_data(missing: list[str], scale: str) -> str:
    """What to do about runs that are missing, where it takes data."""
    return _DATA if missing and scale == PAPER else ""
