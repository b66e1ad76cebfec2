"""The page of all experiments, or of some, from what lies on disk; torch is not needed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from everlearn.disk import write_file
from everlearn.experiments import EXPERIMENTS, overview, stability
from everlearn.experiments.found import Found
from everlearn.experiments.read import mean
from everlearn.experiments.trial import PAPER, at_scale
from everlearn.report import Group
from everlearn.report.book import write_book
from everlearn.report.chapter import Chapter, Heading
from everlearn.report.verdict import Verdict

MARK = "reproduce.json"
NAMES = ("tiny", "small", "paper")
_SMALLER = "a much smaller stream than the paper's"


def mark(folder: Path, scale: str) -> None:
    """Say in a folder which scale its runs are of."""
    write_file(folder / MARK, json.dumps({"scale": scale}).encode() + b"\n")


def scale_of(folder: Path) -> str | None:
    """The scale of a folder that `everlearn reproduce` wrote to; None of any other."""
    path = folder / MARK
    if not path.is_file():
        return None
    try:
        scale = json.loads(path.read_text())["scale"]
    except (ValueError, TypeError, KeyError):
        raise ValueError(
            f'{path} is damaged: it must read like {{"scale": "paper"}}; write it so'
        ) from None
    if scale not in NAMES:
        raise ValueError(f"{path} names the scale {scale!r}; known: {', '.join(NAMES)}")
    return str(scale)


def write_pages(
    folder: Path, scale: str, out: Path, names: Sequence[str] = (), title: str | None = None
) -> Path:
    """Draw the page of some experiments, or of all, from the rows in a folder."""
    found, chosen = Found(folder, scale), names or list(EXPERIMENTS)
    chapters = [(_heading(name, scale), _chapter(name, found)) for name in chosen]
    groups = _compared(found, chosen)
    command = f"everlearn reproduce {'all' if not names else ' '.join(names)} --scale {scale}"
    return write_book(out, title or _title(scale), _intro(scale), groups, chapters, command)


def _heading(name: str, scale: str) -> Heading:
    module = EXPERIMENTS[name]
    words = at_scale(module.COST, scale)
    command = f"everlearn reproduce {name} --scale {scale}"
    return Heading(name, module.TITLE, module.SOURCE, module.CLAIM, command, words)


def _chapter(name: str, found: Found) -> Chapter:
    chapter: Chapter = EXPERIMENTS[name].figure(found)
    if found.scale == PAPER:
        return chapter
    return chapter._replace(verdicts=[_beside(verdict) for verdict in chapter.verdicts])


def _beside(verdict: Verdict) -> Verdict:
    """What a verdict is worth on a stream that is not the paper's."""
    if verdict.verdict == "not comparable":
        return verdict
    return verdict._replace(verdict="not comparable", why=_SMALLER)


def _compared(found: Found, names: Sequence[str]) -> list[Group]:
    """The methods to compare in one table: all, or those of one experiment."""
    if len(names) > 1:
        groups = overview.shown(found)
    else:
        trials = found.settings(EXPERIMENTS[names[0]].SETTINGS).trials
        # Where some tasks alone were tested, their accuracy is not that on all.
        groups = found.groups(trial for trial in trials if not trial.plan.get("test_tasks"))
    gaps = _gaps(found)
    return [_with_gap(group, gaps) for group in groups]


def _title(scale: str) -> str:
    return "Everlearn: endless continual learning" + ("" if scale == PAPER else f", scale {scale}")


def _gaps(found: Found) -> dict[str, float | None]:
    """The stability gap by label, measured on a shorter stream."""
    probed = found.groups(found.settings(stability.SETTINGS).trials)
    return {group.label: mean(group, "stability_gap") for group in probed}


def _with_gap(group: Group, gaps: dict[str, float | None]) -> Group:
    """A method's runs, with the gap of its label, if there is one."""
    gap = gaps.get(group.label)
    if gap is None:
        return group
    runs = [run._replace(summary={**run.summary, "stability_gap": gap}) for run in group.runs]
    return group._replace(runs=runs)


def _intro(scale: str) -> str:
    if scale == PAPER:
        return (
            "Every figure and table of the paper on disentangled continual learning (Dziadzio et al. 2023, "
            "arXiv 2312.16731), and ours beyond it: 500 tasks of ten shapes, 64 pixels, on one NVIDIA "
            "H200. Beside them what is said of generative negative replay (Graffieti et al. 2022, arXiv "
            "2204.05842), on latents of 50 shapes, and of life-long disentangled codes (VASE, Achille et "
            "al. 2018, arXiv 1808.06508), on MNIST and Fashion-MNIST. Stability gaps in the summary are of "
            "ten tasks; forward transfer was not measured."
        )
    return (
        "The same experiments on a small stream, to see each of them work: its numbers say little."
    )
