"""The page of all experiments, or of some, from what lies on disk; torch is not needed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from everlearn.disk import write_file
from everlearn.experiments import EXPERIMENTS, overview
from everlearn.experiments.found import Found, settings_at
from everlearn.experiments.trial import PAPER, SMALL, Trial
from everlearn.report.book import write_book
from everlearn.report.chapter import Chapter, Heading
from everlearn.report.verdict import Verdict

MARK = "reproduce.json"
_SMALLER = "a much smaller stream than the paper's"


def mark(folder: Path, scale: str) -> None:
    """Say in a folder which scale its runs are of."""
    write_file(folder / MARK, json.dumps({"scale": scale}).encode() + b"\n")


def scale_of(folder: Path) -> str | None:
    """The scale of a folder that `everlearn reproduce` wrote to; None of any other."""
    path = folder / MARK
    if not path.is_file():
        return None
    scale: str = json.loads(path.read_text())["scale"]
    return scale


def write_pages(folder: Path, scale: str, out: Path, names: Sequence[str] = ()) -> Path:
    """Draw the page of some experiments, or of all, from the rows in a folder."""
    found, chosen = Found(folder, scale), names or list(EXPERIMENTS)
    chapters = [(_heading(name, scale), _chapter(name, found)) for name in chosen]
    groups = found.groups(_main_trials(scale, chosen))
    command = f"everlearn reproduce {'all' if not names else ' '.join(names)} --scale {scale}"
    return write_book(out, _title(scale), _intro(scale), groups, chapters, command)


def _heading(name: str, scale: str) -> Heading:
    module = EXPERIMENTS[name]
    words = module.COST[PAPER if scale == PAPER else SMALL]
    command = f"everlearn reproduce {name} --scale {scale}"
    return Heading(name, module.TITLE, module.SOURCE, module.CLAIM, command, words)


def _chapter(name: str, found: Found) -> Chapter:
    chapter: Chapter = EXPERIMENTS[name].figure(found)
    if found.scale == PAPER:
        return chapter
    return chapter._replace(verdicts=[_beside(verdict) for verdict in chapter.verdicts])


def _beside(verdict: Verdict) -> Verdict:
    """What a verdict is worth on a stream that is not the paper's."""
    return verdict._replace(verdict="not comparable", why=_SMALLER)


def _main_trials(scale: str, names: Sequence[str]) -> list[Trial]:
    """The methods to compare in one table."""
    module = overview if len(names) > 1 else EXPERIMENTS[names[0]]
    return list(settings_at(module.SETTINGS, scale).trials)


def _title(scale: str) -> str:
    return "Everlearn: endless continual learning" + ("" if scale == PAPER else f", scale {scale}")


def _intro(scale: str) -> str:
    if scale == PAPER:
        return (
            "Every figure and table of the paper on disentangled continual learning (Dziadzio et al. 2023, "
            "arXiv 2312.16731), and ours beyond it: 500 tasks of ten shapes, 64 pixels, on one NVIDIA H200."
        )
    return (
        "The same experiments on a small stream, to see each of them work: its numbers say little."
    )
