"""Sessions where a data set has no official ones: kept back for testing, or dealt out at random."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from everlearn.philox import Purpose, permutation
from everlearn.stream.arrays.bands import is_banded
from everlearn.stream.arrays.files import Arrays
from everlearn.stream.arrays.parts import training_classes

_DEAL_LANE, _HOLD_LANE = 1, 2  # the split itself uses 0


def hold_out(arrays: Arrays, scenario: Any, seed: int, share: float | None) -> Arrays:
    """Keep whole sessions back for testing, where tasks are sessions and no test set is official."""
    if arrays.sessions is None or arrays.test is not None or not share or not is_banded(scenario):
        return arrays
    sessions = np.unique(arrays.sessions)
    count = max(1, round(share * len(sessions)))
    chosen = permutation(seed, Purpose.SPLIT, 0, len(sessions), lane=_HOLD_LANE)[:count]
    return replace(arrays, test=np.isin(arrays.sessions, sessions[chosen]))


def deal_sessions(arrays: Arrays, scenario: Any, seed: int) -> Arrays:
    """Part the training images of each class into sessions at random, where the data know none."""
    if scenario.name != "nic" or arrays.sessions is not None or arrays.factors is not None:
        return arrays
    sessions = np.full(len(arrays), -1)
    train = np.ones(len(arrays), bool) if arrays.test is None else ~arrays.test
    for label in training_classes(arrays).tolist():
        rows = np.flatnonzero(train & (arrays.labels == label))
        if len(rows) < scenario.sessions:
            raise ValueError(
                f"scenario 'nic' deals the training images of each class into {scenario.sessions} "
                f"sessions, but class {label} has {len(rows)}; ask for fewer sessions"
            )
        order = permutation(seed, Purpose.SPLIT, label, len(rows), lane=_DEAL_LANE)
        sessions[rows[order]] = np.arange(len(rows)) % scenario.sessions
    return replace(arrays, sessions=sessions)
