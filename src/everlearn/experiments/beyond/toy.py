"""The toy stream: every method that learns from points, with the settings that pages of methods compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import SEEDS
from everlearn.experiments.framework.trial import EMPTY, PAPER, SMALL, TOY, Settings, Trial
from everlearn.experiments.framework.verdicts import unpublished
from everlearn.methods.registry import METHODS
from everlearn.metrics import LEARNED
from everlearn.report import Group, summary_table
from everlearn.report.experiment import ExperimentResult
from everlearn.report.tables.protocol import did_not_learn

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "The toy stream"
SOURCE = "ours"
CLAIM = "On five tasks of points, every method learns each task when it comes."
COST = {SMALL: "1 minute", PAPER: "10 minutes on two CPU cores"}

# What the pages of methods compare with the defaults.
_VARIANTS: dict[str, tuple[Mapping[str, Any], ...]] = {
    "nearest-mean": ({"trained_tasks": 0}, {"trained_tasks": 2}),
    "lwf": ({"distillation_weight": 1.0}, {"distillation_weight": 5.0}),
    # With a strength of 20 the loss of seed 10 diverges.
    "si": ({"strength": 1.0}, {"strength": 5.0}, {"avalanche_compat": True}),
    # With a strength of 1e4 the loss of two seeds diverges.
    "ewc": ({"strength": 1e2},),
    "online-ewc": ({"strength": 1e2},),
    "l2": ({"strength": 0.01}, {"strength": 1.0}),
    "rehearsal-free": (
        {"l2": 0.0},
        {"prediction_distillation": 1.0},
        {"prediction_distillation": 0.0},
        {"feature_distillation": 1.0},
        {"l2": 0.0, "ewc": 100.0},
    ),
    "er": (
        {"buffer_size": 50},
        {"separate_means": True},
        {"buffer_size": 50, "separate_means": True},
    ),
    "er-balanced": ({"buffer_size": 50},),
    "gem": ({"images_per_task": 10}, {"margin": 0.0}),
    "der": ({"store_at_task_end": True}, {"alpha": 0.1}),
    "der++": (
        {"store_at_task_end": True},
        {"alpha": 0.1},
        {"alpha": 0.1, "store_at_task_end": True},
        {"buffer_size": 50},
    ),
    "negative-replay": ({"buffer_size": 50},),
    "gdumb": ({"buffer_size": 50},),
    "icarl": ({"buffer_size": 50}, {"buffer_size": 10}),
    "pcr": ({"buffer_size": 50}, {"cosine_loss_scale": True}, {"alpha": 0.1}, {"beta": 0.5}),
    "hpcr": ({"buffer_size": 50},),
    "gnr": ({"mean_shift": "global"},),
    "bir": ({"gated_fraction": 0.0}, {"sum_reconstruction": True}, {"hidden_units": 2000}),
    "contrastive": (
        {"patience": 0},
        {"epochs": 5},
        {"negative_exemplars": 16},
        {"epochs": 5, "negative_exemplars": 16},
    ),
}
_PLAN = {"within_task": False}
_NOTE = (
    "Five tasks of four classes, points around class means, in 32 dimensions. A page of a method names the "
    "rows that it cites."
)


def _options(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield settings as they are typed on the command line."""
    for name, value in settings.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            yield f"--{option}" if value else f"--no-{option}"
        else:
            text = f"{value:g}" if isinstance(value, float) else str(value)
            yield f"--{option} {text}"


def _trial(method: str, settings: Mapping[str, Any] = EMPTY) -> Trial:
    label = " ".join((method, *_options(settings)))
    name = "-".join(word.lstrip("-") for word in ("toy", *label.split()))
    return Trial(name, method, settings, plan=_PLAN, seeds=SEEDS, label=label, base=TOY)


def _trials(variants: Mapping[str, tuple[Mapping[str, Any], ...]]) -> tuple[Trial, ...]:
    """Return a trial of each method with its defaults, and of its variants."""
    return tuple(
        _trial(name, settings)
        for name, method in METHODS.items()
        if not method.needs_images
        for settings in (EMPTY, *variants.get(name, ()))
    )


SETTINGS = {SMALL: Settings(_trials({})), PAPER: Settings(_trials(_VARIANTS))}


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Tabulate all trials, and name the methods that do not learn their tasks with their defaults."""
    trials = results.settings(SETTINGS).trials
    groups = results.groups(trials)
    table = summary_table(groups)._replace(title="All trials") if groups else None
    return ExperimentResult(
        tables=[table] if table else [],
        verdicts=[unpublished("Methods that learn each task", _describe_learned(groups))],
        runs=runs_of(groups),
        missing=results.missing(trials),
        note=_NOTE,
    )


def _describe_learned(groups: list[Group]) -> str:
    """Count the methods with a learning accuracy of at least LEARNED, and name the others."""
    defaults = [group for group in groups if group.label == group.method]
    others = [group.label for group in defaults if did_not_learn(group)]
    if not defaults:
        return ""
    learned = f"{len(defaults) - len(others)} of {len(defaults)} with {LEARNED} or more"
    return f"{learned}; not {', '.join(others)}" if others else learned
