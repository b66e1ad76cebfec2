"""Trials: runs by name, plain data; and what an experiment is set to."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

SMALL, PAPER = "small", "paper"
Thing = TypeVar("Thing")
NOTHING: Mapping[str, Any] = MappingProxyType({})
# What a trial may learn instead of the scale's sprites: synthetic latents, or those of 50 sprites.
LATENTS, IDSPRITES = "latents", "idsprites-50"
# Or visual environments, as a preset of this name has them: small ones without data, and in full.
FEW_SPRITES, MANY_SPRITES = "environments", "vase-sprites"
WITH_DATA = ("vase-a", "vase-b")
ENVIRONMENTS = (FEW_SPRITES, MANY_SPRITES, *WITH_DATA)
# Stands in settings for the file of the extractor that the lab has pre-trained.
EXTRACTOR = "extractor"


class Trial(NamedTuple):
    """A method that learns a scale's stream, or that stream with changes.

    Attributes:
        name: of its runs' folders; experiments that name the same trial share its runs.
        settings: of the method, where they differ from the scale's.
        stream: settings of the stream, likewise.
        plan: of the exams, likewise.
        most: tasks at most; a shorter run is the beginning of a longer one.
        label: what figures call it; the name, if empty.
        base: what it learns: the scale's stream, if empty, or LATENTS, IDSPRITES, or a preset among
            ENVIRONMENTS, whose plan and settings count then instead of the scale's.
    """

    name: str
    method: str
    settings: Mapping[str, Any] = NOTHING
    stream: Mapping[str, Any] = NOTHING
    plan: Mapping[str, Any] = NOTHING
    most: int | None = None
    seeds: tuple[int, ...] = (0,)
    label: str = ""
    base: str = ""

    @property
    def needs_extractor(self) -> bool:
        """Whether an extractor must be pre-trained before it can learn."""
        return self.base == IDSPRITES or EXTRACTOR in self.settings.values()

    @property
    def title(self) -> str:
        """What figures call it."""
        return self.label or self.name

    def folder(self, seed: int) -> str:
        """The name of a run's folder."""
        return f"{self.name}-seed{seed}"


class Settings(NamedTuple):
    """What an experiment does at one scale: trials, and numbers of its own."""

    trials: tuple[Trial, ...] = ()
    numbers: Mapping[str, Any] = NOTHING


def at_scale(every: Mapping[str, Thing], scale: str) -> Thing:
    """What an experiment says of a scale: of all but `paper` what it says of `small`."""
    return every[PAPER if scale == PAPER else SMALL]
