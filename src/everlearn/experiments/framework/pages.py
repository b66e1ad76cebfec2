"""The report of all experiments, or of some, from rows on disk; torch is not needed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from everlearn.core.files import write_file
from everlearn.experiments import EXPERIMENTS
from everlearn.experiments.beyond import overview, stability
from everlearn.experiments.framework.findings import make_lead
from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.trial import PAPER, SMALL, at_scale
from everlearn.experiments.framework.verdicts import unpublished
from everlearn.report import Group
from everlearn.report.experiment import ExperimentInfo, ExperimentResult
from everlearn.report.reproduction import Reproduction, write_report
from everlearn.report.sections import OVERVIEW
from everlearn.report.verdict import Verdict

SCALE_FILE = "reproduce.json"
SCALE_NAMES = ("tiny", "small", "paper")
_SMALLER = "nothing was published for a stream as small as this"
_OVERVIEW = "overview"
_SMALL_INTROS = {
    "tiny": (
        "A smoke test: two tasks of three classes, images of 16 pixels, one epoch. It shows that every "
        "experiment runs from end to end. Nothing is learned in so few steps: every method is near chance "
        "level, and no number or ranking on this page means anything."
    ),
    SMALL: (
        "A check on a CPU: five tasks of three classes, images of 16 pixels. Methods learn each task, and "
        "forgetting shows: fine-tuning ends near 0.2, as it knows only the last of five tasks. Rankings "
        "say little about long streams, and no number is compared with a paper."
    ),
}
# Headings of the contents, by the folder of an experiment's module.
_GROUPS = {
    "dcl": "Disentangled continual learning",
    "beyond": "Beyond the paper",
    "gnr": "Generative negative replay",
    "vase": "VASE",
}


def write_scale(folder: Path, scale: str) -> None:
    """Record in a folder the scale of its runs; refuse a folder of another scale."""
    recorded = read_scale(folder)
    if recorded not in (None, scale):
        raise ValueError(
            f"{folder} holds runs of scale {recorded}, not {scale}; name another folder with --out"
        )
    write_file(folder / SCALE_FILE, json.dumps({"scale": scale}).encode() + b"\n")


def read_scale(folder: Path) -> str | None:
    """Return the scale of a folder written by `everlearn reproduce`; None for other folders."""
    path = folder / SCALE_FILE
    if not path.is_file():
        return None
    try:
        scale = json.loads(path.read_text())["scale"]
    except (ValueError, TypeError, KeyError):
        raise ValueError(
            f'{path} is damaged: it must look like {{"scale": "paper"}}; restore it'
        ) from None
    if scale not in SCALE_NAMES:
        raise ValueError(f"{path} names the scale {scale!r}; known: {', '.join(SCALE_NAMES)}")
    return str(scale)


def write_experiments_report(
    folder: Path, scale: str, out: Path, names: Sequence[str] = (), title: str | None = None
) -> Path:
    """Write the report of the named experiments, or of all, from the rows in a folder."""
    results = ResultsFolder(folder, scale)
    return write_drawn_report(results, draw_experiments(results, names), out, title)


def draw_experiments(
    results: ResultsFolder, names: Sequence[str] = ()
) -> dict[str, ExperimentResult]:
    """Return the result of the named experiments, or of all, by name."""
    return {name: _result(name, results) for name in names or EXPERIMENTS}


def write_drawn_report(
    results: ResultsFolder,
    drawn: Mapping[str, ExperimentResult],
    out: Path,
    title: str | None = None,
) -> Path:
    """Write the report of experiments that were drawn from a folder."""
    scale = results.scale
    experiments = [(_info(name, scale), result) for name, result in drawn.items()]
    chosen = "all" if len(drawn) == len(EXPERIMENTS) else " ".join(drawn)
    command = f"everlearn reproduce {chosen} --scale {scale}"
    groups = summary_groups(results, list(drawn))
    lead = make_lead(groups, with_findings=scale == PAPER) if _OVERVIEW in drawn else None
    content = Reproduction(
        title or _title(scale), _intro(scale, drawn.values()), command, groups, experiments, lead
    )
    return write_report(out, content)


def _info(name: str, scale: str) -> ExperimentInfo:
    module = EXPERIMENTS[name]
    cost = at_scale(module.COST, scale)
    command = f"everlearn reproduce {name} --scale {scale}"
    folder = module.__name__.split(".")[-2]
    group = OVERVIEW if name == _OVERVIEW else _GROUPS.get(folder, folder)
    return ExperimentInfo(name, module.TITLE, module.SOURCE, module.CLAIM, command, cost, group)


def _result(name: str, results: ResultsFolder) -> ExperimentResult:
    result: ExperimentResult = EXPERIMENTS[name].figure(results)
    if results.scale == PAPER:
        return result
    return result._replace(verdicts=[_report(verdict) for verdict in result.verdicts])


def _report(verdict: Verdict) -> Verdict:
    """Report our number alone: nothing was published for a stream as small as this."""
    if verdict.verdict == "not comparable":
        return verdict
    return unpublished(verdict.statement, verdict.ours, _SMALLER)


def summary_groups(results: ResultsFolder, names: Sequence[str] = ()) -> list[Group]:
    """Return the methods of the summary: all, or those of one experiment."""
    if len(names) != 1:
        groups = overview.compared_groups(results)
    else:
        trials = results.settings(EXPERIMENTS[names[0]].SETTINGS).trials
        # Accuracy on some tasks is not comparable with accuracy on all.
        groups = results.groups(trial for trial in trials if not trial.plan.get("max_test_tasks"))
    gaps = stability.gaps(results)
    return [_with_gap(group, gaps) for group in groups]


def _title(scale: str) -> str:
    return "Everlearn: endless continual learning" + ("" if scale == PAPER else f", scale {scale}")


def _with_gap(group: Group, gaps: dict[str, float]) -> Group:
    """Add the stability gap of the group's label, measured on a shorter stream, if there is one."""
    gap = gaps.get(group.label)
    if gap is None:
        return group
    runs = [run._replace(summary={**run.summary, "stability_gap": gap}) for run in group.runs]
    return group._replace(runs=runs)


def _intro(scale: str, results: Iterable[ExperimentResult]) -> str:
    if scale == PAPER:
        return (
            "This report reproduces every figure and table of the paper on disentangled continual learning "
            "(Dziadzio et al. 2023, arXiv 2312.16731) and goes beyond it: 500 tasks of ten shapes, 64 "
            f"pixels{_describe_machines(results)}. It also tests the claims of generative negative replay "
            "(Graffieti et al. 2022, arXiv 2204.05842) on latents of 50 shapes, and of life-long "
            "disentangled representations (VASE, Achille et al. 2018, arXiv 1808.06508) on MNIST and "
            "Fashion-MNIST. Stability gaps in the summary come from ten tasks."
        )
    return _SMALL_INTROS[scale]


def _describe_machines(results: Iterable[ExperimentResult]) -> str:
    """Name the GPUs of all runs, as their provenance does: ", each run on one NVIDIA H200"."""
    sessions = [session for result in results for run in result.runs for session in run.sessions]
    gpus = {session["gpu"] for session in sessions if "gpu" in session}
    names = [f"one {gpu}" for gpu in sorted(gpus - {None})] + ["a CPU"] * (None in gpus)
    return f", each run on {' or '.join(names)}" if names else ""
