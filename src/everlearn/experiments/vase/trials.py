"""Trials of VASE, its ablations and the methods beside it, which several experiments share.

The presets that the sequences name as their base say how long and with which settings they learn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from everlearn.experiments.framework.trial import (
    EMPTY,
    ONE_SEED,
    PAPER,
    SMALL,
    SMALL_ENVIRONMENTS,
    SPRITE_ENVIRONMENTS,
    Trial,
)

# S: environments, D: dreams, A: masks. SD-[41] constrains only the codes of dreams, not the images,
# as work [41] of the paper does.
ABLATIONS = ("none", "S", "D", "A", "SA", "DA", "SD", "SD-[41]", "SDA")
VASE = "SDA"
CCI_VAE = "none"
_LABELS = {VASE: "VASE", CCI_VAE: "CCI-VAE"}
_COMPONENTS = {"S": "environments", "D": "dreams", "A": "masks"}
SEEDS = (0, 1, 2)
FIVE_SEEDS = (*SEEDS, 3, 4)


class EnvironmentSequence(NamedTuple):
    """A sequence of visual environments that methods learn.

    Attributes:
        name: start of the names of its trials.
        base: the preset with the defaults.
        stream: changes to the stream of the preset.
        plan: changes to the evaluation plan of the preset.
        max_tasks: learn at most so many environments.
        label: suffix of the labels of its trials.
    """

    name: str
    base: str
    stream: Mapping[str, Any] = EMPTY
    plan: Mapping[str, Any] = EMPTY
    max_tasks: int | None = None
    label: str = ""

    def ablation(
        self, name: str, entangled: bool = False, seeds: tuple[int, ...] = ONE_SEED
    ) -> Trial:
        """Return the trial of an ablation of VASE; entangled: a KL of weight 1, without capacity."""
        short_name = "".join(letter for letter in name.lower() if letter.isalnum())
        suffix = "-entangled" if entangled else ""
        method = "cci-vae" if name == CCI_VAE else "vase"
        trial = self.trial(short_name + suffix, method, ablation_label(name, entangled))
        settings = {**_settings(name), **({"beta": 1.0} if entangled else {})}
        return trial._replace(settings=settings, seeds=seeds)

    def trial(self, name: str, method: str, label: str) -> Trial:
        """Return the trial of any method on this sequence."""
        return Trial(
            f"{self.name}-{name}",
            method,
            stream=self.stream,
            plan=self.plan,
            max_tasks=self.max_tasks,
            label=label + self.label,
            base=self.base,
        )


def ablation_label(ablation: str, entangled: bool = False) -> str:
    """Return the label of an ablation: SDA is VASE, and CCI-VAE has none of the components."""
    return _LABELS.get(ablation, ablation) + (", entangled" if entangled else "")


def _settings(ablation: str) -> dict[str, Any]:
    """Return which components of VASE an ablation has."""
    letters = "" if ablation == CCI_VAE else ablation.partition("-")[0]
    settings: dict[str, Any] = {name: letter in letters for letter, name in _COMPONENTS.items()}
    if ablation.endswith("[41]"):
        settings["decoder_weight"] = 0.0
    return settings


SEQUENCE_A = {
    SMALL: EnvironmentSequence(
        "vase-a",
        SMALL_ENVIRONMENTS,
        {"sequence": ("moving-sprites", "turned-sprites-1", "moving-sprites-1")},
    ),
    PAPER: EnvironmentSequence("vase-a", "vase-a"),
}
SPRITE_SEQUENCE = {
    SMALL: EnvironmentSequence(
        "vase-sprites",
        SMALL_ENVIRONMENTS,
        {
            "sequence": ("moving-sprites", "scaled-turned-sprites", "moving-sprites-1"),
            "shapes": 5,
            "train": 64 * 450,
        },
        {"disentanglement": True},
    ),
    PAPER: EnvironmentSequence("vase-sprites", SPRITE_ENVIRONMENTS, plan={"disentanglement": True}),
}
SEQUENCE_B = {SMALL: SPRITE_SEQUENCE[SMALL], PAPER: EnvironmentSequence("vase-b", "vase-b")}
# Two environments in which items move, to transfer codes between them.
MOVING_PAIR = {
    SMALL: SPRITE_SEQUENCE[SMALL],
    PAPER: EnvironmentSequence(
        "vase-pair",
        "vase-a",
        {"sequence": ("moving-fashion-mnist", "inverse-moving-mnist")},
        label=", two that move",
    ),
}
FIRST_TWO = {
    scale: sequence._replace(name="vase-two", max_tasks=2, label=", the first two")
    for scale, sequence in SEQUENCE_A.items()
}


def paper_seeds(scale: str, seeds: tuple[int, ...]) -> tuple[int, ...]:
    """Return all seeds at scale `paper`, and the first one at any other scale."""
    return seeds if scale == PAPER else seeds[:1]


def each_seed(trial: Trial) -> list[Trial]:
    """Return one trial per seed."""
    return [trial._replace(seeds=(seed,)) for seed in trial.seeds]


def data_note(missing: list[str], scale: str) -> str:
    """Return a note on the data sets that missing runs of scale `paper` need."""
    return "Needs MNIST and Fashion-MNIST: give --data." if missing and scale == PAPER else ""
