"""`everlearn reproduce`: what it lists, makes and refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from everlearn.experiments import EXPERIMENTS

from ..conftest import call

pytestmark = pytest.mark.integration

pytest.importorskip("matplotlib")

TINY = ("--scale", "tiny", "--device", "cpu")


def complaint(*arguments: object) -> str:
    """The last line of a command that was refused."""
    code, out, errors = call(*arguments)
    assert (code, out) == (2, "")
    last = errors.splitlines()[-1]
    assert last.startswith("error: ")
    return last


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_without_a_name_all_are_listed_with_what_they_cost(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    code, out, _ = call("reproduce")
    assert code == 0
    lines = out.splitlines()
    for name, experiment in EXPERIMENTS.items():
        (line,) = [line for line in lines if name in line.replace("│", " ").split()[:1]]
        assert experiment.TITLE in line
        assert experiment.COST["small"] in line
        assert experiment.COST["paper"] in line


def test_an_experiment_leaves_rows_a_page_and_its_scale(tmp_path):
    code, out, errors = call("reproduce", "fig2", *TINY, "--out", tmp_path)
    assert code == 0
    assert "[1 of 1] fig2: Shapes and factors" in errors
    page = tmp_path / "tiny" / "report-fig2" / "index.html"
    assert str(page) in out.replace("\n", "") + errors
    assert "<code>everlearn reproduce fig2 --scale tiny</code>" in page.read_text()
    assert json.loads((tmp_path / "tiny" / "reproduce.json").read_text()) == {"scale": "tiny"}
    assert (tmp_path / "tiny" / "parts" / "fig2-shapes.jsonl").exists()


def test_only_some_parts_are_made_and_nothing_is_drawn(tmp_path):
    only = "fig6-random, fig6-pixels"
    code, *_ = call("reproduce", "fig6", *TINY, "--out", tmp_path, "--only", only)
    assert code == 0
    parts = {"parts/fig6-random.jsonl", "parts/fig6-pixels.jsonl"}
    assert names(tmp_path / "tiny") == {"reproduce.json", *parts}


@pytest.mark.parametrize(
    ("only", "told"),
    [
        ("fig2-shapes,fig2-shape", "names 'fig2-shape', which"),
        ("fig2-shapes,", "names '', which"),
        ("er-50-seed0", "names 'er-50-seed0', which"),  # of another experiment
    ],
)
def test_only_what_there_is_can_be_asked_for(tmp_path, only, told):
    out = tmp_path / "out"
    assert told in complaint("reproduce", "fig2", *TINY, "--out", out, "--only", only)
    assert not out.exists()


def test_the_page_of_a_folder_takes_a_title(tmp_path):
    (tmp_path / "reproduce.json").write_text('{"scale": "tiny"}')
    code, _, errors = call("report", tmp_path, "--out", tmp_path / "page", "--title", "Mine & all")
    assert code == 0, errors
    assert "<title>Mine &amp; all</title>" in (tmp_path / "page" / "index.html").read_text()


def test_an_unknown_experiment_is_answered_with_the_known_ones(tmp_path):
    line = complaint("reproduce", "fig99", *TINY, "--out", tmp_path / "out")
    assert "unknown experiment 'fig99'; known: all, " in line
    assert all(name in line for name in EXPERIMENTS)
    assert not (tmp_path / "out").exists()


def test_an_unknown_scale_is_answered_with_the_known_ones(tmp_path):
    line = complaint("reproduce", "fig2", "--scale", "huge", "--out", tmp_path / "out")
    assert "unknown scale 'huge'; known: tiny, small, paper" in line
    assert not (tmp_path / "out").exists()


def test_an_unknown_device_is_refused_before_anything_is_made(tmp_path):
    complaint("reproduce", "fig2", "--scale", "tiny", "--device", "tpu", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out").write_text("mine")
    assert "out" in complaint("reproduce", "fig2", *TINY, "--out", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "mine"


def test_a_folder_of_data_that_is_not_there_is_told(tmp_path):
    only = ("--only", "l2p-lite-seed0")
    nowhere = tmp_path / "nowhere"
    line = complaint("reproduce", "fig5", *TINY, "--out", tmp_path, *only, "--data", nowhere)
    assert str(nowhere) in line
    assert names(tmp_path / "tiny") == {"reproduce.json"}


def test_a_run_that_is_asked_for_needs_its_data(tmp_path, monkeypatch):
    monkeypatch.delenv("EVERLEARN_DATA", raising=False)
    only = ("--only", "l2p-lite-seed0")
    assert "no data folder" in complaint("reproduce", "fig5", *TINY, "--out", tmp_path, *only)
    assert names(tmp_path / "tiny") == {"reproduce.json"}


def test_nothing_is_pretrained_for_a_run_that_is_finished(tmp_path):
    done = tmp_path / "tiny" / "l2p-lite-seed0" / "done.json"
    done.parent.mkdir(parents=True)
    done.write_text("{}")
    only = ("--only", "l2p-lite-seed0", "--data", tmp_path / "nowhere")
    assert call("reproduce", "fig5", *TINY, "--out", tmp_path, *only)[0] == 0


def test_missing_matplotlib_is_told_before_hours_are_spent(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["everlearn.cli.report"], "find_spec", lambda name: None)
    assert "matplotlib, which is missing" in complaint(
        "reproduce", "fig2", *TINY, "--out", tmp_path / "out"
    )
    assert not (tmp_path / "out").exists()


def test_what_is_missing_is_printed_and_can_be_made(tmp_path):
    command = ("reproduce", "fig10", *TINY, "--out", tmp_path)
    code, out, _ = call(*command, "--missing")
    assert (code, out.split()) == (0, ["dcl-plus-seed10", "fig10-mistakes"])
    assert names(tmp_path) == set()
    assert call(*command, "--only", out.split()[0]).code == 0
    assert call(*command, "--missing").out.split() == ["fig10-mistakes"]


def test_long_runs_are_named_before_short_ones(tmp_path):
    _, out, _ = call("reproduce", "overview", "--scale", "paper", "--out", tmp_path, "--missing")
    found = out.split()
    assert len(found) == len(set(found))
    assert (
        found.index("er-5k-seed10") < found.index("joint-seed10") < len(found)
    )  # 500 and 200 tasks
