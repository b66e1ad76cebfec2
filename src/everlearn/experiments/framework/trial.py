"""Trials: runs by name, as plain data; and the settings of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

SMALL = "small"
PAPER = "paper"
T = TypeVar("T")
EMPTY: Mapping[str, Any] = MappingProxyType({})
# Streams that a trial may learn instead of the sprites of its scale: synthetic latents, or the
# latents that the extractor gives to 50 sprites.
LATENTS = "latents"
IDSPRITES = "idsprites-50"
# Or points, by the name of a preset.
TOY = "toy"
# Or visual environments, by the name of a preset: small ones, and in full.
SMALL_ENVIRONMENTS = "environments"
SPRITE_ENVIRONMENTS = "vase-sprites"
DATA_ENVIRONMENTS = ("vase-a", "vase-b")  # need MNIST and Fashion-MNIST
ENVIRONMENTS = (SMALL_ENVIRONMENTS, SPRITE_ENVIRONMENTS, *DATA_ENVIRONMENTS)
# Presets that a trial may learn.
PRESETS = (TOY, *ENVIRONMENTS)
# Placeholder in the settings of a trial for the file of the extractor.
EXTRACTOR = "extractor"
ONE_SEED = (0,)


class Trial(NamedTuple):
    """A method that learns the stream of a scale, with changes to the defaults of that scale.

    Attributes:
        name: start of the names of its run folders; experiments that name the same trial share its runs.
        settings: changes to the settings of the method.
        stream: changes to the settings of the stream; a scenario with settings is a mapping with its name.
        plan: changes to the evaluation plan.
        max_tasks: learn at most so many tasks; a shorter run is the start of a longer one.
        seeds: seeds of its runs at scale `paper`; at smaller scales only the first one is run.
        tasks_by_seed: learn at most so many tasks with these seeds.
        label: name in figures; by default the name of the trial.
        base: stream to learn: empty for that of the scale, LATENTS, IDSPRITES, or one of PRESETS, which
            then also provides the default plan and settings.
    """

    name: str
    method: str
    settings: Mapping[str, Any] = EMPTY
    stream: Mapping[str, Any] = EMPTY
    plan: Mapping[str, Any] = EMPTY
    max_tasks: int | None = None
    seeds: tuple[int, ...] = ONE_SEED
    label: str = ""
    base: str = ""
    tasks_by_seed: Mapping[int, int] = MappingProxyType({})

    def seeds_at(self, scale: str) -> tuple[int, ...]:
        """Return the seeds that are run at a scale."""
        return self.seeds if scale == PAPER else self.seeds[:1]

    def limit_tasks(self, tasks: int, seed: int) -> int:
        """Return how many of the tasks of a stream are learned with a seed."""
        return min(tasks, self.max_tasks or tasks, self.tasks_by_seed.get(seed, tasks))

    @property
    def needs_extractor(self) -> bool:
        """Whether an extractor must be pre-trained before the trial can start."""
        return self.base == IDSPRITES or EXTRACTOR in self.settings.values()

    @property
    def title(self) -> str:
        """The name of the trial in figures."""
        return self.label or self.name

    def folder(self, seed: int) -> str:
        """Return the name of the run folder of a seed."""
        return f"{self.name}-seed{seed}"


class Settings(NamedTuple):
    """The trials of an experiment at one scale, and its other options, such as sizes to measure."""

    trials: tuple[Trial, ...] = ()
    options: Mapping[str, Any] = EMPTY


def at_scale(by_scale: Mapping[str, T], scale: str) -> T:
    """Return the entry of a scale; every scale but `paper` uses the entry of `small`."""
    return by_scale[PAPER if scale == PAPER else SMALL]
