"""The book of experiments: everything is in it, linked, and where it came from is told."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser

import pytest
from PIL import Image

from everlearn.report import (
    VERDICTS,
    Bar,
    Chapter,
    Figure,
    Heading,
    Picture,
    Table,
    Verdict,
    chapter_section,
    check_verdict,
    draw_bars,
    group_runs,
    load_runs,
    write_book,
)

pytestmark = pytest.mark.slow

pytest.importorskip("matplotlib")

HEADING = Heading(
    "fig4", "Replay", "Figure 4", "Replay forgets.", "everlearn reproduce fig4", "1 h"
)
VERDICT = Verdict("DCL keeps 95 %", "0.95", "0.97", "better", "its interval lies above")
TABLE = Table("Cells", ["method", "x"], [["dcl", "1"]], "a note")


def _figure(name: str) -> Figure:
    return Figure(draw_bars([Bar("a", "er", 1, 0, 2)], name, "x", "w"), f"caption of {name}")


def _png() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (2, 2)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture
def groups(write_run, tmp_path):
    write_run("runs/a")
    write_run("runs/b", "er")
    write_run("runs/c", "ewc", matrix=[], finish=False)
    return group_runs(load_runs(tmp_path / "runs"))


@pytest.fixture
def book(groups, tmp_path):
    def write(*chapters, some=groups):
        return write_book(tmp_path / "out", "The book", "Introduction.", some, chapters, "make it")

    return write


def _visible(text: str) -> str:
    class Words(HTMLParser):
        found = ""

        def handle_data(self, data: str) -> None:
            self.found += data

    words = Words()
    words.feed(text)
    return " ".join(words.found.split())


def test_a_chapter_tells_all_that_it_holds(groups):
    chapter = Chapter(
        [_figure("n")], [TABLE], [Picture(_png(), "a picture")], [VERDICT], groups[0].runs,
        ["er-5k-seed1"], "a remark",
    )  # fmt: skip
    section = chapter_section(HEADING, chapter)
    assert (section.title, section.name) == ("Replay", "fig4")
    told = _visible(section.body)
    for words in (
        *("Figure 4 Replay forgets.", "better DCL keeps 95 %", "published0.95ours0.97why"),
        *("caption of n", "a picture", "Cells", "a note", "a remark", "no rows yet: er-5k-seed1"),
        *("Cost: 1 h", "everlearn reproduce fig4", "1 run", "dcl, seed 0"),
    ):
        assert words in told, words


def test_a_chapter_tells_of_its_runs_only(groups):
    first, second = groups[0].runs[0], groups[1].runs[0]
    body = chapter_section(HEADING, Chapter(runs=[first])).body
    assert str(first.folder) in body
    assert str(second.folder) not in body


def test_an_empty_chapter_is_a_claim_and_a_command():
    told = _visible(chapter_section(HEADING, Chapter()).body)
    assert told == "Figure 4 Replay forgets. Cost: 1 h everlearn reproduce fig4"


def test_the_book_has_a_file_for_each_use(book):
    page = book(
        (HEADING, Chapter([_figure("one"), _figure("two")], [TABLE], (), [VERDICT])),
        (HEADING._replace(name="memory", title="Memory"), Chapter([_figure("three")])),
    )
    names = {path.relative_to(page.parent).as_posix() for path in page.parent.rglob("*.*")}
    figures = {f"figures/{name}.svg" for name in ("fig4-1", "fig4-2", "memory")}
    assert names == figures | {"index.html", "tables.md", "tables.tex"}


def test_tables_of_the_book_are_markdown_and_latex(book):
    folder = book((HEADING, Chapter(tables=[TABLE], verdicts=[VERDICT]))).parent
    for name, start in (("tables.md", "### "), ("tables.tex", "% ")):
        lines = (folder / name).read_text().splitlines()
        titles = [line.removeprefix(start) for line in lines if line.startswith(start)]
        assert titles == ["Summary", "Verdicts", "Replay: Cells"]


def test_links_lead_to_chapters(book):
    text = book((HEADING, Chapter(verdicts=[VERDICT])), (HEADING._replace(name="b"), Chapter()))
    ids = re.findall(r'\bid="([^"]+)"', text.read_text())
    links = re.findall(r'<a href="#([^"]+)"', text.read_text())
    assert links == ["fig4", "fig4", "b"]
    assert len(ids) == len(set(ids))
    assert set(links) <= set(ids)


def test_the_book_sums_up_the_runs_that_were_tested(book):
    told = _visible(book().read_text())
    assert "Introduction." in told
    assert "average accuracy" in told
    assert "dcl, seed 0" in told
    assert "ewc" not in told


def test_many_heat_maps_are_folded_up(write_run, book, tmp_path):
    assert "maps</summary>" not in book().read_text()
    for name in ("gem", "agem", "lwf"):
        write_run(f"runs/{name}", name)
    many = group_runs(load_runs(tmp_path / "runs"))
    assert "<summary>5 maps</summary>" in book(some=many).read_text()


def test_a_book_without_runs_is_a_book(book):
    assert "Replay" in book((HEADING, Chapter(missing=["a-seed0"])), some=[]).read_text()


def test_the_same_book_has_the_same_bytes(book):
    chapters = (HEADING, Chapter([_figure("one")], [TABLE], (), [VERDICT]))
    assert book(chapters).read_bytes() == book(chapters).read_bytes()


def test_chapters_of_one_name_are_refused(book):
    with pytest.raises(ValueError, match="different names, found twice: fig4"):
        book((HEADING, Chapter()), (HEADING, Chapter()))


def test_words_of_chapters_stay_text(book):
    evil = "<script>alert(1)</script>"
    verdict = Verdict(evil, evil, evil, "equal", evil)
    table = Table(evil, [evil, evil], [[evil, evil]], evil)
    chapter = Chapter((), [table], (), [verdict], (), [evil], evil)
    text = book((Heading(evil, evil, evil, evil, evil, evil), chapter)).read_text()
    assert "<script>alert" not in text


@pytest.mark.parametrize("name", VERDICTS)
def test_a_verdict_is_told_in_words(name):
    body = chapter_section(HEADING, Chapter(verdicts=[VERDICT._replace(verdict=name)])).body
    assert f">{name}</span>" in body
    assert check_verdict(VERDICT._replace(verdict=name)).verdict == name


def test_wrong_verdicts_are_refused():
    assert check_verdict(VERDICT) is VERDICT
    with pytest.raises(ValueError, match="unknown verdict 'good'; known: better, equal, worse"):
        check_verdict(VERDICT._replace(verdict="good"))
    with pytest.raises(ValueError, match="needs the statement"):
        check_verdict(VERDICT._replace(statement=""))
