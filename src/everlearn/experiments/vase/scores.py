"""Scores of runs on visual environments: probes of codes, inferred environments, active latents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from everlearn.experiments.framework.groups import format_mean_std
from everlearn.metrics import NotMeasuredError
from everlearn.metrics.codes import (
    CodeProbes,
    accuracy_change,
    code_probes,
    ends,
    lowest_accuracy_change,
    max_accuracy,
    min_position_error,
    position_error_change,
)
from everlearn.metrics.environments import InferredEnvironments, inferred_environments
from everlearn.metrics.latents import active_latents
from everlearn.report import Group, LoadedRun

_PERCENT = 1e2
_POSITION_UNIT = 1e4  # squared errors of position are shown in 1e-4


class Score(NamedTuple):
    """The scores of one run; NaN where they were not measured.

    Attributes:
        best_accuracy: highest accuracy of the probes, mean over environments, in percent.
        accuracy_change: from the end of an environment's stage to the end of all, percent points.
        lowest_change: the same, to the lowest accuracy after that stage.
        position_error: least squared error of position, in 1e-4.
        position_error_change: from the end of an environment's stage to the end of all, in 1e-4.
        stage_error: reconstruction error of the first environment at the end of its stage, in nats.
        final_error: the same at the end of all.
    """

    best_accuracy: float
    accuracy_change: float
    lowest_change: float
    position_error: float
    position_error_change: float
    stage_error: float
    final_error: float


def score(run: LoadedRun) -> Score:
    """Compute the scores of a run."""
    probes = code_probes(run.rows)
    errors = ends(probes, lambda environment: environment.error)
    return Score(
        _PERCENT * _or_nan(max_accuracy, probes),
        _PERCENT * _or_nan(accuracy_change, probes),
        _PERCENT * _or_nan(lowest_accuracy_change, probes),
        _POSITION_UNIT * _or_nan(min_position_error, probes),
        _POSITION_UNIT * _or_nan(position_error_change, probes),
        float(errors.stage[0]) if len(errors.stage) else np.nan,
        float(errors.final[0]) if len(errors.final) else np.nan,
    )


def _or_nan(
    metric: Callable[[dict[int, CodeProbes]], float], probes: dict[int, CodeProbes]
) -> float:
    try:
        return metric(probes)
    except NotMeasuredError:
        return np.nan


def scores_by_seed(group: Group, name: str) -> dict[int, float]:
    """Return one score of every seed that measured it."""
    values = {run.seed: getattr(score(run), name) for run in group.runs}
    return {seed: value for seed, value in values.items() if np.isfinite(value)}


def score_cell(group: Group, name: str, digits: int = 1) -> str:
    """Format one score for a table: mean and standard deviation over seeds."""
    return format_mean_std(list(scores_by_seed(group, name).values()), digits)


def environments_found(run: LoadedRun) -> InferredEnvironments | None:
    """Return the environments that a run inferred; None where its method infers none."""
    if not run.method_settings.get("environments", True):
        return None
    try:
        return inferred_environments(run.costs)
    except NotMeasuredError:
        return None


def latents_used(run: LoadedRun) -> int | None:
    """Return how many latents are used at the end, in any environment."""
    try:
        return active_latents(run.rows).used
    except NotMeasuredError:
        return None


def environment_names(run: LoadedRun) -> list[str]:
    """Return the names of the environments of a run, in order."""
    return list(run.stream.get("sequence", ()))


def environment_name(run: LoadedRun, index: int) -> str:
    """Return the name of an environment, or its number."""
    names = environment_names(run)
    return names[index] if index < len(names) else f"environment {index + 1}"


def count_exact(groups: Sequence[Group]) -> tuple[int, int]:
    """Return in how many runs the environments were inferred exactly, and of how many runs."""
    runs = [run for group in groups for run in group.runs]
    found = [inferred for run in runs if (inferred := environments_found(run)) is not None]
    return sum(inferred.exact for inferred in found), len(found)
