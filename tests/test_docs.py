"""The docs: every example runs, every picture is there and small, tables that stand twice agree."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from everlearn.experiments import EXPERIMENTS, find_experiment
from everlearn.methods import METHODS

ROOT = Path(__file__).parent.parent
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("README.md")])
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_PICTURE = re.compile(r"!\[[^\]]*\]\(([^)#]+)\)")
_LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)#:]+)(?:#[^)]*)?\)")
_SUMMARY = re.compile(r"<!-- summary: from \S+ -->\n(.*?)<!-- end of summary -->", re.DOTALL)
LARGEST = 300_000


def _program(text: str) -> str:
    """The python blocks of a page, one after another, on the lines where they stand."""
    lines = [""] * text.count("\n")
    for block in _BLOCK.finditer(text):
        start = text.count("\n", 0, block.start(1))
        code = block.group(1).splitlines()
        lines[start : start + len(code)] = code
    return "\n".join(lines)


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if "```python" in p.read_text()], ids=_name)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = tmp_path / page.with_suffix(".py").name
    script.write_text(_program(page.read_text()))
    runpy.run_path(str(script))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_pictures_are_there_and_small(page):
    for name in _PICTURE.findall(page.read_text()):
        picture = page.parent / name
        assert picture.exists(), f"{name} is missing; draw it with: make docs"
        assert picture.stat().st_size < LARGEST


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=_name)
def test_links_lead_somewhere(page):
    for name in _LINK.findall(page.read_text()):
        assert (page.parent / name).exists(), name


def test_every_picture_is_shown():
    shown = {
        (page.parent / name).resolve()
        for page in PAGES
        for name in _PICTURE.findall(page.read_text())
    }
    assert shown >= {path.resolve() for path in (ROOT / "docs/pictures").iterdir()}


def _table(text: str) -> list[dict[str, str]]:
    """The rows of the first table in a text, cells by the title of their column."""
    lines = text[text.index("|") :].split("\n\n")[0].splitlines()
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_the_readme_has_the_reports_summary():
    found = _SUMMARY.search((ROOT / "README.md").read_text())
    assert found, "README.md has no table between the marks of the summary"
    shown = _table(found.group(1))
    told = _table((ROOT / "docs/report/tables.md").read_text().partition("### Summary")[2])
    assert shown == [{name: row[name] for name in shown[0]} for row in told]


def test_the_readme_counts_experiments_and_methods():
    text = (ROOT / "README.md").read_text()
    assert f"lists {len(EXPERIMENTS)} figures and tables" in text
    assert f"of the {len(METHODS)} methods" in text


def test_the_page_of_experiments_says_their_files_and_costs():
    text = (ROOT / "docs/experiments.md").read_text().partition("## All of them")[2]
    for row in _table(text):
        module = find_experiment(row["command"].strip("`").removeprefix("everlearn reproduce "))
        file = f"{module.__name__.rpartition('.')[2]}.py"
        assert row["file"] == f"[`{file}`](../src/everlearn/experiments/{file})"
        assert row["figure"] == module.SOURCE
        assert (row["small"], row["paper"]) == (module.COST["small"], module.COST["paper"])


@pytest.mark.slow
def test_every_picture_can_be_drawn_anew(tmp_path):
    subprocess.run([sys.executable, ROOT / "docs/pictures.py", tmp_path], check=True)
    assert {p.name for p in tmp_path.iterdir()} == {
        p.name for p in (ROOT / "docs/pictures").iterdir()
    }
