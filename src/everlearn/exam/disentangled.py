"""How the factors of images lie in the numbers of their codes, environment by environment."""

from __future__ import annotations

import numpy as np

from everlearn.exam.environments import Environment, Sample, encode
from everlearn.exam.one_shot import Row
from everlearn.factors import NAMES
from everlearn.learner import Encodes
from everlearn.metrics.disentanglement import measure
from everlearn.philox import Floats

_FEW = 20


def measure_factors(learner: Encodes, one: Environment) -> Row:
    """Measure the codes of test images by each metric; nothing where too little is known to vary."""
    varying = varying_factors(one.look)
    if len(varying) < 2 or not varying.keys() - {"shape"}:
        return {}
    codes = encode(learner, one.look)[0].double().cpu().numpy()
    kinds = {name: kind_of(name, column) for name, column in varying.items()}
    numbers = measure(codes, varying, kinds, seed=one.task.seed)
    return {"tested": one.task.index, "factors": [*varying], **numbers}


def varying_factors(images: Sample) -> dict[str, Floats]:
    """The columns of what varies among images, by name; their class is the factor "shape"."""
    columns = dict(zip(NAMES, images.factors or (), strict=images.factors is not None))
    known = {**columns, "shape": images.labels}
    return {name: np.asarray(column, float) for name, column in known.items() if np.ptp(column)}


def kind_of(name: str, column: Floats) -> str:
    """Whether a factor is discrete, continuous or an angle; one of few values is discrete."""
    if name in ("shape", "color") or len(np.unique(column)) <= _FEW:
        return "discrete"
    return "circular" if name == "orientation" else "continuous"
