"""Bands of a data set: recording sessions, ranges of a factor, or tasks of the official file lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from everlearn.stream.datasets.files import Arrays, Ints
from everlearn.stream.datasets.sources.nicv2 import FileLists
from everlearn.stream.scenarios.incremental import ALIASES
from everlearn.stream.sprites.class_spaces import RANGES, count_bands

BANDED = ("domain", "nic")


def is_banded(scenario: Any) -> bool:
    """Tell whether a scenario, or the scenario of that name, shows classes band by band."""
    name = scenario if isinstance(scenario, str) else getattr(scenario, "name", "")
    return ALIASES.get(name.lower(), name.lower()) in BANDED


def count_sessions(arrays: Arrays) -> int | None:
    """Count the sessions with training images; None where the data have no sessions."""
    return None if arrays.sessions is None else len(_train_sessions(arrays))


def find_bands(scenario: Any, arrays: Arrays) -> Ints | None:
    """Return the band of every row, as the scenario counts them; None where it has no bands."""
    if isinstance(scenario, FileLists):
        return arrays.experiences
    if scenario.name not in BANDED:
        return None
    if arrays.sessions is not None:
        return np.searchsorted(_train_sessions(arrays), arrays.sessions)
    low, high = RANGES[scenario.factor]
    fraction = (np.asarray(getattr(arrays.factors, scenario.factor)) - low) / (high - low)
    bands = count_bands(scenario)
    return np.clip(fraction * bands, 0, bands - 1).astype(np.int64)


def check_bands(scenario: Any, arrays: Arrays, classes: Ints, name: str) -> None:
    """Raise where the data lack the bands of a scenario, or a class lacks one of them."""
    if scenario.name not in BANDED:
        return
    if arrays.sessions is None and arrays.factors is None:
        raise ValueError(
            f"scenario {scenario.name!r} needs sessions or factors, and {name} has neither; choose "
            "core50, omniglot or dsprites, or another scenario"
        )
    wanted = count_bands(scenario)
    found = count_sessions(arrays)
    if found is not None and wanted != found:
        raise ValueError(
            f"scenario {scenario.name!r} asks for {wanted} sessions, but {name} has {found} with "
            f"training images; ask for {found}"
        )
    _check_pairs(scenario, arrays, classes, name)


def _check_pairs(scenario: Any, arrays: Arrays, classes: Ints, name: str) -> None:
    bands = find_bands(scenario, arrays)
    assert bands is not None
    train = slice(None) if arrays.test is None else ~arrays.test
    seen = np.zeros((int(classes.max()) + 1, count_bands(scenario)), bool)
    seen[arrays.labels[train], bands[train]] = True
    missing = np.argwhere(~seen[classes])
    if len(missing):
        raise ValueError(
            f"scenario {scenario.name!r} shows every class in every session, but this {name} lacks "
            f"{len(missing)} of {seen[classes].size} pairs of class and session, the first class "
            f"{classes[missing[0, 0]]}; give all of the data set, or choose another scenario"
        )


def _train_sessions(arrays: Arrays) -> Ints:
    assert arrays.sessions is not None
    return np.unique(arrays.sessions if arrays.test is None else arrays.sessions[~arrays.test])
