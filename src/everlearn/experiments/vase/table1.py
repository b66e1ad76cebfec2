"""Table 1: ablations of VASE without environments, dreams or masks, disentangled and entangled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from everlearn.experiments.framework.groups import format_number
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.rule import Values
from everlearn.experiments.framework.trial import ONE_SEED, PAPER, SMALL, Settings
from everlearn.experiments.vase.scores import (
    environments_found,
    latents_used,
    score_cell,
    scores_by_seed,
)
from everlearn.experiments.vase.trials import (
    ABLATIONS,
    CCI_VAE,
    FIVE_SEEDS,
    SEEDS,
    SEQUENCE_A,
    VASE,
    ablation_label,
    data_note,
)
from everlearn.experiments.vase.verdicts import (
    judge_ablations,
    judge_environments,
    judge_errors,
    judge_latents,
    report_lowest,
)
from everlearn.report import Group, Table
from everlearn.report.charts import Bar, draw_bars
from everlearn.report.experiment import ExperimentResult, Figure
from everlearn.report.tables.numbers import MISSING

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "VASE and its ablations"
SOURCE = "Achille et al. 2018, Table 1"
CLAIM = (
    "Environments, dreams and masks together forget least; masks alone do harm, and a growing capacity "
    "helps."
)
COST = {SMALL: "1 minute", PAPER: "40 minutes, with MNIST and Fashion-MNIST"}
# Best accuracy and its change, percent; least squared error of position and its change, in 1e-4.
_DISENTANGLED = {
    "none": (88.6, -15.2, 3.5, 24.8), "S": (88.9, -13.9, 3.4, 22.5), "D": (88.6, -14.4, 3.3, 21.4),
    "A": (86.7, -24.5, 3.3, 67.6), "SA": (87.1, -28.1, 3.3, 78.9), "DA": (86.3, -25.2, 3.3, 72.2),
    "SD": (88.3, -12.9, 3.4, 20.0), "SDA": (88.6, -5.4, 3.2, 3.0),
}  # fmt: skip
_ENTANGLED = {
    "none": (91.8, -12.1, 4.2, 10.5), "S": (91.7, -12.2, 4.5, 10.9), "D": (91.8, -12.4, 4.3, 11.7),
    "A": (88.6, -19.7, 4.5, 47.1), "SA": (89.9, -18.3, 4.8, 41.8), "DA": (88.8, -19.4, 4.6, 40.2),
    "SD": (91.4, -11.7, 4.3, 11.6), "SD-[41]": (91.9, -11.6, 4.7, 10.2), "SDA": (91.5, -6.5, 4.2, 3.9),
}  # fmt: skip
PUBLISHED = {
    **{ablation_label(name): numbers for name, numbers in _DISENTANGLED.items()},
    **{ablation_label(name, True): numbers for name, numbers in _ENTANGLED.items()},
}
_PUBLISHED_SCORES = ("best_accuracy", "accuracy_change", "position_error", "position_error_change")
_COLUMNS = {
    "best_accuracy": "best accuracy, %",
    "accuracy_change": "its change",
    "lowest_change": "at its lowest",
    "position_error": "position, 1e-4",
    "position_error_change": "its change",
}
_THREE_SEEDS = (CCI_VAE, "SD", VASE)
_NOTE = (
    "Probes are retrained each time. Change: from the end of the stage in which an environment was learned "
    "to the end of all, or to the lowest value on the way; mean over all environments but the last. "
    "Position: mean squared error, from 0 to 1 across the canvas. VASE has S (environments), D (dreams) "
    "and A (masks), CCI-VAE none of them; [41] constrains only the codes of dreams. Mean and standard "
    "deviation over seeds, where there are several."
)
_ENVIRONMENTS_NOTE = (
    "Error: nats per image of the first environment, at the end of its stage and at the end of all. Exact: "
    "seeds in which one environment was opened in each stage and none elsewhere."
)


def _seeds(name: str, entangled: bool) -> tuple[int, ...]:
    if name == VASE and not entangled:
        return FIVE_SEEDS
    return SEEDS if name in _THREE_SEEDS else ONE_SEED


SETTINGS = {
    SMALL: Settings(tuple(SEQUENCE_A[SMALL].ablation(name) for name in (CCI_VAE, VASE))),
    PAPER: Settings(
        tuple(
            SEQUENCE_A[PAPER].ablation(name, entangled, _seeds(name, entangled))
            for entangled in (False, True)
            for name in ABLATIONS
        )
    ),
}


def run(runner: Runner) -> None:
    """Run all trials if their data are there."""
    trials = runner.settings(SETTINGS).trials
    if not runner.lacks_data(trials):
        runner.run_trials(trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Tabulate our scores beside the published ones, and the inferred environments."""
    trials = results.settings(SETTINGS).trials
    groups = results.groups(trials)
    missing = results.missing(trials)
    changes = _scores_by_label(groups, "accuracy_change")
    return ExperimentResult(
        _bars(groups),
        tables=[_score_table(groups), _environment_table(groups)] if groups else [],
        verdicts=[
            *judge_ablations(changes, _scores_by_label(groups, "best_accuracy")),
            judge_environments(groups),
            judge_errors(groups),
            judge_latents(groups),
            report_lowest(_scores_by_label(groups, "lowest_change")),
        ],
        runs=runs_of(groups),
        missing=missing,
        note=data_note(missing, results.scale),
    )


