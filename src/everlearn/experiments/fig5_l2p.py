"""Learning to prompt: a frozen transformer with prompts, here a small one of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.learners import DCL_PLUS, FINE_TUNING, L2P
from everlearn.experiments.read import accuracy_at, curves, last_accuracy, mean
from everlearn.experiments.trial import PAPER, SMALL, Settings
from everlearn.experiments.verdicts import listed
from everlearn.report.chapter import Chapter
from everlearn.report.verdict import Verdict

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "Learning to prompt", "Figure 5"
CLAIM = "L2P is right on fewer than 60 % of the first task after 20 epochs, then falls fast."
_TRIALS = (DCL_PLUS, L2P, FINE_TUNING)
SETTINGS = {
    SMALL: Settings(_TRIALS, {"steps": 21, "batch_size": 16, "tests": 200, "early": 2}),
    PAPER: Settings(_TRIALS, {"steps": 9000, "batch_size": 256, "tests": 2000, "early": 10}),
}
COST = {
    SMALL: "1 minute, with MNIST and Fashion-MNIST",
    PAPER: "8 minutes, with MNIST and Fashion-MNIST",
}
WEIGHTS = "vit-lite.npz"


def run(lab: Lab) -> None:
    """Pre-train the net where its data are, and let all learn."""
    settings = lab.settings(SETTINGS)
    lab.learn(trial for trial in settings.trials if trial is not L2P)
    if not lab.wants(L2P.folder(0)) or lab.has(L2P.folder(0)):
        return
    weights = _pretrain(lab, *(settings.numbers[name] for name in ("steps", "batch_size", "tests")))
    if weights:
        lab.learn([L2P._replace(settings={"weights": weights})])


def figure(found: Found) -> Chapter:
    """Curves."""
    settings = found.settings(SETTINGS)
    groups = found.groups(settings.trials)
    ours = [group for group in groups if group.method == "l2p-lite"]
    words = {
        f"{name} {group.label}": value
        for group in ours
        for name, value in (
            (
                f"after {settings.numbers['early']} tasks",
                accuracy_at(group, settings.numbers["early"]),
            ),
            ("at the end", last_accuracy(group)),
            ("of a task when it comes", mean(group, "learning_accuracy")),
        )
    }
    verdict = Verdict(
        "Below 0.60 on the first task, then a fast fall", "below 0.60 after one task",
        listed(words) or "not measured",
        "not comparable",
        "ours rests on a small transformer pre-trained on digits and clothes: weights of ViT-B/16 cannot "
        "be had without a network. `everlearn run l2p --weights FILE` takes them from you",
    )  # fmt: skip
    missing = found.missing(settings.trials)
    note = "L2P-lite needs MNIST and Fashion-MNIST: give --data." if missing else ""
    figures = curves(groups, "fig5", "Accuracy on all tasks so far.")
    return Chapter(figures, [], [], [verdict], runs_of(groups), missing, note)


def _pretrain(lab: Lab, steps: int, batch_size: int, tests: int) -> str:
    """The file of weights, made where it is not there; nothing where there are no data."""
    from everlearn.pretraining import Pretraining, Settings

    path = lab.folder / WEIGHTS
    if path.exists():
        return str(path)
    try:
        settings = Settings(
            steps, batch_size=batch_size, warm_up=min(200, steps - 1), test_images=tests
        )
        work = Pretraining(settings, lab.data, lab.device)
    except FileNotFoundError:
        if lab.data or lab.only:
            raise
        return ""
    for _ in work.learn():
        pass
    return str(work.save(path, work.test()))
