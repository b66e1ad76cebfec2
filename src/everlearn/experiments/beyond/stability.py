"""The stability gap: accuracy on old tasks at every step, not only after each task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from everlearn.experiments.framework.groups import bar_figures, summary_cell
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.rule import Lead, lead_above
from everlearn.experiments.framework.shared_trials import (
    AGEM,
    DCL,
    DCL_PLUS,
    EWC,
    FINE_TUNING,
    LWF,
    MIDDLE_BUFFER,
    SI,
    replay,
)
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.framework.verdicts import judge_statement, unpublished
from everlearn.methods.tuned import TUNED_KEPT
from everlearn.metrics.transfer import LEARNED, learned_its_tasks
from everlearn.report import Group, Table
from everlearn.report.charts.curves import draw_probes
from everlearn.report.experiment import ExperimentResult, Figure
from everlearn.report.tables.numbers import count, decimal
from everlearn.report.verdict import Verdict
from everlearn.rows import ProbeRow, of_kind

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "The stability gap"
SOURCE = "De Lange et al. 2023"
CLAIM = (
    "Replay, gradient constraints, distillation and regularisation all lose accuracy on old tasks for a "
    "while when a new task begins."
)
_PLAN = {"every": 1, "one_shot": (), "open_set": False, "final_after": ()}
_TEMPORARY = 0.3  # a loss is temporary if more than this fraction of it is regained
_AVERAGING = 0.8  # weight averaging of DCL+, for ER
_SAME = "the same task again"
_SAME_TASK = {"name": "domain", "bands": 1}  # every task has the classes and images of the first
_REPLAY = ("er", "der++")
_OTHERS = (AGEM.method, LWF.method, EWC.method, SI.method)
_DRAWN = ("dcl-plus", "dcl", "er", "fine-tuning")  # more lines would hide each other
_COLUMNS = {
    "learning_accuracy": "learning accuracy",
    "stability_gap": "stability gap",
    "gap_first_step": "in the first step",
    "gap_regained": "regained",
    "min_accuracy": "min accuracy",
    "worst_case_accuracy": "worst-case accuracy",
    "windowed_forgetting_10": "largest drop in 10 steps",
    "average_accuracy": "accuracy at the end",
}
_NOTE = (
    "Optimizer state is kept across tasks, with the settings that everlearn tune chooses among trials that "
    "keep it, except where a row says that it is reset. Where the same task comes again the data do not "
    "change, so they do not cause that gap; the learning rate restarts all the same, from near 0 to its "
    "highest value, and a reset also moves every weight by the full learning rate in the first step. Which "
    "of both matters was not separated. Each row has a learning accuracy of "
    f"{LEARNED} or more on every seed. The gap is averaged over old tasks and task switches. In the first "
    "step: fraction of the accuracy lost that is lost in the first step of the new task. Regained: part "
    "of it that is back when the task ends; where less than a twentieth is, old tasks are forgotten and "
    "there is no gap. "
    "DCL+ and ER with averaged weights predict with weights that change only when a task ends, so their "
    "gap is small by construction. Minima over small subsets are biased low."
)
_UNLEARNED_NOTE = (
    f"Accuracy below {LEARNED} on tasks right after learning them, on one seed at least: what was not "
    "learned cannot be lost, so no gap is shown. The first tasks of a net are learned least, and count for "
    "more among ten tasks than among the 200 of the main table."
)
_NONE_LEARNED = "none of them learned its tasks"


def _kept(trial: Trial) -> Trial:
    """Return the variant of a trial that keeps its optimizer state, with the settings chosen for that."""
    chosen = TUNED_KEPT.get(trial.method, {})
    settings = {**trial.settings, **chosen, "reset_optimizer": False}
    name = f"gap-{trial.method}"
    return trial._replace(
        name=name, settings=settings, label=trial.title, max_tasks=None, tasks_by_seed={}
    )


def _variant(trial: Trial, name: str, label: str, changes: Mapping[str, Any]) -> Trial:
    settings = {**trial.settings, **changes}
    return trial._replace(
        name=f"{trial.name}-{name}", label=f"{trial.label}, {label}", settings=settings
    )


def _reset(trial: Trial) -> Trial:
    return _variant(trial, "reset", "optimizer reset", {"reset_optimizer": True})


def _trials(size: int, tasks: int, probe: int, images: int) -> tuple[Trial, ...]:
    er = _kept(replay(size))
    dcl = _kept(DCL)
    others = (replay(size, "der++"), AGEM, LWF, EWC, SI, FINE_TUNING)
    averaged = _variant(er, "averaged", "averaged weights", {"weight_averaging": _AVERAGING})
    same = _variant(dcl, "same", _SAME, {})._replace(stream={"scenario": _SAME_TASK})
    trials = (
        *(_kept(DCL_PLUS), dcl, er, *map(_kept, others)),
        *(averaged, _reset(dcl), _reset(er), same, _reset(same)),
    )
    plan = {**_PLAN, "probe_every": probe, "probe_images": images}
    return tuple(
        trial._replace(stream={"tasks": tasks, **trial.stream}, plan=plan) for trial in trials
    )


SETTINGS = {
    SMALL: Settings(_trials(MIDDLE_BUFFER[SMALL], 2, 5, 16)),
    PAPER: Settings(_trials(MIDDLE_BUFFER[PAPER], 10, 1, 100)),
}
COST = {SMALL: "2 minutes", PAPER: "20 minutes"}


def run(runner: Runner) -> None:
    """Run all trials, with probes while they learn."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw the gap of each method that learned its tasks, and accuracy on the first task throughout."""
    trials = results.settings(SETTINGS).trials
    groups = probed_groups(results)
    learned = list(filter(_learned, groups))
    caption = "Mean drop of accuracy on old tasks while the next task is learned."
    figures = bar_figures(learned, "stability_gap", "gap-bars", "stability gap", caption)
    names = {f"gap-{method}" for method in _DRAWN}
    drawn = {trial.title for trial in trials if trial.name in names}
    probed = draw_probes([group for group in groups if group.label in drawn])
    if probed:
        figures.append(Figure(probed, "Accuracy on the first task while the others are learned."))
    return ExperimentResult(
        figures,
        tables=list(_tables(groups)),
        verdicts=_verdicts(groups, trials),
        runs=runs_of(groups),
        missing=results.missing(trials),
    )