def _scores_by_label(groups: Sequence[Group], name: str) -> dict[str, Values]:
    return {group.label: values for group in groups if (values := scores_by_seed(group, name))}


def _bars(groups: Sequence[Group]) -> list[Figure]:
    """Draw the change of accuracy, one bar per ablation."""
    bars = []
    for group in groups:
        changes = list(scores_by_seed(group, "accuracy_change").values())
        if changes:
            mean = sum(changes) / len(changes)
            style = "beta-vae" if "entangled" in group.label else "vase"
            bars.append(Bar(group.label, style, mean, min(changes), max(changes)))
    if not bars:
        return []
    x = "change of accuracy, percent points"
    caption = (
        "Change of probe accuracy on an environment after its stage; lines: lowest to highest seed."
    )
    return [Figure(draw_bars(bars, "vase-table1", x, f"{x}, by ablation"), caption)]


def _score_table(groups: Sequence[Group]) -> Table:
    rows = [[group.label, str(len(group.runs)), *_score_cells(group)] for group in groups]
    head = ["ablation", "seeds"]
    for name, title in _COLUMNS.items():
        head += [title, "paper"] if name in _PUBLISHED_SCORES else [title]
    return Table("Probes of codes", head, rows, _NOTE)


def _score_cells(group: Group) -> list[str]:
    """Return each of our scores, followed by the published one where there is one."""
    published = dict.fromkeys(_PUBLISHED_SCORES, MISSING)
    if group.label in PUBLISHED:
        pairs = zip(_PUBLISHED_SCORES, PUBLISHED[group.label], strict=True)
        published = {name: format_number(value, 1) for name, value in pairs}
    cells = []
    for name in _COLUMNS:
        cells.append(score_cell(group, name))
        if name in published:
            cells.append(published[name])
    return cells


def _environment_table(groups: Sequence[Group]) -> Table:
    rows = [
        [
            group.label,
            *_environment_cells(group),
            score_cell(group, "stage_error"),
            score_cell(group, "final_error"),
            _latents_cell(group),
        ]
        for group in groups
    ]
    head = ["ablation", "environments", "exact", "error after its stage", "at the end", "latents"]
    return Table("Environments, errors and latents", head, rows, _ENVIRONMENTS_NOTE)


def _environment_cells(group: Group) -> list[str]:
    found = [inferred for run in group.runs if (inferred := environments_found(run)) is not None]
    if not found:
        return [MISSING, MISSING]
    opened = ", ".join(str(inferred.opened) for inferred in found)
    return [opened, f"{sum(inferred.exact for inferred in found)} of {len(found)}"]


def _latents_cell(group: Group) -> str:
    counts = [count for run in group.runs if (count := latents_used(run)) is not None]
    return format_number(sum(counts) / len(counts), 1) if counts else MISSING
