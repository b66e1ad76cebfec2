"""Verdicts on generative negative replay: rows by hand, and what must be said of them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from everlearn.experiments import (
    ar1_long,
    gnr_ablation,
    gnr_balance,
    gnr_long,
    gnr_nc,
    gnr_nic,
    gnr_share,
    read,
)
from everlearn.experiments.found import Found
from everlearn.experiments.gnr import LABELS
from everlearn.experiments.gnr_modes import judge
from everlearn.experiments.trial import PAPER, Trial
from everlearn.report.chapter import Chapter
from everlearn.report.lines import whole_lines

pytestmark = pytest.mark.slow

pytest.importorskip("matplotlib")

NONE = "not comparable"
Rows = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the drawing of lines and bars to other tests."""
    monkeypatch.setattr(read, "draw_lines", lambda *_, **__: "<svg/>")
    monkeypatch.setattr(gnr_ablation, "draw_bars", lambda *_, **__: "<svg/>")


def ended(*shares: float, met: float = 0.5) -> Rows:
    """Tests on all classes after one task and the next, and on the first task at the end."""
    rows: Rows = [
        {
            "kind": "whole", "step": task, "learned": task, "right": round(1000 * share),
            "total": 1000, "met_right": round(100 * met), "met_total": 100,
        }
        for task, share in enumerate(shares)
    ]  # fmt: skip
    last = len(shares) - 1
    test = {"kind": "test", "step": last, "learned": last, "tested": 0, "right": 1, "total": 2}
    return [*rows, test]


def tasks(*pairs: tuple[float | None, float | None]) -> Rows:
    """What each task cost, k + 1 seconds, and the lengths of new and old rows after it."""
    return [
        {
            "kind": "task", "step": k, "learned": k, "seconds": k + 1.0, "images": 1,
            "evaluation_seconds": 0.0, "peak_memory": 0, "bytes": {"net": 4000}, "parameters": 1,
            "notes": {"new_norm": new, "old_norm": old},
        }
        for k, (new, old) in enumerate(pairs)
    ]  # fmt: skip


def trials_of(module: ModuleType) -> dict[str, Trial]:
    return {trial.name: trial for trial in module.SETTINGS[PAPER].trials}


def draw(module: ModuleType, folder: Any) -> Chapter:
    return module.figure(Found(folder, PAPER))


GOOD = {
    "none": 0.60, "ar1": 0.61, "pr-od": 0.70, "nr-od": 0.68, "pr-gd": 0.50, "nr-gd": 0.66,
    "pr-rd": 0.40, "nr-rd": 0.64,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "worse"),
    [
        ({}, []),
        ({"PR-GD": 0.61}, []),
        ({"PR-GD": 0.62}, [0]),
        ({"PR-GD": 0.61, "no replay": 0.58}, [4]),
        ({"PR-OD": 0.64}, []),
        ({"no replay": 0.67}, [1]),
        ({"AR1*": 0.66}, [2]),
        ({"PR-OD": 0.63}, [3]),
        ({"NR-RD": 0.40}, [5]),
    ],
)
def test_orderings_are_judged_one_by_one(changes, worse):
    ends = {LABELS.get(mode, "AR1*"): end for mode, end in GOOD.items()} | changes
    found = [verdict.verdict for verdict in judge(ends)]
    assert found == ["worse" if k in worse else "equal" for k in range(6)]


@pytest.mark.parametrize("module", [gnr_nc, gnr_nic])
def test_the_mean_over_seeds_counts(keep, tmp_path, module):
    trials, name = trials_of(module), module.__name__.rpartition("_")[2]
    for seed in (0, 1, 2):
        keep(trials[f"gnr-{name}-nr-gd"], ended(0.2, 0.6 + 0.1 * seed), seed)
        keep(trials[f"gnr-{name}-pr-gd"], ended(0.2, 0.65), seed)
    chapter = draw(module, tmp_path)
    assert chapter.verdicts[0].ours == "NR-GD: 0.700; PR-GD: 0.650"
    assert chapter.verdicts[0].verdict == "equal"
    assert len(chapter.missing) == 18


def test_a_mode_that_is_not_there_leaves_the_others_to_be_judged(keep, tmp_path):
    trials = trials_of(gnr_nc)
    for mode in ("nr-gd", "pr-gd"):
        keep(trials[f"gnr-nc-{mode}"], ended(0.2, GOOD[mode]))
    words = [found.verdict for found in draw(gnr_nc, tmp_path).verdicts]
    assert words == ["equal", *5 * [NONE]]


def test_the_table_has_ends_and_means_beside_the_paper(keep, tmp_path):
    trials = trials_of(gnr_nc)
    for seed, end in enumerate((0.6, 0.7, 0.8)):
        keep(trials["gnr-nc-nr-gd"], ended(0.2, end, met=0.9), seed)
    keep(trials["gnr-nc-none"], ended(0.2, 0.4, met=0.3))
    (table,) = draw(gnr_nc, tmp_path).tables
    assert table.rows == [
        ["no replay", "0.400", "0.300", "0.300", "0.300", "–", "–"],
        [
            "NR-GD", "0.700 ± 0.100", "0.450 ± 0.050", "0.900 ± 0.000", "0.900 ± 0.000",
            "0.689 ± 0.009", "0.446 ± 0.008",
        ],
    ]  # fmt: skip


