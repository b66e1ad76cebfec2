"""The documentation: examples run, links lead somewhere, tables agree with the code and the results."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import unicodedata
from dataclasses import fields
from pathlib import Path

import pytest

from everlearn.evaluation import Plan
from everlearn.experiments import EXPERIMENTS, find_experiment
from everlearn.methods import METHODS
from everlearn.metrics import LEARNED
from everlearn.runs.presets import PRESETS
from everlearn.stream import Stream
from everlearn.stream.named import STREAMS

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FRONT = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES = sorted([*DOCS.rglob("*.md"), *FRONT])
# Records of their time, and tables that are made from results.
RECORDS = (DOCS / "decisions", DOCS / "report", ROOT / "CHANGELOG.md")
PROSE = [page for page in PAGES if not any(page.is_relative_to(record) for record in RECORDS)]
_BLOCK = re.compile(r"^( *)```python\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]+`", re.DOTALL | re.MULTILINE)
_PICTURE = re.compile(r"!\[[^\]]*\]\(([^)#]+)\)")
_LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)#:]*)(#[^):]+)?\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_PATH = re.compile(r"`((?:benchmarks|docs|results|src|tests)/[\w./+-]*\w)`")
_PLACEHOLDERS = {"x.py", "test_x.py", "x.md"}
_SUMMARY = re.compile(r"<!-- summary: [^>]+ -->\n(.*?)<!-- end of summary -->", re.DOTALL)
HOUSEHOLD_WORDS = re.compile(
    r"\b(told|met|unmet|exams?|mended|likewise|whose|slopes|lessons?|nobody|looked back)\b", re.I
)
MAX_PICTURE_BYTES = 300_000
MAX_README_LINES = 120


def _program(text: str) -> str:
    """Return the python blocks of a page, on the lines where they stand."""
    lines = [""] * text.count("\n")
    for block in _BLOCK.finditer(text):
        start = text.count("\n", 0, block.start(2))
        indent = len(block.group(1))
        code = [line[indent:] for line in block.group(2).splitlines()]
        lines[start : start + len(code)] = code
    return "\n".join(lines)


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if "```python" in p.read_text()], ids=_name)
def test_examples_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / page.with_suffix(".py").name
    script.write_text(_program(page.read_text()))
    runpy.run_path(str(script))


@pytest.mark.slow
def test_the_example_of_the_readme_is_as_accurate_as_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "README.md").read_text()
    promise = re.search(r"It prints ([\d.]+) or more for every task", text)
    assert promise
    monkeypatch.chdir(tmp_path)
    Path("example.py").write_text(_program(text))
    runpy.run_path("example.py")
    printed = re.findall(r": ([\d.]+) correct", capsys.readouterr().out)
    assert len(printed) == 5
    assert min(map(float, printed)) >= float(promise[1])


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_pictures_exist_and_are_small(page: Path) -> None:
    for name in _PICTURE.findall(page.read_text()):
        picture = page.parent / name
        assert picture.exists(), f"{name} is missing; draw it with: python docs/pictures.py"
        assert picture.stat().st_size < MAX_PICTURE_BYTES


def _anchor(heading: str) -> str:
    """Return the anchor of a heading, as GitHub and MkDocs make it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower())


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    for name, anchor in _LINK.findall(_CODE.sub("", page.read_text())):
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), name
        if page.is_relative_to(DOCS):
            assert target.is_relative_to(DOCS), f"{name} is outside the site: write `{name}`"
            assert target.is_file(), f"{name} is a folder: link its index.md"
        if anchor and target.suffix == ".md":
            text = re.sub(r"^```.*?^```", "", target.read_text(), flags=re.DOTALL | re.MULTILINE)
            assert anchor[1:] in map(_anchor, _HEADING.findall(text)), f"{name}{anchor}"


@pytest.mark.parametrize("page", [*PROSE, *(DOCS / "decisions").glob("*.md")], ids=_name)
def test_paths_in_the_text_exist(page: Path) -> None:
    paths = map(Path, _PATH.findall(page.read_text()))
    real = [path for path in paths if path.name not in _PLACEHOLDERS]
    assert not [str(path) for path in real if not (ROOT / path).exists()]


def test_every_picture_is_shown() -> None:
    shown = {
        (page.parent / name).resolve()
        for page in PAGES
        for name in _PICTURE.findall(page.read_text())
    }
    assert shown >= {path.resolve() for path in (DOCS / "pictures").iterdir()}


