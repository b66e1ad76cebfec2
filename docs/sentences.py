"""Numbers in the text of README.md and docs/results.md: functions of committed rows, or no results."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from committed import Committed
from result_tables import EDGES
from speed_tables import TIMED_DCL_PLUS

from everlearn.experiments import EXPERIMENTS
from everlearn.experiments.framework.grids import TASKS as TUNING_TASKS
from everlearn.experiments.framework.grids import TUNING_SEEDS
from everlearn.experiments.framework.groups import final_accuracy, format_number
from everlearn.experiments.framework.shared_trials import (
    DCL,
    DCL_PLUS,
    LATENT_REPLAY,
    SEEDS,
    TABLE_BUFFERS,
    TABLE_TASKS,
    replay,
)
from everlearn.experiments.framework.trial import PAPER, Trial
from everlearn.experiments.gnr.generator import all_outcomes, count_agreeing
from everlearn.methods import METHODS
from everlearn.stream.named import STREAMS


class Sentence(NamedTuple):
    """A passage of a page with {} for each result, and the function that returns the results."""

    page: str
    text: str
    values: Callable[[Committed], list[str]]


def _pairs(rows: Committed) -> list[str]:
    """Count the pairs in which negative replay wins exactly where under a quarter is recognised."""
    sides = count_agreeing(all_outcomes(rows.paper))
    return [str(sum(side.agree for side in sides)), str(sum(side.pairs for side in sides))]


def _overhead(rows: Committed) -> list[str]:
    row = rows.only("overhead", {}, "what")["our loop against a bare one",]
    return [f"{value:.2f}" for value in (row["ratio"], min(row["ratios"]), max(row["ratios"]))]


def _grid_steps(rows: Committed) -> list[str]:
    cpu = rows.only("render_cpu", {"size": None}, "what")
    name = "levels of 255 off 16x16 samples a pixel, 1000 images at 64 px"
    return [f"{cpu[what,]['max']:.2f}" for what in (name, f"{name}, no mark")]


def _wall_times(rows: Committed) -> list[str]:
    commands = ("run er --memory 20000 --seed 0", TIMED_DCL_PLUS)
    return [f"{rows.seconds(command):.1f}" for command in commands]


def _table_tasks(rows: Committed) -> list[str]:
    return [str(TABLE_TASKS)]


def _end(rows: Committed, trial: Trial) -> str:
    """Return the accuracy after the tasks of the main table, mean over seeds."""
    (group,) = rows.paper.groups([trial], TABLE_TASKS)
    return format_number(final_accuracy(group))


def _other_ends(rows: Committed) -> list[str]:
    middle, largest = TABLE_BUFFERS[PAPER]
    return [
        *(f"{middle:,}", _end(rows, replay(middle)), str(TABLE_TASKS), _end(rows, LATENT_REPLAY)),
        *(f"{largest:,}", _end(rows, replay(largest))),
    ]


def _methods(_: Committed) -> list[str]:
    return [str(len(METHODS))]


def _experiments(_: Committed) -> list[str]:
    return [str(len(EXPERIMENTS))]


_RESULTS = "docs/results.md"
SENTENCES = (
    Sentence(
        "README.md",
        "experience replay with {} stored images ends with an accuracy of {} after {} tasks, latent "
        "replay on a pre-trained net with {}, and replay with {} images with {}.",
        _other_ends,
    ),
    Sentence(
        "README.md",
        "exemplar of its class, ends with {}; three seeds",
        lambda rows: [_end(rows, DCL)],
    ),
    Sentence(
        "README.md", "our extension of DCL, ends with {}.", lambda rows: [_end(rows, DCL_PLUS)]
    ),
    Sentence(
        "README.md",
        "on tasks of {} classes at {} pixels",
        lambda rows: [str(STREAMS["paper"].classes_per_task), str(STREAMS["paper"].canvas.size)],
    ),
    Sentence("README.md", "# the {} methods and their settings", _methods),
    Sentence("README.md", "# lists {} figures and tables", _experiments),
    Sentence("docs/how-to/reproduce-a-figure.md", "# list {} figures and tables", _experiments),
    Sentence("README.md", "{} methods, each with a page", _methods),
    Sentence("docs/reference/methods.md", "{} methods are built in", _methods),
    Sentence("README.md", "The interval is that of the accuracy after {} tasks", _table_tasks),
    Sentence(_RESULTS, "is that of the accuracy after {} tasks", _table_tasks),
    Sentence(_RESULTS, "is the time of {} tasks in runs that shared", _table_tasks),
    Sentence(
        _RESULTS,
        "settings are chosen on seed {}, and results are those of seeds {} to {}.",
        lambda rows: [str(TUNING_SEEDS[0]), str(SEEDS[0]), str(SEEDS[-1])],
    ),
    Sentence(
        _RESULTS,
        "Eight trials for each method on the validation images of {} tasks",
        lambda rows: [str(TUNING_TASKS[PAPER])],
    ),
    Sentence(
        _RESULTS, "keep the last of {} tasks, whatever", lambda rows: [str(TUNING_TASKS[PAPER])]
    ),
    Sentence(_RESULTS, "DCL+ with seed {} ran alone", lambda rows: [str(SEEDS[0])]),
    Sentence(
        _RESULTS,
        "by dcl-plus among {} classes of new shapes, after {} tasks with soft",
        lambda rows: [f"{EDGES['classes']:,}", str(EDGES["tasks"])],
    ),
    Sentence(_RESULTS, "benchmarks/edges.py`, seed {}, rows in", lambda rows: [str(EDGES["seed"])]),
    Sentence(_RESULTS, "In {} of the {} pairs of runs that differ only in", _pairs),
    Sentence(_RESULTS, "from its run of {} s; dcl-plus takes {} s in all", _wall_times),
    Sentence(
        _RESULTS,
        "Our loop takes {} times the CPU seconds of a bare PyTorch loop that ends in the same weights bit "
        "for bit (fine-tuning on one thread, median of five repetitions, {} to {};",
        _overhead,
    ),
    Sentence(
        _RESULTS,
        "The {} is the step of the 16 × 16 sampling grid itself where black meets white (up to 8 levels); "
        "without the orientation mark it is {},",
        _grid_steps,
    ),
)
# Numbers that are no results: versions, years, names, and the setup of experiments, by page. No part of a
# longer number counts.
NOT_RESULTS = {
    "README.md": (
        "Python 3.11",
        "arXiv 1808.06508",
        "arXiv 2204.05842",
        "arXiv 2312.16731",
        "al. 2018",
        "al. 2022",
        "al. 2023",
        "NVIDIA H200",
        "ResNet-18",
        "AR1",
        "It prints 0.9 or more",  # tests/test_docs.py runs the example
    ),
    _RESULTS: (
        "H200",
        "ResNet-18",
        "AR1",
        "Table 1",
        "Figure 9",
        "decision 3",
        "decision 18",
        "95 % interval",
        "of 64 pixels",
        "at 64 pixels",
        "64 pixels, batches of 256",
        "64 pixels with anti-aliased edges here, 224 or 256 with hard edges in the paper's code",
        "all 500 tasks",
        "the end of the 500",
        "the seeds of development, 0 to 2",
        "16 × 16 sampling grid",
        "(up to 8 levels)",  # half of 255 divided by 16
        "the target is 1.1",
        "`idsprites` 1.0.1",
    ),
}