def test_lines_of_all_classes_and_of_those_met(keep, tmp_path):
    trial = trials_of(gnr_nc)["gnr-nc-nr-gd"]
    for seed in (0, 1):
        keep(trial, ended(0.2 + seed / 10, 0.5, met=0.9), seed)
    groups = Found(tmp_path, PAPER).groups([trial])
    ((line,), (met,)) = whole_lines(groups), whole_lines(groups, met=True)
    assert line.x.tolist() == [1, 2]
    assert line.mean.tolist() == pytest.approx([0.25, 0.5])
    assert line.low.tolist() == pytest.approx([0.2, 0.5])
    assert met.mean.tolist() == pytest.approx([0.9, 0.9])


def test_runs_that_were_not_tested_on_all_classes_have_no_line(keep, tmp_path):
    trial = trials_of(gnr_nc)["gnr-nc-nr-gd"]
    keep(trial, ended(0.5)[1:])
    assert whole_lines(Found(tmp_path, PAPER).groups([trial])) == []


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        (GOOD, ["equal", "equal", "equal"]),
        (GOOD | {"pr-gd": 0.66, "nr-rd": 0.3, "nr-od": 0.73}, ["worse", "worse", "worse"]),
        (GOOD | {"nr-od": 0.71}, ["equal", "equal", "equal"]),
    ],
)
def test_the_ablation_judges_both_streams(keep, tmp_path, ends, expected):
    trials = trials_of(gnr_ablation)
    for mode, end in ends.items():
        keep(trials[f"gnr-nic-{mode}"], ended(end))
    chapter = draw(gnr_ablation, tmp_path)
    assert [found.verdict for found in chapter.verdicts] == [NONE, NONE, NONE, *expected]
    (table,) = chapter.tables
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["NR-GD"] == ["–", "0.689 ± 0.009", f"{ends['nr-gd']:.3f}", "0.615 ± 0.007"]


@pytest.mark.parametrize(
    ("mode", "ends", "word"),
    [
        ("nr-rd", (0.3, 0.4, 0.2), "equal"),
        ("nr-rd", (0.3, 0.4, 0.5), "worse"),
        ("pr-od", (0.3, 0.4, 0.5), "equal"),
        ("pr-od", (0.3, 0.5, 0.4), "worse"),
        ("pr-od", (0.3,), NONE),
    ],
)
def test_the_best_share_is_judged_by_the_kind_of_data(keep, tmp_path, mode, ends, word):
    trials = trials_of(gnr_share)
    keep(trials["gnr-nc-none"], ended(0.9))
    for percent, end in zip((10, 30, 50), ends, strict=False):
        keep(trials[f"gnr-share-{mode}-{percent}"], ended(end))
    chapter = draw(gnr_share, tmp_path)
    told = {found.statement.split(" ")[0]: found for found in chapter.verdicts}[mode.upper()]
    assert told.verdict == word
    assert len(chapter.figures) == 1


def test_ratios_of_rows_leave_out_the_first_experience(keep, tmp_path):
    trials = trials_of(gnr_balance)
    costs = tasks((1.0, 0.0), (3.0, 2.0), (1.0, 2.0))
    keep(trials["gnr-nc-pr-od"], [*ended(0.2, 0.5, 0.6), *costs])
    keep(trials["gnr-rate-pr-od-1e-2"], [*ended(0.2, 0.5, 0.8), *tasks((1.0, 0.0), (None, 2.0))])
    keep(trials["gnr-rate-none-1e-2"], ended(0.2, 0.5, 0.9))
    chapter = draw(gnr_balance, tmp_path)
    (table,) = chapter.tables
    assert table.rows == [
        ["PR-OD", "0.003", "0.600", "1.000"],
        ["no replay", "0.01", "0.900", "–"],
        ["PR-OD", "0.01", "0.800", "–"],
    ]
    assert chapter.verdicts[0].ours == "0.003: PR-OD, 0.600; 0.01: no replay, 0.900"
    assert len(chapter.figures) == 1


def test_what_a_task_costs_early_and_late(keep, tmp_path):
    trial = trials_of(gnr_long)["gnr-long"]
    keep(trial, [*ended(0.5), *tasks(*21 * [(1.0, 1.0)])])
    (table,) = draw(gnr_long, tmp_path).tables
    assert table.rows[0] == ["GNR", "2.50", "20.50", "8.20", "4.0 kB"]


@pytest.mark.parametrize("module", [ar1_long, gnr_long])
def test_long_streams_tell_where_all_end(keep, tmp_path, module):
    keep(trials_of(module)["ar1-free-long"], ended(0.5))
    (verdict,) = draw(module, tmp_path).verdicts
    assert verdict.ours == "AR1*free, 5,000: 0.500"
    assert verdict.verdict == NONE
