"""Sessions of a data set: hold some out for testing, or assign images to sessions at random."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from everlearn.core.random import Purpose, permutation
from everlearn.stream.datasets.bands import is_banded
from everlearn.stream.datasets.files import Arrays
from everlearn.stream.datasets.splits import training_classes

# Substreams of Purpose.SPLIT; the split itself uses 0.
_ASSIGN_SUBSTREAM = 1
_HOLD_OUT_SUBSTREAM = 2


def hold_out_sessions(arrays: Arrays, scenario: Any, seed: int, share: float | None) -> Arrays:
    """Hold out complete sessions for testing, where tasks are sessions and no test set is official."""
    if arrays.sessions is None or arrays.test is not None or not share or not is_banded(scenario):
        return arrays
    sessions = np.unique(arrays.sessions)
    count = max(1, round(share * len(sessions)))
    chosen = permutation(seed, Purpose.SPLIT, 0, len(sessions), substream=_HOLD_OUT_SUBSTREAM)[
        :count
    ]
    return replace(arrays, test=np.isin(arrays.sessions, sessions[chosen]))


def assign_sessions(arrays: Arrays, scenario: Any, seed: int) -> Arrays:
    """Assign the training images of each class to sessions at random, where the data have none."""
    if scenario.name != "nic" or arrays.sessions is not None or arrays.factors is not None:
        return arrays
    sessions = np.full(len(arrays), -1)
    train = np.ones(len(arrays), bool) if arrays.test is None else ~arrays.test
    for label in training_classes(arrays).tolist():
        rows = np.flatnonzero(train & (arrays.labels == label))
        if len(rows) < scenario.sessions:
            raise ValueError(
                f"scenario 'nic' divides the training images of each class into {scenario.sessions} "
                f"sessions, but class {label} has {len(rows)}; ask for fewer sessions"
            )
        order = permutation(seed, Purpose.SPLIT, label, len(rows), substream=_ASSIGN_SUBSTREAM)
        sessions[rows[order]] = np.arange(len(rows)) % scenario.sessions
    return replace(arrays, sessions=sessions)
