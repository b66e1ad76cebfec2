"""The report of a folder of experiments: scale, title, verdicts and summary."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from everlearn.experiments.beyond import overview, stability
from everlearn.experiments.framework.pages import read_scale, write_experiments_report, write_scale
from everlearn.experiments.framework.scales import SCALES
from everlearn.experiments.framework.trial import PAPER, SMALL
from everlearn.runs.folder import PROVENANCE

pytestmark = pytest.mark.integration

pytest.importorskip("matplotlib")


def final_row(accuracy: float, tasks: int = 200) -> dict[str, Any]:
    return {
        "kind": "test", "step": tasks, "learned": tasks - 1, "tested": 0,
        "correct": round(100 * accuracy), "total": 100,
    }  # fmt: skip


def probe(learned: int, correct: int) -> dict[str, Any]:
    return {
        "kind": "probe", "step": learned, "learned": learned, "tested": 0, "correct": correct,
        "total": 100,
    }  # fmt: skip


@pytest.mark.parametrize("scale", SCALES)
def test_the_scale_of_a_folder_is_recorded(tmp_path, scale):
    write_scale(tmp_path, scale)
    assert read_scale(tmp_path) == scale


def test_other_folders_have_no_scale(tmp_path):
    assert read_scale(tmp_path) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ("{}", "is damaged"),
        ('{"scale": "huge"}', "names the scale 'huge'; known: tiny, small, paper"),
        ('{"scale": ["paper"]}', "names the scale"),
    ],
)
def test_a_damaged_scale_file_is_refused(tmp_path, text, told):
    (tmp_path / "reproduce.json").write_text(text)
    with pytest.raises(ValueError, match=re.escape(told)) as raised:
        read_scale(tmp_path)
    assert str(tmp_path / "reproduce.json") in str(raised.value)


@pytest.mark.parametrize(
    ("scale", "title", "shown"),
    [
        (PAPER, None, "Everlearn: endless continual learning"),
        (SMALL, None, "Everlearn: endless continual learning, scale small"),
        (SMALL, "Mine", "Mine"),
    ],
)
def test_the_title_names_the_scale_unless_it_is_given(tmp_path, scale, title, shown):
    page = write_experiments_report(tmp_path, scale, tmp_path / "page", ["fig2"], title)
    assert f"<title>{shown}</title>" in page.read_text()


@pytest.mark.parametrize(
    ("scale", "word", "why"),
    [
        (PAPER, "equal", "smallest lead 0.8 to 0.8, 3 seeds"),
        (SMALL, "not comparable", "nothing was published for a stream as small as this"),
    ],
)
def test_verdicts_on_a_small_stream_are_not_comparable(
    write_run, write_measurement, tmp_path, scale, word, why
):
    tasks = overview.SETTINGS[scale].options["tasks"]
    for trial in overview.SETTINGS[scale].trials:
        row = final_row(0.9 if trial.name == "dcl" else 0.1, tasks)
        for seed in trial.seeds_at(scale):
            write_run(trial, [row], seed)
    write_measurement(
        "fig2-shapes", [{"kind": "digest", "task": 3, "tables": "ab", "repeatable": True}]
    )
    page = write_experiments_report(
        tmp_path, scale, tmp_path / "page", ["overview", "fig2"]
    ).read_text()
    verdicts = re.findall(r'<span class="badge [^"]*">([^<]*)</span>', page)
    assert set(verdicts) == {word, "not comparable"}
    text = page.replace("&#39;", "'")
    assert why in text
    assert "the original package takes no seed" in text  # what is never compared keeps its reason


@pytest.mark.parametrize(
    ("scale", "told"),
    [("tiny", "every method is near chance level"), (SMALL, "fine-tuning ends near 0.2")],
)
def test_a_small_scale_says_what_its_numbers_mean(tmp_path, scale, told):
    page = write_experiments_report(tmp_path, scale, tmp_path / "page", ["fig2"])
    assert told in page.read_text()


@pytest.mark.parametrize(
    ("gpus", "text"),
    [
        ((), "64 pixels. It also"),
        ((None, None), "64 pixels, each run on a CPU. It also"),
        (("Card A", None), "64 pixels, each run on one Card A or a CPU. It also"),
        (("Card B", "Card A"), "64 pixels, each run on one Card A or one Card B. It also"),
    ],
)
def test_the_page_names_the_gpus_of_its_runs(write_run, tmp_path, gpus, text):
    trial = {trial.name: trial for trial in overview.SETTINGS[PAPER].trials}["dcl"]
    for seed, gpu in zip(trial.seeds, gpus, strict=False):
        folder = write_run(trial, [final_row(0.9)], seed)
        (folder / PROVENANCE).write_text(json.dumps({"gpu": gpu, "command": "", "date": ""}) + "\n")
    page = write_experiments_report(tmp_path, PAPER, tmp_path / "page", ["overview", "fig2"])
    assert text in " ".join(page.read_text().split())


def summary_of(folder: Path) -> dict[str, dict[str, str]]:
    """The first table of a page's tables, by method."""
    table = (folder / "tables.md").read_text().split("\n\n")
    lines = next(part for part in table if part.startswith("|")).splitlines()
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {row[0]: dict(zip(head, row, strict=True)) for row in rows}


def test_the_summary_has_the_stability_gap_of_the_short_runs(write_run, tmp_path):
    long = {trial.name: trial for trial in overview.SETTINGS[PAPER].trials}
    short = {trial.name: trial for trial in stability.SETTINGS[PAPER].trials}
    for name in ("er-5k", "er-20k"):
        write_run(long[name], [final_row(0.5)], long[name].seeds[0])
    probes = [probe(0, 100), probe(1, 40), {**probe(1, 90), "step": 2}]
    probes += [final_row(1.0, 1), final_row(0.9, 2)]
    write_run(short["gap-er"], probes, short["gap-er"].seeds[0])  # 5,000 images
    write_experiments_report(tmp_path, PAPER, tmp_path / "page", ["overview", "fig2"])
    summary = summary_of(tmp_path / "page")
    assert summary["ER, 5,000"]["stability gap"] == "+0.600"
    assert summary["ER, 20,000"]["stability gap"] == "–"
    assert summary["ER, 5,000"]["average accuracy"] == "0.500"
