"""Measured numbers on the pages of methods: each passage names its rows or says that there are none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from everlearn.experiments.framework.groups import accuracy_after
from everlearn.report import Group
from everlearn.runs.load import load_run

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs/methods").glob("*.md"))
_SECTION = re.compile(r"^## Measured\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_CODE_BLOCK = re.compile(r"^```.*?^```\n", re.DOTALL | re.MULTILINE)
_FRACTION = re.compile(r"(?<![\w./-])\d*\.\d{2,}(?!\w)")
_NOT_KEPT = re.compile(r"Not kept as rows: ([^.]+)\.")
_ROWS = re.compile(r"`results/[^`]*`|\(#\S+\)|\]\([\w+-]+\.md#[\w-]+\)")


def measured(page: Path) -> str:
    """Return the section about measurements, without code."""
    (section,) = _SECTION.findall(page.read_text())
    return _CODE_BLOCK.sub("", section)


def passages(section: str) -> Iterator[str]:
    """Yield each paragraph with the headings before it and the tables after it."""
    passage = ""
    for block in re.split(r"\n\s*\n", section.strip()):
        table = block.lstrip().startswith("|")
        if passage and not table and not passage.splitlines()[-1].startswith("#"):
            yield passage
            passage = ""
        passage += block + "\n"
    yield passage


def not_kept(section: str) -> list[str]:
    """Return what a page says it keeps no rows of."""
    found = _NOT_KEPT.search(" ".join(section.split()))
    return found[1].split("; ") if found else []


def has_origin(passage: str, exceptions: list[str]) -> bool:
    """Return whether a passage names rows, another page, or one of the page's exceptions."""
    text = " ".join(passage.split()).lower()
    return bool(_ROWS.search(text)) or any(name.lower() in text for name in exceptions)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_numbers_name_their_rows_or_are_marked_as_not_kept(page: Path) -> None:
    section = measured(page)
    known = False  # a passage without an origin continues the one before it
    for passage in passages(_NOT_KEPT.sub("", section)):
        known = known or has_origin(passage, not_kept(section))
        assert known or not _FRACTION.search(passage), passage


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_is_marked_as_not_kept_stands_on_the_page(page: Path) -> None:
    section = measured(page)
    text = " ".join(_NOT_KEPT.sub("", section).split()).lower()
    assert [name for name in not_kept(section) if name.lower() not in text] == []


def accuracy_tables() -> Iterator[tuple[str, str, list[str], list[str]]]:
    """Yield page, run, numbers of tasks and accuracies of each table of one run."""
    for page in PAGES:
        for passage in passages(measured(page)):
            runs = set(re.findall(r"`(results/paper/[\w+.-]+-seed\d+)`", passage))
            head = re.search(r"^\| tasks learned \|(.*)\|$", passage, re.MULTILINE)
            row = re.search(r"^\| accuracy on all tasks \|(.*)\|$", passage, re.MULTILINE)
            if len(runs) == 1 and head and row:
                cells = [[cell.strip() for cell in line[1].split("|")] for line in (head, row)]
                yield page.stem, runs.pop(), *cells


@pytest.mark.parametrize(("page", "run", "tasks", "accuracies"), list(accuracy_tables()))
def test_accuracies_of_a_run_are_those_of_its_rows(
    page: str, run: str, tasks: list[str], accuracies: list[str]
) -> None:
    group = Group(page, page, [load_run(ROOT / run)])
    half = 0.5 / 10 ** len(accuracies[0].partition(".")[2])  # of the last digit
    found = [accuracy_after(group, int(number)) for number in tasks]
    assert found == pytest.approx(list(map(float, accuracies)), rel=0, abs=half + 1e-9)


def test_there_are_tables_to_check() -> None:
    assert {page for page, *_ in accuracy_tables()} >= {"ewc", "lwf", "si"}
