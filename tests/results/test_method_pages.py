"""Numbers on the pages of methods and experiments: tables are those of the rows, text names its rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.report import Verdict
from everlearn.report.experiment import ExperimentResult
from everlearn.report.tables.groups import accuracy_by_tasks
from everlearn.runs.load import load_run

Drawn = dict[str, ExperimentResult]
ROOT = Path(__file__).parents[2]
METHOD_PAGES = sorted((ROOT / "docs/methods").glob("*.md"))
_SECTION = re.compile(r"^## Measured\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_CODE_BLOCK = re.compile(r"^```.*?^```\n", re.DOTALL | re.MULTILINE)
_FRACTION = re.compile(r"(?<![\w./-])\d*\.\d{2,}(?!\w)")
_SETTING = re.compile(
    r"(learning rates?( of)?|rate of|`--[\w-]+`?|strength of|at|with|only|,) 0\.0\d+( and 0\.0\d+)?"
)
_NOT_KEPT = re.compile(r"Not kept as rows: ([^.]+)\.")
_ROWS = re.compile(r"`(results|parts)/[^`]*`|\(#\S+\)|\]\([\w+-]+\.md#[\w-]+\)|`[\w+-]+-seed\d+`")


def measured(page: Path, tables: ModuleType) -> str:
    """Return the section about measurements, without code and tables of rows."""
    (section,) = _SECTION.findall(page.read_text())
    return tables.blank(_CODE_BLOCK.sub("", section))


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


# This page waits for its own rows, and still has several paragraphs with one origin.
_OPEN = ("vase",)


@pytest.mark.parametrize("page", METHOD_PAGES, ids=lambda page: page.stem)
def test_numbers_name_their_rows_or_are_marked_as_not_kept(tables: ModuleType, page: Path) -> None:
    section = measured(page, tables)
    known = False
    for passage in passages(_NOT_KEPT.sub("", section)):
        known = has_origin(passage, not_kept(section)) or (known and page.stem in _OPEN)
        numbers = _FRACTION.findall(_SETTING.sub("", " ".join(passage.split())))
        assert known or not numbers, passage


@pytest.mark.parametrize("page", METHOD_PAGES, ids=lambda page: page.stem)
def test_what_is_marked_as_not_kept_stands_on_the_page(tables: ModuleType, page: Path) -> None:
    section = measured(page, tables)
    text = " ".join(_NOT_KEPT.sub("", section).split()).lower()
    assert [name for name in not_kept(section) if name.lower() not in text] == []


def test_an_unknown_trial_is_refused(tables: ModuleType, rows: Any) -> None:
    page = "<!-- paper: er-7k -->\n<!-- end of paper -->"
    with pytest.raises(ValueError, match="no experiment has a trial er-7k"):
        tables.fill(page, rows)


@pytest.mark.parametrize(
    ("block", "name", "known"),
    [
        ("small", "dcl-pluss", "dcl, dcl-plus"),
        ("small", "dcl*", "dcl, dcl-plus"),
        ("findings", "dlc", "beyond, dcl, gnr, vase"),
        ("avalanche", "errr", "agem, .*er, "),
    ],
)
def test_a_misspelt_name_is_refused_with_the_known_ones(
    tables: ModuleType, rows: Any, block: str, name: str, known: str
) -> None:
    with pytest.raises(ValueError, match=rf"unknown .*: {re.escape(name)}; known: {known}"):
        tables.BLOCKS[block](rows, [name])


def test_findings_are_the_verdicts_with_rows_whatever_the_others_say(
    tables: ModuleType, published: ModuleType, committed: ResultsFolder, drawn: Drawn
) -> None:
    found = Verdict("Found", "none", "not measured", "not comparable", "")
    absent = Verdict("Absent", "none", "still to come", "not comparable", "", measured=False)
    changed = {
        **dict.fromkeys(drawn, ExperimentResult(verdicts=[absent])),
        "gnr-nc": ExperimentResult(verdicts=[absent, found]),
    }
    table = tables.BLOCKS["findings"](
        published.Committed(ROOT / "results", committed, changed), ["gnr"]
    )
    assert [line for line in table.splitlines() if line.startswith("| `")] == [
        "| `gnr-nc` | Found | – | not measured | – |"
    ]
    assert "Absent" not in table
    assert "No rows so far: `gnr-" in table


@pytest.mark.parametrize(
    ("page", "error"),
    [
        (
            "<!-- papers: er -->\n<!-- end of papers -->",
            "<!-- papers: er --> begins no block; blocks are ",
        ),
        ("<!-- end of toy -->", "<!-- end of toy --> begins no block"),
        (
            "<!-- toy: x -->",
            "<!-- toy: x --> must be followed by <!-- end of toy -->, found the end",
        ),
        ("<!-- costs -->\n<!-- fit -->", "<!-- costs --> must be .* found <!-- fit -->"),
        (
            "<!-- costs -->\n<!-- end of fit -->",
            "<!-- costs --> must be .* found <!-- end of fit -->",
        ),
    ],
)
def test_a_mark_without_its_partner_is_refused(tables: ModuleType, page: str, error: str) -> None:
    for use in (lambda: tables.fill(page, None), lambda: tables.blank(page)):
        with pytest.raises(ValueError, match=error):
            use()


def test_trials_without_rows_are_named(
    tables: ModuleType, published: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "reproduce.json").write_text('{"scale": "paper"}')
    page = "<!-- paper: er-5k lwf -->\nold\n<!-- end of paper -->"
    found = tables.fill(page, published.Committed(tmp_path))
    assert found == page.replace("old\n", "\nNo rows so far: `er-5k`, `lwf`.\n\n")


def test_a_wrong_number_in_a_table_is_replaced(tables: ModuleType, rows: Any) -> None:
    text = (ROOT / "docs/methods/er.md").read_text()
    wrong = re.sub(r"(\| ER, 5,000 \| 10, 11, 12 \| )0\.\d+", r"\g<1>0.123", text)
    assert wrong != text
    assert tables.fill(wrong, rows) == text


def paper_rows(tables: ModuleType, rows: Any, *names: str) -> list[list[str]]:
    """Return the cells of the table of some trials, without the head."""
    text = tables.fill(f"<!-- paper: {' '.join(names)} -->\n<!-- end of paper -->", rows)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_trials_of_one_label_keep_their_own_numbers(tables: ModuleType, rows: Any) -> None:
    first, second = paper_rows(tables, rows, "dcl-plus", "unlearn-dcl-plus")
    assert first[0] == second[0]
    assert [first] == paper_rows(tables, rows, "dcl-plus")
    assert [second] == paper_rows(tables, rows, "unlearn-dcl-plus")


def test_runs_shorter_than_those_of_the_main_table_are_shown(tables: ModuleType, rows: Any) -> None:
    (cells,) = paper_rows(tables, rows, "l2p-lite")  # 100 tasks
    run = load_run(ROOT / "results/paper/l2p-lite-seed0")
    found = accuracy_by_tasks(run)
    assert cells[2:5] == [f"{found[tasks]:.3f}" for tasks in (10, 50, 100)]
    assert cells[5] == "–"
