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
COST = {SMALL: "4 minutes", PAPER: "15 minutes, nine at a time (an estimate)"}

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
_ONE_TASK = (
    "its loss compares classes of one task only; the head's rows of the first task are the longest, and "
    "that task alone keeps its accuracy"
)
_REASONS = {
    "bir": "maybe its fully connected net, which is given pixels: compare it on latents",
    "nearest-mean": "its features are those of the first task, of ten shapes",
    "cwr": _ONE_TASK,
    "cwr-plus": _ONE_TASK,
    "cwr-star": _ONE_TASK,
    "ar1": overview.LEARNS_LESS,
    "gnr": (
        "not known: the head recognises hardly any of what is replayed, and its rows of the first task are "
        "the longest"
    ),
    "der": (
        "not known: it learns eight tasks, and about a tenth of each from the eleventh on; DER++, with the "
        "same settings and the labels of old images, learns all"
    ),
    "negative-replay": (
        "maybe its loss: new images only lower the outputs of old classes, so old images have to lower "
        "those of new classes ever further"
    ),
    "icarl": (
        "not known: it learns the first tasks, and less of later ones, with ever fewer exemplars of ever "
        "more classes; no other learning rate was tried"
    ),
    "gdumb": (
        "not known: it has five images of each of 1,000 classes and trains on nothing else; its paper's "
        "smaller batches and more epochs were not tried"
    ),
}
# L2P needs weights that are not available, L2P-lite is in Figure 5, and codes have no classifier.
_LEFT_OUT_GROUPS = ("prompts", "disentangled codes")
_NOTE = (
    "No setting was chosen for these methods on this stream, except for AR1, on seed 0: they have the "
    "learning rate that was chosen for a related method or that of their preset, and 5,000 images or "
    "latents where they store any. CWR, AR1 and generative negative replay start from a net that was "
    "pre-trained on other shapes. GEM learns 20 tasks, because its cost grows with the square of "
    "their number. Cumulative training happens after every 50 tasks, that of GDumb after the last."
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
            max_tasks=_FEWER_TASKS.get(name, _TASKS), label=_label(name),
        )
        for name in _names()
    )  # fmt: skip


def _label(name: str) -> str:
    return f"{name}, {_FEWER_TASKS[name]} tasks" if name in _FEWER_TASKS else name


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
