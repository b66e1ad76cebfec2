"""The report of runs: self-contained, deterministic, and safe against text from files."""

from __future__ import annotations

import builtins
import io
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image

from everlearn.report import Page, Section, write_comparison, write_page
from everlearn.report.charts.curves import draw_curves, draw_probes
from everlearn.report.charts.heat_map import draw_heat_map
from everlearn.report.tables.groups import group_runs
from everlearn.runs.load import load_runs

pytestmark = pytest.mark.integration

pytest.importorskip("matplotlib")

HOSTILE = "<script>alert(1)</script>\"'&$x$_|</svg>"
PROBES = [
    {"kind": "probe", "step": s, "learned": 0, "tested": 0, "correct": s, "total": 10}
    for s in range(6)
]


class Elements(HTMLParser):
    """All tags with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def _png() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (2, 2)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture
def some_runs(write_run, tmp_path):
    for seed in (0, 1, 2):
        write_run(f"runs/a{seed}", seed=seed, more=PROBES)
    write_run("runs/b", "joint", more=PROBES)
    return tmp_path / "runs"


def test_page_figures_and_tables_are_written(some_runs, tmp_path):
    page = write_comparison(load_runs(some_runs), tmp_path / "out")
    assert page == tmp_path / "out" / "index.html"
    assert {path.name for path in page.parent.iterdir()} == {
        "index.html",
        "curves.svg",
        "curves.png",
        "table.md",
        "table.tex",
    }
    assert Image.open(page.parent / "curves.png").width == 2 * 920


def test_the_page_loads_nothing_from_elsewhere(some_runs, tmp_path):
    text = write_comparison(
        load_runs(some_runs), tmp_path / "out", pictures={"P": ("c", _png())}
    ).read_text()
    for tag, attributes in Elements(text).found:
        assert tag not in ("link", "iframe", "object", "embed", "base")
        for name in ("src", "href", "xlink:href", "srcset", "action", "poster"):
            value = attributes.get(name) or "#"
            assert value.startswith(("#", "data:image/")), (tag, value)
    assert all(link.startswith("#") for link in re.findall(r"url\(([^)]*)\)", text))
    assert "@import" not in text
    assert "default-src 'none'" in text


def test_every_reference_in_a_figure_has_one_target(some_runs, tmp_path):
    text = write_comparison(load_runs(some_runs), tmp_path / "out").read_text()
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', text)) <= set(ids)


@pytest.mark.parametrize("draw", ["curves", "probes", "heat"])
def test_figures_with_hostile_names_are_valid_xml(write_run, draw):
    groups = group_runs(load_runs(write_run("a", HOSTILE + "\x00", more=PROBES)))
    figures = {
        "curves": lambda: draw_curves(groups).wide,
        "probes": lambda: draw_probes(groups),
        "heat": lambda: draw_heat_map(groups[0].runs[0].rows, "h"),
    }
    root = ElementTree.fromstring(figures[draw]())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.findall(".//{http://www.w3.org/2000/svg}script") == []


def test_names_from_files_are_escaped(write_run, tmp_path):
    folder = write_run("a", HOSTILE, settings={HOSTILE: HOSTILE}, more=PROBES)
    page = write_comparison(
        load_runs([folder]), tmp_path / "out", HOSTILE, {HOSTILE: (HOSTILE, _png())}, HOSTILE
    )
    text = page.read_text()
    assert [tag for tag, _ in Elements(text).found].count("script") == 1
    assert "alert(1)</script>" not in text
    assert "<script>" not in (page.parent / "table.md").read_text()


def test_the_same_runs_make_the_same_bytes(some_runs, tmp_path):
    folders = [
        write_comparison(load_runs(some_runs), tmp_path / name, command="x").parent
        for name in ("one", "two")
    ]
    for name in ("index.html", "curves.svg", "curves.png", "table.md", "table.tex"):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()


def test_global_matplotlib_settings_are_restored(some_runs, tmp_path):
    import matplotlib

    with matplotlib.rc_context({"font.size": 77, "axes.grid": False}):
        before = dict(matplotlib.rcParams)
        write_comparison(load_runs(some_runs), tmp_path / "out")
        assert dict(matplotlib.rcParams) == before


def test_figures_ignore_global_matplotlib_settings(some_runs):
    import matplotlib

    groups = group_runs(load_runs(some_runs))
    usual = draw_curves(groups)
    with matplotlib.rc_context({"lines.markeredgewidth": 9, "axes.xmargin": 0.4, "font.size": 3}):
        matplotlib.rcParams["savefig.transparent"] = True
        assert draw_curves(groups) == usual


def test_colours_follow_light_and_dark(some_runs):
    svg = draw_curves(group_runs(load_runs(some_runs))).wide
    assert "prefers-color-scheme: dark" in svg
    body = svg.split("</style>", 1)[1]
    assert re.findall(r"(?:fill|stroke): #", body) == []


def test_the_provenance_of_each_run_is_shown(some_runs, tmp_path):
    run = load_runs(some_runs)[0]
    text = write_comparison(load_runs(some_runs), tmp_path / "out").read_text()
    assert text.partition('<section id="runs">')[2].count("<details>") == 4
    assert run.sessions[0]["date"] in text
    assert run.sessions[0]["platform"] in text
    assert f"numpy {run.sessions[0]['numpy']}" in text


def test_commands_can_be_copied(some_runs, tmp_path):
    out = tmp_path / "my out"
    text = write_comparison(load_runs(some_runs), out).read_text()
    folders = " ".join(str(some_runs / name) for name in ("a0", "a1", "a2", "b"))
    assert f"<code>everlearn report {folders} --out &#39;{out}&#39;</code>" in text


def test_runs_without_tests_are_named_and_left_out(write_run, tmp_path):
    write_run("runs/a")
    write_run("runs/b", "joint", matrix=[], finish=False)
    page = write_comparison(load_runs(tmp_path / "runs"), tmp_path / "out")
    assert "not tested yet: joint (0 of 3 tasks), seed 0" in page.read_text()
    assert "joint" not in (page.parent / "table.md").read_text()


def test_unfinished_runs_are_named(write_run, tmp_path):
    folder = write_run("a", matrix=[[9]], finish=False)
    text = write_comparison(load_runs(folder), tmp_path / "out").read_text()
    assert "Unfinished, so not comparable with the others: dcl (1 of 3 tasks), seed 0" in text


def test_runs_on_the_beginning_of_a_stream_are_named(write_run, tmp_path):
    write_run("runs/a", tasks=9, scenario={"name": "class"})
    text = write_comparison(load_runs(tmp_path / "runs"), tmp_path / "out").read_text()
    assert "a stream of 9 tasks." in text
    assert "All runs learned this stream" in text
    write_run("runs/b", "er", tasks=3, scenario={"name": "class"})
    text = write_comparison(load_runs(tmp_path / "runs"), tmp_path / "out").read_text()
    assert "a stream of 9 tasks; some runs learned only its first 3." in text
    assert "Some runs learned the beginning" in text


def test_nothing_tested_yet_says_what_to_do(write_run, tmp_path):
    folder = write_run("a", matrix=[], finish=False)
    with pytest.raises(ValueError, match=rf"no run was tested.*everlearn resume {folder}"):
        write_comparison(load_runs(folder), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_pictures_of_unknown_formats_are_refused(some_runs, tmp_path):
    with pytest.raises(ValueError, match="must be PNG, JPEG or GIF"):
        write_comparison(load_runs(some_runs), tmp_path / "out", pictures={"P": ("c", b"<svg>")})


def test_missing_matplotlib_names_the_extra(some_runs, tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'everlearn\[plot\]'"):
        write_comparison(load_runs(some_runs), tmp_path / "out")


def test_there_is_no_probe_figure_without_probe_rows(write_run):
    assert draw_probes(group_runs(load_runs(write_run("a")))) is None


def test_a_heat_map_without_test_rows_is_refused():
    with pytest.raises(ValueError, match="no test row was found"):
        draw_heat_map([], "h")


def test_a_page_escapes_text_and_keeps_html(tmp_path: Path):
    section = Section("T <", "t", "w >", "<b>kept</b>", "ls <x>")
    text = write_page(tmp_path / "p.html", Page("A & B", "", "", None, [section])).read_text()
    assert "<title>A &amp; B</title>" in text
    assert "<h2>T &lt;</h2>\n<p>w &gt;</p>\n<b>kept</b>" in text
    assert "<code>ls &lt;x&gt;</code>" in text


def test_tasks_of_a_heat_map_count_from_one(write_run):
    svg = draw_heat_map(load_runs(write_run("a"))[0].rows, "h")
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert labels.count("1") == labels.count("2") == labels.count("3") == 2
