"""Environment: the source of its items, and modifiers that say what varies."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

MODIFIERS = ("inverse", "moving", "scaled", "turned")
DATA_SETS = ("mnist", "fashion-mnist")
GRAMMAR = (
    "an environment is [inverse-][moving-][scaled-][turned-]SOURCE, modifiers in this order; sources: "
    f"{', '.join(DATA_SETS)}, sprites, sprites-K for the K-th set of shapes"
)
_SPRITES = re.compile(r"sprites(?:-(\d{1,6}))?")


class Environment(NamedTuple):
    """A source of items and what varies.

    Attributes:
        source: a data set or a set of sprites.
        inverse: whether black and white are swapped.
        moving: whether the position varies.
        scaled: whether the scale varies.
        turned: whether the orientation varies.
    """

    source: str
    inverse: bool = False
    moving: bool = False
    scaled: bool = False
    turned: bool = False

    @property
    def modifiers(self) -> list[str]:
        """The modifiers that apply, in the order of the name."""
        return [modifier for modifier in MODIFIERS if getattr(self, modifier)]

    @property
    def name(self) -> str:
        """The canonical name."""
        return "-".join([*self.modifiers, self.source])

    @property
    def shape_set(self) -> int | None:
        """The number of the set of shapes; None where items come from a data set."""
        found = _SPRITES.fullmatch(self.source)
        return None if found is None else int(found[1] or 0)

    @property
    def code(self) -> int:
        """A number below 2**32 that determines the rows; an inverse has the rows of its original."""
        number = self.shape_set
        place = DATA_SETS.index(self.source) if number is None else len(DATA_SETS) + number
        return place << 3 | self.turned << 2 | self.scaled << 1 | self.moving


def parse_environment(name: Any) -> Environment:
    """Parse the name of an environment, or say what is wrong with it."""
    if not isinstance(name, str):
        raise TypeError(f"an environment is a name, found {name!r}; {GRAMMAR}")
    rest = name
    given = {}
    for modifier in MODIFIERS:
        given[modifier] = rest.startswith(f"{modifier}-")
        rest = rest.removeprefix(f"{modifier}-")
    environment = Environment(_source(rest, name), **given)
    _check(environment)
    return environment


def _source(text: str, name: str) -> str:
    """Return the canonical name of a source: the first set of shapes has no number."""
    found = _SPRITES.fullmatch(text)
    if found is not None:
        number = int(found[1] or 0)
        return f"sprites-{number}" if number else "sprites"
    if text not in DATA_SETS:
        raise ValueError(f"unknown environment {name!r}: {text!r} is not a source; {GRAMMAR}")
    return text


def _check(environment: Environment) -> None:
    varies = environment.moving or environment.scaled or environment.turned
    if environment.shape_set is not None and not varies:
        raise ValueError(
            f"environment {environment.name!r} would show the same few images in training and "
            "testing; add moving-, scaled- or turned-"
        )
    if environment.shape_set is None and (environment.scaled or environment.turned):
        raise ValueError(
            f"environment {environment.name!r} scales or turns a data set; scaled- and turned- are for "
            "sprites"
        )
