"""Which runs and measurements of experiments have no rows yet."""

from __future__ import annotations

from collections.abc import Iterable

from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.trial import at_scale
from everlearn.experiments.registry import Experiment


def missing_names(
    experiments: Iterable[Experiment], results: ResultsFolder, tasks: int
) -> list[str]:
    """Return the names that `--only` accepts: runs, the longest first, then measurements.

    Args:
        tasks: the number of tasks of the stream of the scale.
    """
    chosen = list(experiments)
    scale = results.scale
    trials = [trial for module in chosen for trial in at_scale(module.SETTINGS, scale).trials]
    runs = {
        trial.folder(seed): trial.limit_tasks(trial.stream.get("tasks", tasks), seed)
        for trial in trials
        for seed in trial.seeds_at(scale)
    }
    missing = set(results.missing(trials))
    longest_first = sorted((name for name in runs if name in missing), key=lambda name: -runs[name])
    measurements = [name for module in chosen for name in getattr(module, "MEASUREMENTS", ())]
    return [*longest_first, *results.unmeasured(*measurements)]
