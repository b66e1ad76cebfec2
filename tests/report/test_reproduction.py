"""The report of all experiments: everything is in it, linked, and its provenance is shown."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image

from everlearn.report import (
    VERDICTS,
    Bar,
    ExperimentInfo,
    ExperimentResult,
    Figure,
    Finding,
    Lead,
    Picture,
    Reproduction,
    Table,
    Verdict,
    check_verdict,
    draw_bars,
    experiment_section,
    group_runs,
    write_report,
)
from everlearn.runs.load import load_runs

pytestmark = pytest.mark.integration

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

INFO = ExperimentInfo(
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
def write(groups, tmp_path):
    def write_page(*experiments, shown=groups, lead=None) -> Path:
        content = Reproduction("The report", "Introduction.", "make it", shown, experiments, lead)
        return write_report(tmp_path / "out", content)

    return write_page


def _visible(html: str) -> str:
    class Text(HTMLParser):
        found = ""

        def handle_data(self, data: str) -> None:
            self.found += data

    text = Text()
    text.feed(html)
    return " ".join(text.found.split())


def test_a_section_shows_all_results_of_its_experiment(groups):
    result = ExperimentResult(
        [_figure("n")], [TABLE], [Picture(_png(), "a picture")], [VERDICT], groups[0].runs,
        ["er-5k-seed1"], "a remark",
    )  # fmt: skip
    section = experiment_section(INFO, result)
    assert (section.title, section.anchor) == ("Replay", "fig4")
    assert section.command == "everlearn reproduce fig4"
    shown = _visible(section.html)
    for text in (
        *("Figure 4 Replay forgets.", "better DCL keeps 95 %", "published0.95ours0.97why"),
        *("caption of n", "a picture", "Cells", "a note", "a remark", "no rows yet: er-5k-seed1"),
        *("Time to reproduce: 1 h", "1 run", "dcl, seed 0"),
    ):
        assert text in shown, text


def test_figures_come_before_tables():
    html = experiment_section(INFO, ExperimentResult([_figure("n")], [TABLE])).html
    assert html.index("caption of n") < html.index("<table")


def test_verdicts_are_folded_into_counts():
    verdicts = [VERDICT, VERDICT, VERDICT._replace(verdict="worse")]
    html = experiment_section(INFO, ExperimentResult(verdicts=verdicts)).html
    summary = re.search(r"<summary>(.*?)</summary>", html, re.DOTALL)
    assert summary
    assert _visible(summary[1]) == "Verdicts: 2 better 1 worse"


def test_a_section_shows_the_provenance_of_its_own_runs_only(groups):
    first, second = groups[0].runs[0], groups[1].runs[0]
    html = experiment_section(INFO, ExperimentResult(runs=[first])).html
    assert str(first.folder) in html
    assert str(second.folder) not in html


def test_an_experiment_without_results_shows_its_claim_and_cost():
    shown = _visible(experiment_section(INFO, ExperimentResult()).html)
    assert shown == "Figure 4 Replay forgets. Time to reproduce: 1 h"


def test_the_page_opens_with_the_main_figure_and_the_findings(write):
    lead = Lead("<svg>wide</svg>", "<svg>narrow</svg>", "c <", [Finding("0.999", "DCL+ <keeps>")])
    text = write(lead=lead).read_text()
    assert "c &lt;" in text
    assert "<strong>0.999</strong> DCL+ &lt;keeps&gt;" in text
    order = [text.index(part) for part in ("<svg>wide", "<svg>narrow", "0.999", "<section")]
    assert order == sorted(order)


def test_the_report_has_a_file_for_each_use(write):
    page = write(
        (INFO, ExperimentResult([_figure("one"), _figure("two")], [TABLE], (), [VERDICT])),
        (INFO._replace(name="memory", title="Memory"), ExperimentResult([_figure("three")])),
    )
    names = {path.relative_to(page.parent).as_posix() for path in page.parent.rglob("*.*")}
    figures = {f"figures/{name}.svg" for name in ("fig4-1", "fig4-2", "memory")}
    assert names == figures | {"index.html", "tables.md", "tables.tex"}


def test_tables_are_written_as_markdown_and_latex(write):
    folder = write((INFO, ExperimentResult(tables=[TABLE], verdicts=[VERDICT]))).parent
    for name, start in (("tables.md", "### "), ("tables.tex", "% ")):
        lines = (folder / name).read_text().splitlines()
        titles = [line.removeprefix(start) for line in lines if line.startswith(start)]
        assert titles == ["Summary", "Verdicts", "Replay: Cells"]


def test_the_contents_link_to_every_section(write):
    text = write(
        (INFO, ExperimentResult(verdicts=[VERDICT])), (INFO._replace(name="b"), ExperimentResult())
    ).read_text()
    ids = re.findall(r'\bid="([^"]+)"', text)
    contents = text.partition("<nav")[2].partition("</nav>")[0]
    links = re.findall(r'<a href="#([^"]+)"', contents)
    assert links == ["summary", "verdicts", "fig4", "b", "task-by-task", "runs"]
    assert links == re.findall(r'<section id="([^"]+)"', text)
    assert len(ids) == len(set(ids))


def test_experiments_stand_below_the_heading_of_their_group(write):
    info = INFO._replace(group="A paper")
    text = write(
        (info, ExperimentResult()), (info._replace(name="b"), ExperimentResult())
    ).read_text()
    contents = text.partition("<nav")[2].partition("</nav>")[0]
    assert re.findall("<p>(.*?)</p>", contents) == ["Overview", "A paper", "Details"]
    assert contents.count("<ul>") == contents.count("</ul>") == 3


def test_the_summary_leaves_out_runs_without_tests(write):
    shown = _visible(write().read_text())
    assert "Introduction." in shown
    assert "average accuracy" in shown
    assert "dcl, seed 0" in shown
    assert "ewc" not in shown


def test_many_heat_maps_are_folded(write_run, write, tmp_path):
    assert "maps</summary>" not in write().read_text()
    for name in ("gem", "agem", "lwf"):
        write_run(f"runs/{name}", name)
    many = group_runs(load_runs(tmp_path / "runs"))
    assert "<summary>5 maps</summary>" in write(shown=many).read_text()


def test_a_report_without_runs_still_has_its_experiments(write):
    assert "Replay" in write((INFO, ExperimentResult(missing=["a-seed0"])), shown=[]).read_text()


def test_the_same_content_gives_the_same_bytes(write):
    experiment = (INFO, ExperimentResult([_figure("one")], [TABLE], (), [VERDICT]))
    assert write(experiment).read_bytes() == write(experiment).read_bytes()


def test_two_experiments_of_one_name_are_refused(write):
    with pytest.raises(ValueError, match="different names, found twice: fig4"):
        write((INFO, ExperimentResult()), (INFO, ExperimentResult()))


def test_text_of_experiments_is_escaped(write):
    evil = "<script>alert(1)</script>"
    verdict = Verdict(evil, evil, evil, "equal", evil)
    table = Table(evil, [evil, evil], [[evil, evil]], evil)
    result = ExperimentResult((), [table], (), [verdict], (), [evil], evil)
    info = ExperimentInfo(evil, evil, evil, evil, evil, evil, evil)
    assert "<script>alert" not in write((info, result)).read_text()


@pytest.mark.parametrize("name", VERDICTS)
def test_a_verdict_is_shown_as_a_word(name):
    html = experiment_section(
        INFO, ExperimentResult(verdicts=[VERDICT._replace(verdict=name)])
    ).html
    assert f">{name}</span>" in html
    assert check_verdict(VERDICT._replace(verdict=name)).verdict == name


def test_invalid_verdicts_are_refused():
    assert check_verdict(VERDICT) is VERDICT
    with pytest.raises(ValueError, match="unknown verdict 'good'; known: better, equal, worse"):
        check_verdict(VERDICT._replace(verdict="good"))
    with pytest.raises(ValueError, match="needs the statement"):
        check_verdict(VERDICT._replace(statement=""))
