"""What is read off runs on environments: probes of codes, environments found, latents at work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from everlearn.experiments.read import with_spread
from everlearn.metrics import NotMeasuredError
from everlearn.metrics.codes import (
    Probed,
    accuracy_change,
    ends,
    lowest_accuracy_change,
    max_accuracy,
    min_square_error,
    probed,
    square_error_change,
)
from everlearn.metrics.environments import Found as Detected
from everlearn.metrics.environments import environments
from everlearn.metrics.latents import latents
from everlearn.report import Finished, Group

_PERCENT, _FINE = 1e2, 1e4  # squared errors are told in 1e-4


class Score(NamedTuple):
    """What probes of a run came to; NaN where it was not measured.

    Attributes:
        best: accuracy at its best, mean over environments, percent.
        change: of accuracy from the end of an environment's stage to the end of all, percent points.
        lowest: and to where it was lowest after that stage.
        place: the least squared error of position, in 1e-4.
        place_change: of it, likewise.
        own: nats lost of an image of the first environment when it was left.
        end: and in the end.
    """

    best: float
    change: float
    lowest: float
    place: float
    place_change: float
    own: float
    end: float


def score(run: Finished) -> Score:
    """Sum the probes of a run up."""
    found = probed(run.rows)
    first = ends(found, lambda one: one.error)
    own, end = (first.own[0], first.final[0]) if len(first.own) else (np.nan, np.nan)
    return Score(
        _PERCENT * _or_nan(max_accuracy, found),
        _PERCENT * _or_nan(accuracy_change, found),
        _PERCENT * _or_nan(lowest_accuracy_change, found),
        _FINE * _or_nan(min_square_error, found),
        _FINE * _or_nan(square_error_change, found),
        float(own),
        float(end),
    )


def _or_nan(number: Callable[[dict[int, Probed]], float], found: dict[int, Probed]) -> float:
    try:
        return number(found)
    except NotMeasuredError:
        return np.nan


def values(group: Group, name: str) -> list[float]:
    """A number of every seed's score, of those that measured it."""
    found = [getattr(score(run), name) for run in group.runs]
    return [value for value in found if np.isfinite(value)]


def average(group: Group, name: str) -> float | None:
    """Its mean over seeds."""
    found = values(group, name)
    return float(np.mean(found)) if found else None


def spread(group: Group, name: str, digits: int = 1) -> str:
    """A number as a table shows it: its mean, and how far seeds lie apart."""
    return with_spread(values(group, name), digits).replace("-", "−")


def detected(run: Finished) -> Detected | None:
    """The environments that a run opened; None where it does not look for any."""
    if not run.settings.get("settings", {}).get("environments", True):
        return None
    try:
        return environments(run.costs)
    except NotMeasuredError:
        return None


def used(run: Finished) -> int | None:
    """How many latents are at work in the end, in one environment or another."""
    try:
        return latents(run.rows).used
    except NotMeasuredError:
        return None


def names_of(run: Finished) -> list[str]:
    """The names of a run's environments, in their order."""
    return list(run.stream.get("sequence", ()))


def name_of(run: Finished, place: int) -> str:
    """The name of one, or its number."""
    names = names_of(run)
    return names[place] if place < len(names) else f"environment {place + 1}"


def exact(groups: Sequence[Group]) -> tuple[int, int]:
    """In how many runs environments were found exactly, of how many."""
    found = [one for group in groups for run in group.runs if (one := detected(run)) is not None]
    return sum(one.exact for one in found), len(found)
