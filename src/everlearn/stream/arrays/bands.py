"""Bands of a data set: recording sessions, ranges of a factor, or the tasks of official lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from everlearn.stream.arrays.files import Arrays, Ints
from everlearn.stream.arrays.sources.nicv2 import FileLists
from everlearn.stream.pools import RANGES, count_bands
from everlearn.stream.scenarios import ALIASES

BANDED = ("domain", "nic")


def is_banded(scenario: Any) -> bool:
    """Whether a scenario, or the one of a name, shows classes band by band."""
    name = scenario if isinstance(scenario, str) else getattr(scenario, "name", "")
    return ALIASES.get(name.lower(), name.lower()) in BANDED


def count_sessions(arrays: Arrays) -> int | None:
    """How many sessions have training images; None where the data know no sessions."""
    return None if arrays.sessions is None else len(_train_sessions(arrays))


def find_bands(scenario: Any, arrays: Arrays) -> Ints | None:
    """The band of every training row, as the scenario counts them; None where it has no bands."""
    if isinstance(scenario, FileLists):
        return arrays.experiences
    if scenario.name not in BANDED:
        return None
    if arrays.sessions is not None:
        return np.searchsorted(_train_sessions(arrays), arrays.sessions)
    low, high = RANGES[scenario.factor]
    share = (np.asarray(getattr(arrays.factors, scenario.factor)) - low) / (high - low)
    bands = count_bands(scenario)
    return np.clip(share * bands, 0, bands - 1).astype(np.int64)


def check_bands(scenario: Any, arrays: Arrays, classes: Ints, name: str) -> None:
    """Raise where the data do not have the bands of a scenario, or a class lacks one of them."""
    if scenario.name not in BANDED:
        return
    if arrays.sessions is None and arrays.factors is None:
        raise ValueError(
            f"scenario {scenario.name!r} needs sessions or factors, and {name} has neither; choose "
            "core50, omniglot or dsprites, or another scenario"
        )
    wanted, found = count_bands(scenario), count_sessions(arrays)
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
    lost = np.argwhere(~seen[classes])
    if len(lost):
        raise ValueError(
            f"scenario {scenario.name!r} shows every class in every session, but this {name} lacks "
            f"{len(lost)} of {seen[classes].size} pairs of class and session, the first class "
            f"{classes[lost[0, 0]]}; give all of the data set, or choose another scenario"
        )


def _train_sessions(arrays: Arrays) -> Ints:
    assert arrays.sessions is not None
    return np.unique(arrays.sessions if arrays.test is None else arrays.sessions[~arrays.test])