def probed_groups(results: ResultsFolder) -> list[Group]:
    """Return the runs of all trials that were probed while they learned."""
    groups = results.groups(results.settings(SETTINGS).trials)
    return [group for group in groups if any(of_kind(run.rows, ProbeRow) for run in group.runs)]


def gaps(results: ResultsFolder) -> dict[str, float]:
    """Return the stability gaps of methods that have one on every seed, by label."""
    groups = probed_groups(results)
    complete = [g for g in groups if len(g.values("stability_gap")) == len(g.runs)]
    means = {group.label: group.mean("stability_gap") for group in complete}
    return {label: gap for label, gap in means.items() if gap is not None}


def _learned(group: Group) -> bool:
    """Return whether every run of a group has a learning accuracy, and none that is too low."""
    accuracies = group.values("learning_accuracy").values()
    return len(accuracies) == len(group.runs) and all(map(learned_its_tasks, accuracies))


def _verdicts(groups: Sequence[Group], trials: Sequence[Trial]) -> list[Verdict]:
    """Judge which methods lose accuracy temporarily, of those that learned their tasks."""
    plain_titles = {trial.title for trial in trials if trial.name == f"gap-{trial.method}"}
    plain = {group.method: group for group in groups if group.label in plain_titles}
    ours = [plain[name] for name in ("dcl", "dcl-plus") if name in plain]
    learned = list(filter(_learned, ours))
    shown = _describe(learned) if learned or not ours else _NONE_LEARNED
    return [
        _judge("Replay loses accuracy on old tasks for a while", plain, _REPLAY),
        _judge("So do gradient constraints, distillation and regularisation", plain, _OTHERS),
        unpublished("DCL, measured in the same way", shown),
    ]


def _judge(statement: str, plain: Mapping[str, Group], methods: Sequence[str]) -> Verdict:
    """Judge whether the losses of some methods are temporary; undecided where one did not learn."""
    groups = [plain[name] for name in methods if name in plain]
    learned = list(filter(_learned, groups))
    if groups and not learned:
        return Verdict(statement, "as stated", _NONE_LEARNED, "undecided", _UNLEARNED_NOTE)
    why = f"temporary: more than {_TEMPORARY} of the loss is regained"
    absent = [name for name in methods if name not in plain]
    leads = [*map(_temporary, learned), *(None for _ in absent)]
    names = [*(group.label for group in learned), *absent]
    verdict = judge_statement(statement, _describe(learned), leads, why, names)
    unlearned = [group.label for group in groups if not _learned(group)]
    if not unlearned or verdict.verdict != "equal":
        return verdict
    why = f"{verdict.why}; did not learn their tasks: {', '.join(unlearned)}"
    return verdict._replace(verdict="undecided", why=why)


def _temporary(group: Group) -> Lead | None:
    """Return by how much the fraction regained exceeds 0.3; where nothing is lost nothing is regained."""
    shares = {run.seed: run.summary.get("gap_regained") or 0.0 for run in group.runs}
    return lead_above(shares, _TEMPORARY)


def _describe(groups: Sequence[Group]) -> str:
    return "; ".join(f"{group.label}: {_describe_gap(group)}" for group in groups)


def _describe_gap(group: Group) -> str:
    share = group.mean("gap_regained")
    gap = group.mean("stability_gap")
    if share is None or (gap is not None and gap <= 0):
        return "does not drop"
    drop = "" if gap is None else f"drops by {gap:.2f}, "
    return f"{drop}regains {share:.2f} of what it loses"


def _tables(groups: Sequence[Group]) -> Iterator[Table]:
    learned = list(filter(_learned, groups))
    if learned:
        head = ["method", "seeds", *_COLUMNS.values()]
        yield Table("While learning", head, [_row(group) for group in learned], _NOTE)
    others = [group for group in groups if not _learned(group)]
    if others:
        head = ["method", "seeds", "learning accuracy of each"]
        rows = [[group.label, group.listed_seeds, _each(group)] for group in others]
        yield Table("Did not learn", head, rows, _UNLEARNED_NOTE)


def _row(group: Group) -> list[str]:
    return [group.label, group.listed_seeds, *(_cell(group, name) for name in _COLUMNS)]


def _each(group: Group) -> str:
    accuracies = group.values("learning_accuracy")
    return ", ".join(decimal(accuracies[seed], 3) for seed in sorted(accuracies))


def _cell(group: Group, name: str) -> str:
    """Format the mean of a number, with the number of seeds if not all have it."""
    known = len(group.values(name))
    seeds = f" ({count(known, 'seed')})" if 0 < known < len(group.runs) else ""
    return f"{summary_cell(group, name)}{seeds}"
