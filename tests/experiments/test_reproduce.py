"""`everlearn reproduce all`, whole, at the smallest scale: what it makes, and what a stop does to it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from time import process_time

import pytest

from everlearn.experiments import EXPERIMENTS, fig4_replay
from everlearn.experiments.found import Found
from everlearn.experiments.trial import SMALL
from everlearn.stream.arrays.files import data_folder

pytest.importorskip("matplotlib")
# The limit also puts the file at the beginning of a worker's tests, beside which others are short.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(280)]

TINY = ("--scale", "tiny", "--device", "cpu")
BESIDE = Path(__file__).parents[3] / "shared" / "data"
QUICK = 15  # seconds of one core: drawing, mostly


def page_of(folder: Path) -> str:
    return (folder / "index.html").read_text()


def chapters(page: str) -> dict[str, str]:
    """The HTML of every part of a page that has a name."""
    parts = re.split(r'<h2 id="([^"]+)">', page)
    return {
        name: re.split("<h2[ >]", body)[0]
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }


def kept(folder: Path) -> dict[str, bytes]:
    """Everything but the pages."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    names = {str(path.relative_to(folder)): path for path in paths}
    return {name: path.read_bytes() for name, path in names.items() if name[:6] != "report"}


def rows_of(folder: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in folder.glob("*/rows.jsonl")}


def test_there_is_a_chapter_an_experiment_with_something_to_see(reproduced):
    found = chapters(page_of(reproduced / "report"))
    assert list(found) == list(EXPERIMENTS)
    for name, body in found.items():
        assert "<figure" in body or "<table" in body, name


def test_every_chapter_has_the_command_that_makes_it(reproduced):
    page = page_of(reproduced / "report")
    assert "<code>everlearn reproduce all --scale tiny</code>" in page
    for name, body in chapters(page).items():
        assert f"<code>everlearn reproduce {name} --scale tiny</code>" in body


def test_nothing_of_this_scale_is_compared_with_the_paper(reproduced):
    badges = re.findall(r'<span class="badge [^"]*">([^<]*)</span>', page_of(reproduced / "report"))
    assert len(badges) >= 2 * len(EXPERIMENTS)  # in the table of all and in the chapters
    assert set(badges) == {"not comparable"}


def test_all_that_was_missing_is_made_but_what_needs_data(reproduced, tmp_path):
    before, after = Found(tmp_path, "tiny"), Found(reproduced, "tiny")
    lacked = {name for module in EXPERIMENTS.values() for name in module.figure(before).missing}
    lacks = {name for module in EXPERIMENTS.values() for name in module.figure(after).missing}
    parts = {path.stem for path in (reproduced / "parts").iterdir()}
    assert lacks == {"l2p-lite-seed0"}
    assert lacked - lacks <= set(rows_of(reproduced)) | parts
    assert parts <= lacked


def test_what_is_missing_for_want_of_data_is_told(reproduced):
    body = chapters(page_of(reproduced / "report"))["fig5"]
    assert "no rows yet: l2p-lite-seed0" in body
    assert "give --data" in body
    assert "L2P-lite" not in "".join(re.findall(r"<svg.*?</svg>", body, re.DOTALL))


def test_no_file_holds_a_number_that_is_none(reproduced):
    def refuse(word: str) -> None:
        raise AssertionError(word)

    paths = [path for path in reproduced.rglob("*") if path.is_file()]
    for path in paths:
        if path.suffix == ".json":
            json.loads(path.read_text(), parse_constant=refuse)
        elif path.suffix == ".jsonl":
            for line in path.read_text().splitlines():
                json.loads(line, parse_constant=refuse)
        elif path.suffix in (".html", ".svg", ".md", ".tex"):
            text = re.sub("base64,[^\"']*", "", path.read_text())
            assert not re.search(r"\bnan\b", text, re.IGNORECASE), path


def test_all_on_disk_is_text_but_checkpoints_and_pictures(reproduced):
    for path in reproduced.rglob("*"):
        if path.is_file() and path.name != "checkpoint.npz" and path.suffix != ".png":
            assert "\0" not in path.read_text("utf-8"), path


def test_a_second_call_learns_nothing_and_is_quick(reproduced, tmp_path, command, monkeypatch):
    monkeypatch.delenv("EVERLEARN_DATA", raising=False)
    shutil.copytree(reproduced, tmp_path / "tiny")
    before, began = kept(tmp_path / "tiny"), process_time()
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.jsonl")}
    told = command("reproduce", "all", *TINY, "--out", tmp_path)
    assert told.code == 0
    assert process_time() - began < QUICK
    assert "task 1 of" not in told.errors
    assert kept(tmp_path / "tiny") == before
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.jsonl")} == times


def test_a_report_of_the_folder_is_the_same_page(reproduced, tmp_path, command):
    told = command("report", reproduced, "--out", tmp_path)
    assert told.code == 0, told.errors
    assert str(tmp_path / "index.html") in told.out + told.errors
    for name in ("index.html", "tables.md", "tables.tex"):
        assert (tmp_path / name).read_bytes() == (reproduced / "report" / name).read_bytes()


def test_with_data_there_is_a_line_of_l2p(reproduced, tmp_path, command):
    try:
        data = data_folder(os.environ.get("EVERLEARN_DATA") or BESIDE)
    except FileNotFoundError as error:
        pytest.skip(f"needs MNIST and Fashion-MNIST: {error}")
    for name in ("dcl-plus-seed0", "fine-tuning-seed0"):
        shutil.copytree(reproduced / name, tmp_path / "tiny" / name)
    told = command("reproduce", "fig5", *TINY, "--out", tmp_path, "--data", data)
    assert told.code == 0, told.errors
    assert sorted(rows_of(tmp_path / "tiny")) == [
        "dcl-plus-seed0",
        "fine-tuning-seed0",
        "l2p-lite-seed0",
    ]
    body = chapters(page_of(tmp_path / "tiny" / "report-fig5"))["fig5"]
    assert "no rows yet" not in body
    assert "L2P-lite" in "".join(re.findall(r"<svg.*?</svg>", body, re.DOTALL))


def test_a_figure_killed_in_the_middle_ends_in_the_same_rows(reproduced, tmp_path, command):
    # Two runs are finished, the third is being learned, and others are not begun.
    first, second, third, *others = (
        trial.folder(0) for trial in fig4_replay.SETTINGS[SMALL].trials
    )
    shutil.copytree(reproduced / first, tmp_path / "tiny" / first)
    words = ["reproduce", "fig4", *TINY, "--out", str(tmp_path)]
    line = [sys.executable, "-m", "everlearn", *words]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as going:
        assert going.stderr is not None
        assert any(f"{third}: task 1 of" in said for said in going.stderr)
        going.send_signal(signal.SIGKILL)
    assert going.returncode == -signal.SIGKILL
    begun = set(rows_of(tmp_path / "tiny"))
    assert begun >= {first, second, third}
    assert others[-1] not in begun
    assert command(*words).code == 0
    ended, unbroken = rows_of(tmp_path / "tiny"), rows_of(reproduced)
    assert set(ended) == {first, second, third, *others}
    assert ended == {name: unbroken[name] for name in ended}
    assert (tmp_path / "tiny" / "report-fig4" / "index.html").exists()
