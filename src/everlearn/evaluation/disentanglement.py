"""Disentanglement of the codes of test images, environment by environment."""

from __future__ import annotations

from typing import cast

import numpy as np

from everlearn.core.random import Floats
from everlearn.evaluation.environments import Environment, Sample, encode
from everlearn.factors import FACTOR_NAMES
from everlearn.learner import Encodes
from everlearn.metrics.disentanglement import measure
from everlearn.rows import DisentanglementRow

_MAX_DISCRETE = 20


def measure_disentanglement(
    learner: Encodes, environment: Environment, step: int = 0, learned: int = -1
) -> DisentanglementRow | None:
    """Measure the codes of test images by each metric; None if fewer than two factors vary."""
    varying = varying_factors(environment.described)
    if len(varying) < 2 or not varying.keys() - {"shape"}:
        return None
    codes = encode(learner, environment.described)[0].double().cpu().numpy()
    types = {name: type_of(name, values) for name, values in varying.items()}
    row = {
        "kind": "disentanglement",
        "step": step,
        "learned": learned,
        "tested": environment.task.index,
        "factors": [*varying],
        **measure(codes, varying, types, seed=environment.task.seed),
    }
    return cast("DisentanglementRow", row)


def varying_factors(sample: Sample) -> dict[str, Floats]:
    """Return the values of each factor that varies, by name; the class is the factor "shape"."""
    columns = dict(zip(FACTOR_NAMES, sample.factors or (), strict=sample.factors is not None))
    known = {**columns, "shape": sample.labels}
    return {name: np.asarray(values, float) for name, values in known.items() if np.ptp(values)}


def type_of(name: str, values: Floats) -> str:
    """Return whether a factor is discrete, continuous or circular; one of few values is discrete."""
    if name in ("shape", "color") or len(np.unique(values)) <= _MAX_DISCRETE:
        return "discrete"
    return "circular" if name == "orientation" else "continuous"
