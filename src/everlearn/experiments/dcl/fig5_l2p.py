"""Figure 5: learning to prompt (L2P), on a small frozen transformer that we pre-train."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.framework.groups import (
    accuracy_after,
    accuracy_figures,
    final_accuracy,
    name_early_seeds,
)
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import DCL_PLUS, FINE_TUNING, L2P
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings
from everlearn.experiments.framework.verdicts import format_values
from everlearn.report import Group
from everlearn.report.experiment import ExperimentResult
from everlearn.report.verdict import Verdict

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "Learning to prompt"
SOURCE = "Figure 5"
CLAIM = "L2P classifies fewer than 60 % of the first task correctly after 20 epochs, then declines fast."
_TRIALS = (DCL_PLUS, L2P, FINE_TUNING)
SETTINGS = {
    SMALL: Settings(_TRIALS, {"steps": 21, "batch_size": 16, "tests": 200, "early": 2}),
    PAPER: Settings(
        _TRIALS,
        {"steps": 9000, "batch_size": 256, "tests": 2000, "early": 10},
    ),
}
COST = {
    SMALL: "1 minute, with MNIST and Fashion-MNIST",
    PAPER: "25 minutes, with MNIST and Fashion-MNIST",
}
WEIGHTS = "vit-lite.npz"


def run(runner: Runner) -> None:
    """Pre-train the transformer if its data are there, and run all trials."""
    settings = runner.settings(SETTINGS)
    runner.run_trials(trial for trial in settings.trials if trial.method != L2P.method)
    (l2p,) = (trial for trial in settings.trials if trial.method == L2P.method)
    folders = [l2p.folder(seed) for seed in l2p.seeds_at(runner.scale)]
    if not any(runner.is_selected(name) and not runner.is_finished(name) for name in folders):
        return
    names = ("steps", "batch_size", "tests")
    weights = _pretrain(runner, *(settings.options[name] for name in names))
    if weights:
        runner.run_trials([l2p._replace(settings={"weights": weights})])


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw accuracy of L2P-lite beside DCL and fine-tuning."""
    settings = results.settings(SETTINGS)
    groups = results.groups(settings.trials)
    accuracies: dict[str, float | None] = {}
    for group in groups:
        if group.method == "l2p-lite":
            accuracies |= _accuracies(group, settings.options["early"])
    ours = format_values(accuracies)
    verdict = Verdict(
        "Below 0.60 on the first task, then a fast decline",
        "below 0.60 after one task",
        ours or "not measured",
        "not comparable",
        "ours uses a small transformer pre-trained on digits and clothes: weights of ViT-B/16 cannot be "
        "downloaded here. `everlearn run l2p --weights FILE` uses yours",
        measured=bool(ours),
    )
    missing = results.missing(settings.trials)
    return ExperimentResult(
        accuracy_figures(groups, "fig5", "Accuracy on all tasks so far."),
        verdicts=[verdict],
        runs=runs_of(groups),
        missing=missing,
        note="L2P-lite needs MNIST and Fashion-MNIST: give --data." if missing else "",
    )


def _accuracies(group: Group, early: int) -> dict[str, float | None]:
    label = name_early_seeds(group)
    return {
        f"after {early} tasks {label}": accuracy_after(group, early),
        f"at the end {label}": final_accuracy(group),
        f"on each task just learned {label}": group.mean("learning_accuracy"),
    }


def _pretrain(runner: Runner, steps: int, batch_size: int, tests: int) -> str:
    """Return the file of the weights; pre-train if it does not exist. Without data, return ""."""
    from everlearn.training.pretraining import Pretraining, Settings

    path = runner.folder / WEIGHTS
    if path.exists():
        return str(path)
    try:
        settings = Settings(
            steps, batch_size=batch_size, warm_up=min(200, steps - 1), test_images=tests
        )
        pretraining = Pretraining(settings, runner.data, runner.device)
    except FileNotFoundError:
        if runner.data or runner.only:
            raise
        return ""
    for _ in pretraining.learn():
        pass
    return str(pretraining.save(path, pretraining.test()))