def test_the_navigation_has_every_page_once() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    listed = re.findall(r"([\w/+.-]+\.md)$", navigation, re.MULTILINE)
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    assert sorted(listed) == sorted(pages - {"report/tables.md"})


@pytest.mark.parametrize("page", PROSE, ids=_name)
def test_prose_uses_the_words_of_the_field(page: Path) -> None:
    prose = _CODE.sub("", page.read_text())
    assert not sorted({word.lower() for word in HOUSEHOLD_WORDS.findall(prose)})


def _tables(text: str, *columns: str) -> list[dict[str, str]]:
    """Return the rows of all tables whose first columns have these titles."""
    out = []
    start = "| " + " | ".join(columns) + " |"
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        if not lines or not lines[0].startswith(start):
            continue
        head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
        out += [dict(zip(head, row, strict=True)) for row in rows]
    return out


@pytest.mark.parametrize("page", ["README.md", "docs/results.md"])
def test_summaries_have_all_methods_of_the_report_that_learned(page: str) -> None:
    found = _SUMMARY.search((ROOT / page).read_text())
    assert found, f"{page} has no table between the marks of the summary"
    shown = _tables(found.group(1), "method")
    report = (DOCS / "report/tables.md").read_text().partition("### Summary")[2]
    published = _tables(report.partition("\n### ")[0], "method")
    # Other columns are of the main table.
    columns = [name for name in shown[0] if name in published[0]]
    learned = [row for row in published if _learned(row["learning accuracy"])]
    assert [{name: row[name] for name in columns} for row in shown] == [
        {name: row[name] for name in columns} for row in learned
    ]


def _learned(cell: str) -> bool:
    """Return whether a learning accuracy is not measured or at least LEARNED."""
    return cell == "–" or float(cell) >= LEARNED


def test_the_readme_is_short_and_counts_experiments_and_methods() -> None:
    text = (ROOT / "README.md").read_text()
    assert text.count("\n") <= MAX_README_LINES
    assert f"lists {len(EXPERIMENTS)} figures and tables" in text
    assert f"the {len(METHODS)} methods" in text
    assert f"| {len(METHODS)} methods" in text


def test_pages_count_experiments_and_methods() -> None:
    guide = (DOCS / "how-to/reproduce-a-figure.md").read_text()
    assert f"list {len(EXPERIMENTS)} figures and tables" in guide
    assert f"\n{len(METHODS)} methods" in (DOCS / "reference/methods.md").read_text()
    without_images = sum(not method.needs_images for method in METHODS.values())
    assert f"the other {without_images} take" in (DOCS / "reference/command-line.md").read_text()


def test_the_table_of_experiments_has_their_files_and_costs() -> None:
    rows = _tables((DOCS / "reference/experiments.md").read_text(), "name", "source")
    assert sorted(row["name"].strip("`") for row in rows) == sorted(EXPERIMENTS)
    for row in rows:
        module = find_experiment(row["name"].strip("`"))
        path = module.__name__.removeprefix("everlearn.experiments.").replace(".", "/")
        assert row["file"] == f"`{path}.py`"
        assert row["source"] == module.SOURCE
        assert (row["small"], row["paper"]) == (module.COST["small"], module.COST["paper"])


def _documented(page: str, *columns: str) -> list[str]:
    """Return the names in code font in the first column of a page's tables."""
    rows = _tables((DOCS / "reference" / page).read_text(), *columns)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row[columns[0]])]


def test_the_tables_of_settings_are_complete() -> None:
    plan = _documented("evaluation.md", "setting", "default", "what it measures")
    assert plan == [field.name for field in fields(Plan)]
    stream = _documented("streams.md", "setting", "default", "meaning")
    assert stream == [field.name for field in fields(Stream)]


def test_the_tables_of_presets_and_named_streams_are_complete() -> None:
    assert sorted(_documented("command-line.md", "preset", "stream")) == sorted(PRESETS)
    assert sorted(_documented("streams.md", "name", "what it is")) == sorted(STREAMS)


@pytest.mark.slow
def test_every_picture_can_be_redrawn(tmp_path: Path) -> None:
    subprocess.run([sys.executable, DOCS / "pictures.py", tmp_path], check=True)
    assert {path.name for path in tmp_path.iterdir()} == {
        path.name for path in (DOCS / "pictures").iterdir()
    }
