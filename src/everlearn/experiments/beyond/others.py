"""The methods that the main table leaves out, on the same stream: 100 tasks and one seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from everlearn.experiments.beyond import overview
from everlearn.experiments.beyond.diagnosis import diagnosis_table
from everlearn.experiments.framework.groups import accuracy_figures, final_accuracy
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import MIDDLE_BUFFER, PRETRAINED, SEEDS
from everlearn.experiments.framework.trial import EMPTY, PAPER, SMALL, Settings, Trial
from everlearn.experiments.framework.verdicts import format_values, unpublished
from everlearn.methods.registry import METHODS
from everlearn.methods.tuned import TUNED
from everlearn.report.experiment import ExperimentResult
from everlearn.report.tables.protocol import did_not_learn, protocol_table, unlearned_table

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "Other methods"
SOURCE = "ours"
CLAIM = (
    "Methods outside the main table: which of them learn the stream, and how much of it they keep."
)
COST = {SMALL: "4 minutes", PAPER: "10 minutes, several side by side"}

_TASKS = 100
# GEM makes one pass over the images of each past task per step.
_FEWER_TASKS = {"gem": 20}
# Methods without trials of their own take the optimizer's settings that were chosen for a related one.
_RELATED = {
    "cumulative": "joint",
    "nearest-mean": "fine-tuning",
    "ewc": "online-ewc",
    "l2": "lwf",
    "rehearsal-free": "lwf",
    "er-balanced": "er",
    "gem": "agem",
    "der": "der++",
    "negative-replay": "fine-tuning",
    "icarl": "er",
    "pcr": "er",
    "hpcr": "er",
}
_PRETRAINED = ("cwr", "cwr-plus", "cwr-star", "ar1", "ar1-free", "gnr")
_OPTIMIZER = ("learning_rate", "reset_optimizer")
_CHANGES: Mapping[str, Mapping[str, Any]] = {
    "cumulative": {"retrain_every": 50},
    "der": {"alpha": 0.1},
    "gnr": {"generator_epochs": 2},
}
_NOT_COMPARED = "without replay no loss compares the classes of different tasks"
_FROZEN = (
    f"the net is frozen, and {_NOT_COMPARED}; the head's rows of the first task are the longest"
)
_REASONS = {
    "bir": "a fully connected net does not learn from these pixels: compare it on latents",
    "nearest-mean": "its features are those of the first task, of ten shapes",
    "cwr": _FROZEN,
    "cwr-plus": _FROZEN,
    "cwr-star": _FROZEN,
    "ar1": f"{_NOT_COMPARED}: it learns the first tasks, and less of each later one, as AR1* does",
    "gnr": "its generator: the head does not recognise what it replays (it does with ar1-free)",
    "der": (
        "not known: after eight tasks it learns none; DER++, with the same settings and the labels of old "
        "images, learns all"
    ),
    "negative-replay": (
        "new images only lower the outputs of old classes, so on old images those of new classes have to "
        "be lowered ever further: see the loss"
    ),
    "icarl": (
        "its loss learns less than cross-entropy does from the first task on, with ER's learning rate, and "
        "the means are of ever fewer exemplars: five a class in the end"
    ),
    "gdumb": (
        "it fits its buffer (see the loss), but that has five images of each of 1,000 classes"
    ),
}
# L2P needs weights that are not available, L2P-lite is in Figure 5, and codes have no classifier.
_LEFT_OUT_GROUPS = ("prompts", "disentangled codes")
_NOTE = (
    "Methods without trials of their own have the learning rate that was chosen for a related method, and "
    "5,000 images or latents where they store any. CWR, AR1 and generative negative replay start from a "
    "net that was pre-trained on other shapes. GEM learns 20 tasks, because its cost grows with the square "
    "of their number. Cumulative training happens after every 50 tasks, that of GDumb after the last."
)


def _names() -> list[str]:
    in_overview = {trial.method for trial in overview.SETTINGS[PAPER].trials}
    return [
        name
        for name, method in METHODS.items()
        if name not in in_overview and method.group not in _LEFT_OUT_GROUPS
    ]


def _settings(name: str, scale: str) -> dict[str, Any]:
    """Return the settings of a method: chosen for a related one, a buffer, and weights to start from."""
    if scale == SMALL:
        return {}
    chosen = TUNED.get(_RELATED.get(name, ""), {})
    settings = {key: chosen[key] for key in _OPTIMIZER if key in chosen}
    if "a buffer" in METHODS[name].stores:
        settings["buffer_size"] = MIDDLE_BUFFER[PAPER]
    if name in _PRETRAINED:
        settings |= PRETRAINED
    return settings | dict(_CHANGES.get(name, EMPTY))


def _trials(scale: str) -> tuple[Trial, ...]:
    plan = {"one_shot": (), "open_set": False, "final_after": ()}
    return tuple(
        Trial(
            name, name, _settings(name, scale), plan=plan, seeds=SEEDS[:1],
            max_tasks=_FEWER_TASKS.get(name, _TASKS),
        )
        for name in _names()
    )  # fmt: skip


SETTINGS = {scale: Settings(_trials(scale)) for scale in (SMALL, PAPER)}


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw one curve per method that learned, and tabulate all."""
    trials = results.settings(SETTINGS).trials
    groups = results.groups(trials)
    learned = [group for group in groups if not did_not_learn(group)]
    supervision = {name: METHODS[name].supervision for name in METHODS}
    tables = (
        protocol_table(groups, supervision, milestones=(10, 50, 100)),
        unlearned_table(groups, supervision, _REASONS),
        diagnosis_table([group for group in groups if did_not_learn(group)]),
    )
    final = {group.label: final_accuracy(group) for group in learned}
    return ExperimentResult(
        accuracy_figures(learned, "others", "Accuracy on all tasks so far."),
        tables=[table for table in tables if table.rows],
        verdicts=[unpublished("Accuracy at the end", format_values(final))],
        runs=runs_of(groups),
        missing=results.missing(trials),
        note=_NOTE,
    )
