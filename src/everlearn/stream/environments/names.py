"""An environment by its name: words that say what varies, and the source of its items."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

WORDS = ("inverse", "moving", "scaled", "turned")
DATA_SETS = ("mnist", "fashion-mnist")
GRAMMAR = (
    "an environment is [inverse-][moving-][scaled-][turned-]SOURCE, words in this order; sources: "
    f"{', '.join(DATA_SETS)}, sprites, sprites-K for the K-th set of shapes"
)
_SPRITES = re.compile(r"sprites(?:-(\d{1,6}))?")


class Environment(NamedTuple):
    """What images show.

    Attributes:
        source: where items come from.
        inverse: whether black and white are exchanged.
        moving: whether position varies; scaled and turned likewise.
    """

    source: str
    inverse: bool = False
    moving: bool = False
    scaled: bool = False
    turned: bool = False

    @property
    def words(self) -> list[str]:
        """What differs from items that stand still."""
        return [word for word in WORDS if getattr(self, word)]

    @property
    def name(self) -> str:
        """The name in the one way it is written."""
        return "-".join([*self.words, self.source])

    @property
    def shape_set(self) -> int | None:
        """Which set of shapes it shows; None where items are of a data set."""
        found = _SPRITES.fullmatch(self.source)
        return None if found is None else int(found[1] or 0)

    @property
    def code(self) -> int:
        """A number below 2**32 that its rows follow from: an inverse has the rows of its original."""
        number = self.shape_set
        place = DATA_SETS.index(self.source) if number is None else len(DATA_SETS) + number
        return place << 3 | self.turned << 2 | self.scaled << 1 | self.moving


def parse(name: Any) -> Environment:
    """Read the name of an environment, or say what is wrong with it."""
    if not isinstance(name, str):
        raise TypeError(f"an environment is a name, found {name!r}; {GRAMMAR}")
    rest, given = name, {}
    for word in WORDS:
        given[word] = rest.startswith(f"{word}-")
        rest = rest.removeprefix(f"{word}-")
    environment = Environment(_source(rest, name), **given)
    _check(environment)
    return environment


def _source(text: str, name: str) -> str:
    """A source in the one way it is written: the first set of shapes has no number."""
    found = _SPRITES.fullmatch(text)
    if found is not None:
        number = int(found[1] or 0)
        return f"sprites-{number}" if number else "sprites"
    if text not in DATA_SETS:
        raise ValueError(f"unknown environment {name!r}, {text!r} is no source; {GRAMMAR}")
    return text


def _check(environment: Environment) -> None:
    varies = environment.moving or environment.scaled or environment.turned
    if environment.shape_set is not None and not varies:
        raise ValueError(
            f"environment {environment.name!r} would show the same few pictures for training and "
            "testing; let its sprites move, scale or turn: moving-, scaled- or turned-"
        )
    if environment.shape_set is None and (environment.scaled or environment.turned):
        raise ValueError(
            f"environment {environment.name!r} scales or turns a data set; scaled- and turned- go with "
            "sprites only"
        )
