"""`everlearn reproduce all` at the smallest scale: its files and report, and a kill in the middle."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from time import process_time

import pytest

from everlearn.experiments import EXPERIMENTS
from everlearn.experiments.dcl import fig4_replay
from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.shared_trials import SEEDS
from everlearn.experiments.framework.trial import SMALL

from ..conftest import data_file

pytest.importorskip("matplotlib")
# The limit also puts the file at the beginning of a worker's tests, beside which others are short.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(280)]

TINY = ("--scale", "tiny", "--device", "cpu")
QUICK = 15  # seconds of one core: drawing, mostly


def page_of(folder: Path) -> str:
    return (folder / "index.html").read_text()


def sections(page: str) -> dict[str, str]:
    """Return the HTML of the sections of all experiments, by name."""
    parts = re.split(r'<section id="([^"]+)">', page)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    return {name: html for name, html in found.items() if name in EXPERIMENTS}


def kept(folder: Path) -> dict[str, bytes]:
    """Everything but the pages."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    names = {str(path.relative_to(folder)): path for path in paths}
    return {name: path.read_bytes() for name, path in names.items() if name[:6] != "report"}


def rows_of(folder: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in folder.glob("*/rows.jsonl")}


def test_every_experiment_has_a_section_with_a_figure_or_table(reproduced):
    found = sections(page_of(reproduced / "report"))
    assert list(found) == list(EXPERIMENTS)
    for name, body in found.items():
        assert "<figure" in body or "<table" in body, name


def test_notes_say_nothing_of_the_runs_of_scale_paper(reproduced):
    page = page_of(reproduced / "report")
    for text in ("older code", "shared the GPU", "shared one GPU", "nothing but background"):
        assert text not in page


@pytest.mark.parametrize("name", ["dcl-ablations-ceiling", "paper-exact-ceiling", "separability"])
def test_a_measurement_of_a_stream_names_its_seed(reproduced, name):
    path = reproduced / "parts" / f"{name}.jsonl"
    origin, *rows = map(json.loads, path.read_text().splitlines())
    seeds = origin["settings"].get("seeds", [origin["settings"].get("seed")])
    assert seeds == [SEEDS[0]]
    assert {row.get("seed", SEEDS[0]) for row in rows} == set(seeds)


def test_every_section_has_the_command_that_reproduces_it(reproduced):
    page = page_of(reproduced / "report")
    assert "<code>everlearn reproduce all --scale tiny</code>" in page
    for name, body in sections(page).items():
        assert f"<code>everlearn reproduce {name} --scale tiny</code>" in body


def test_verdicts_at_scale_tiny_are_not_comparable(reproduced):
    badges = re.findall(r'<span class="badge [^"]*">([^<]*)</span>', page_of(reproduced / "report"))
    assert len(badges) >= 2 * len(EXPERIMENTS)  # in the table of all and in the sections
    assert set(badges) == {"not comparable"}


def test_everything_missing_is_made_except_what_needs_data(reproduced, tmp_path):
    before = ResultsFolder(tmp_path, "tiny")
    after = ResultsFolder(reproduced, "tiny")
    lacked = {name for module in EXPERIMENTS.values() for name in module.figure(before).missing}
    lacks = {name for module in EXPERIMENTS.values() for name in module.figure(after).missing}
    parts = {path.stem for path in (reproduced / "parts").iterdir()}
    assert lacks == {"l2p-lite-seed0"}
    assert lacked - lacks <= set(rows_of(reproduced)) | parts
    assert parts <= lacked


def test_runs_missing_for_lack_of_data_are_reported(reproduced):
    body = sections(page_of(reproduced / "report"))["fig5"]
    assert "no rows yet: l2p-lite-seed0" in body
    assert "give --data" in body
    assert "L2P-lite" not in "".join(re.findall(r"<svg.*?</svg>", body, re.DOTALL))


def test_no_file_holds_nan(reproduced):
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


def test_all_files_are_text_except_checkpoints_and_pictures(reproduced):
    for path in reproduced.rglob("*"):
        if path.is_file() and path.name != "checkpoint.npz" and path.suffix != ".png":
            assert "\0" not in path.read_text("utf-8"), path


def test_a_second_call_trains_nothing_and_is_quick(reproduced, tmp_path, command, monkeypatch):
    monkeypatch.delenv("EVERLEARN_DATA", raising=False)
    shutil.copytree(reproduced, tmp_path / "tiny")
    before = kept(tmp_path / "tiny")
    began = process_time()
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


def test_with_data_l2p_is_drawn(reproduced, tmp_path, command):
    data = data_file("MNIST").parent
    for name in ("dcl-plus-seed10", "fine-tuning-seed13"):
        shutil.copytree(reproduced / name, tmp_path / "tiny" / name)
    told = command("reproduce", "fig5", *TINY, "--out", tmp_path, "--data", data)
    assert told.code == 0, told.errors
    assert sorted(rows_of(tmp_path / "tiny")) == [
        "dcl-plus-seed10",
        "fine-tuning-seed13",
        "l2p-lite-seed0",
    ]
    body = sections(page_of(tmp_path / "tiny" / "report-fig5"))["fig5"]
    assert "no rows yet" not in body
    assert "L2P-lite" in "".join(re.findall(r"<svg.*?</svg>", body, re.DOTALL))


def test_a_killed_reproduction_resumes_to_the_same_rows(reproduced, tmp_path, command):
    # Two runs are finished, the third is being learned, and others are not begun.
    first, second, third, *others = (
        trial.folder(trial.seeds[0]) for trial in fig4_replay.SETTINGS[SMALL].trials
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
    ended = rows_of(tmp_path / "tiny")
    unbroken = rows_of(reproduced)
    assert set(ended) == {first, second, third, *others}
    assert ended == {name: unbroken[name] for name in ended}
    assert (tmp_path / "tiny" / "report-fig4" / "index.html").exists()
