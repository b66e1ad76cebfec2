"""Runs and figures of VASE beside CCI-VAE on a sequence of environments, which figures 2 and 3 share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from everlearn.experiments.framework.pictures import pictures
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.trial import Settings, Trial
from everlearn.experiments.vase.probe_figures import latent_figures, probe_figures
from everlearn.experiments.vase.trials import data_note
from everlearn.report import Group, Table
from everlearn.report.experiment import ExperimentResult
from everlearn.report.verdict import Verdict

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

# Images from which an environment is inferred, the most latents shown, and the steps of each.
TRAVERSAL = {"images": 256, "latents": 10, "steps": 7}
_SUFFIX = "-latents"


def run_and_traverse(runner: Runner, trials: Sequence[Trial], measurement: str) -> None:
    """Run the trials if their data are there, and draw latent traversals of the first."""
    if runner.lacks_data(trials):
        return
    runner.run_trials(trials)
    from everlearn.experiments.vase.traversals import traverse

    runner.measure(
        measurement, TRAVERSAL, lambda: traverse(runner, trials[0], **TRAVERSAL), trials[:1]
    )


def draw_sequence(
    results: ResultsFolder,
    settings: Mapping[str, Settings],
    measurement: str,
    judges: Sequence[Callable[[Sequence[Group]], Verdict]],
    table: Callable[[Sequence[Group]], Table] | None = None,
) -> ExperimentResult:
    """Draw probes, latents by environment, and traversals.

    Args:
        measurement: name of the traversals; the names of figures start with it.
        judges: return verdicts on the runs of all trials.
        table: returns a table of the runs of VASE.
    """
    trials = results.settings(settings).trials
    rows = results.rows(measurement)
    name = measurement.removesuffix(_SUFFIX)
    groups = results.groups(trials)
    vase = [group for group in groups if group.method == "vase"]
    figures = probe_figures(groups, name) if groups else []
    figures += latent_figures(vase[0].runs[0], f"{name}-masks") if vase else []
    missing = [*results.missing(trials), *results.unmeasured(measurement)]
    return ExperimentResult(
        figures,
        tables=[table(vase)] if table and vase else [],
        pictures=pictures(rows),
        verdicts=[judge(groups) for judge in judges],
        runs=runs_of(groups),
        missing=missing,
        note=data_note(missing, results.scale),
        measurements=results.origins(measurement),
    )
