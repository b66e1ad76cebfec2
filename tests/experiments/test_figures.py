"""Verdicts of figures that follow from runs: rows by hand, and what must be said of them."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from everlearn.experiments import (
    continuous,
    cost,
    fig3_regularisation,
    fig4_replay,
    fig5_l2p,
    fig7_invariance,
    fig8_online,
    fig9_open_set,
    figa1_agem,
    figa2_der,
    overview,
    read,
    scenarios,
    stability,
    table1_one_shot,
)
from everlearn.experiments.found import Found
from everlearn.experiments.trial import PAPER, Trial
from everlearn.report.chapter import Chapter

pytestmark = pytest.mark.slow

pytest.importorskip("matplotlib")

NONE = "not comparable"
Rows = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave most lines out: to draw them takes longer than all the rest, and test_reproduce does it."""
    monkeypatch.setattr(read, "draw_lines", lambda *_, **__: "<svg/>")


def accuracies(*pairs: tuple[int, float]) -> Rows:
    """Tests of the first task after so many tasks, of 1,000 images."""
    return [
        {
            "kind": "test", "step": tasks, "learned": tasks - 1, "tested": 0,
            "right": round(1000 * accuracy), "total": 1000,
        }
        for tasks, accuracy in pairs
    ]  # fmt: skip


def end(accuracy: float) -> Rows:
    return accuracies((500, accuracy))


def trials_of(module: ModuleType) -> dict[str, Trial]:
    return {trial.name: trial for trial in module.SETTINGS[PAPER].trials}


def draw(module: ModuleType, folder: Path) -> Chapter:
    return module.figure(Found(folder, PAPER))


def words(module: ModuleType, folder: Path) -> list[str]:
    return [verdict.verdict for verdict in draw(module, folder).verdicts]


BUFFERS = ("er-1k", "er-2k", "er-5k", "er-10k", "er-20k")


def fallen(tasks: int | None) -> Rows:
    """All is known after 20 tasks, and half of it from so many on; from None on, never."""
    late = [] if tasks is None else [(tasks, 0.5)]
    return accuracies((10, 0.8), (20, 1.0), *late, (500, 1.0 if tasks is None else 0.5))


@pytest.mark.parametrize(
    ("falls", "word"),
    [
        ((30, 40, 50, 110, 250), "equal"),
        ((30, 30, 50, 110, None), "equal"),
        ((30, 50, 40, 110, 250), "worse"),
        ((None, 30, 40, 110, 250), "worse"),
        ((30,), NONE),
    ],
)
def test_fig4_larger_buffers_must_decline_later(keep, tmp_path, falls, word):
    trials = trials_of(fig4_replay)
    for name, tasks in zip(BUFFERS, falls, strict=False):
        keep(trials[name], fallen(tasks))
    chapter = draw(fig4_replay, tmp_path)
    assert chapter.verdicts[0].verdict == word
    assert set(chapter.missing) == {
        "dcl-plus-seed0",
        "fine-tuning-seed0",
        *(f"{name}-seed0" for name in BUFFERS[len(falls) :]),
    }


def test_fig4_what_is_lost_for_a_while_is_not_lost(keep, tmp_path):
    trials = trials_of(fig4_replay)
    keep(trials["er-1k"], accuracies((10, 1.0), (20, 0.5), (30, 0.95), (40, 0.8), (500, 0.1)))
    keep(trials["er-2k"], fallen(50))
    keep(trials["er-5k"], fallen(None))
    verdict = draw(fig4_replay, tmp_path).verdicts[0]
    assert verdict.ours == "ER, 1,000: 40 tasks; ER, 2,000: 50 tasks"


@pytest.mark.parametrize(("last", "word"), [(0.89, "equal"), (0.91, "worse"), (1.0, "worse")])
def test_fig4_the_largest_buffer_must_lose_a_tenth_of_its_best(keep, tmp_path, last, word):
    trials = trials_of(fig4_replay)
    keep(trials["er-10k"], end(0.1))
    keep(trials["er-20k"], accuracies((10, 0.9), (20, 1.0), (500, last)))
    verdict = draw(fig4_replay, tmp_path).verdicts[1]
    assert verdict.verdict == word
    assert verdict.ours == f"ER, 20,000: {last:.3f}"


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((0.7, 0.8, 0.9), ["equal", "equal"]),
        ((0.9, 0.8, 0.7), ["worse", "equal"]),
        ((0.7, 0.8, 0.4), ["worse", "worse"]),  # five passes fall below where they began
        ((0.7, 0.8), [NONE, NONE]),
    ],
)
def test_fig8_more_passes_must_end_higher_and_all_must_rise(keep, tmp_path, ends, expected):
    trials = trials_of(fig8_online)
    for name, accuracy in zip(("dcl-online", "dcl-3", "dcl"), ends, strict=False):
        keep(trials[name], accuracies((10, 0.5), (500, accuracy)))
    assert words(fig8_online, tmp_path) == [*expected, NONE]


def answers(counts: dict[tuple[str, int], float], learned: int = 199) -> Rows:
    """One-shot rows on the grid, of 1,000 questions."""
    return [
        {
            "kind": "one-shot", "mode": mode, "factors": "grid", "classes": classes,
            "right": round(1000 * accuracy), "total": 1000, "learned": learned, "step": 1,
        }
        for (mode, classes), accuracy in counts.items()
    ]  # fmt: skip


OURS = {
    ("standard", 10): 0.99,
    ("standard", 100): 0.984,
    ("standard", 1000): 0.96,
    ("generalised", 10): 0.96,
    ("generalised", 100): 0.96,
    ("generalised", 1000): 0.92,
}


def test_table1_each_number_stands_against_its_own(keep, tmp_path):
    trials = trials_of(table1_one_shot)
    keep(trials["dcl"], [*end(0.9), *answers(OURS)])
    keep(trials["dcl-plus"], [*end(0.9), *answers(dict.fromkeys(OURS, 0.5))])
    # published: 1.00, 0.98, 0.95; 0.96, 0.95, 0.93
    expected = ["worse", "equal", "better", "equal", "better", "worse"]
    chapter = draw(table1_one_shot, tmp_path)
    assert [verdict.verdict for verdict in chapter.verdicts] == [*expected, *["worse"] * 6]
    assert [verdict.statement.split(":")[0] for verdict in chapter.verdicts] == [
        *["DCL"] * 6,
        *["DCL+"] * 6,
    ]
    (table,) = chapter.tables
    assert table.head == ["new classes", "published", "DCL+", "DCL"]
    assert ["100, standard, grid", "0.98", "0.5000", "0.9840"] in table.rows


def test_table1_counts_what_was_known_after_200_tasks_over_all_seeds(keep, tmp_path):
    trial = trials_of(table1_one_shot)["dcl-plus"]
    for seed, accuracy in enumerate((0.97, 0.98, 0.99)):
        early, late = answers({("standard", 100): accuracy}), answers({("standard", 100): 0.5}, 499)
        keep(trial, [*end(0.9), *early, *late], seed)
    verdict = draw(table1_one_shot, tmp_path).verdicts[7]
    assert (verdict.ours, verdict.verdict) == ("0.9800", "equal")


def test_table1_a_number_that_was_not_asked_for_is_not_compared(keep, tmp_path):
    keep(trials_of(table1_one_shot)["dcl"], [*end(0.9), *answers({("standard", 10): 1.0})])
    assert words(table1_one_shot, tmp_path) == ["equal", *[NONE] * 11]


def scores(share: float) -> Rows:
    """A share of the known images looks certain and the rest new; the area of the curve is that share."""
    certain = round(100 * share)
    known = [0.1] * certain + [1.0] * (100 - certain)
    # d2/d1 of the unknown is 2: between those of the known, 10 and 1
    row = {"kind": "open-set", "known": known, "unknown": [0.5] * 100, "right": [1] * 100}
    return [*end(0.9), row]


@pytest.mark.parametrize(
    ("shares", "word"),
    [((0.92,), "equal"), ((0.94,), "better"), ((0.9,), "worse"), ((0.9, 0.92, 0.94), "equal")],
)
def test_fig9_the_area_is_averaged_over_seeds(keep, tmp_path, shares, word):
    for seed, share in enumerate(shares):
        keep(trials_of(fig9_open_set)["dcl-plus"], scores(share), seed)
    _, area, textbook = draw(fig9_open_set, tmp_path).verdicts
    assert area.verdict == word
    assert float(area.ours) == pytest.approx(sum(shares) / len(shares), abs=1e-4)
    assert textbook.verdict == NONE
    # an unknown image scores higher than a certain known one, lower than any other
    assert f"auroc: {sum(shares) / len(shares):.3f}" in textbook.ours


def test_fig9_the_published_method_and_ours_are_judged_apart(keep, tmp_path):
    keep(trials_of(fig9_open_set)["dcl"], scores(0.9))
    keep(trials_of(fig9_open_set)["dcl-plus"], scores(0.94))
    published, ours, *_ = draw(fig9_open_set, tmp_path).verdicts
    assert published[:4] == ("DCL: area under the published curve", "0.92", "0.9000", "worse")
    assert ours[:4] == ("DCL+: area under the published curve", "0.92", "0.9400", "better")


@pytest.mark.parametrize(
    ("early", "beyond", "expected"),
    [
        ((0.1, 0.1, 0.2), 0.1, ["equal", "equal"]),
        ((0.1, 0.3, 0.1), 0.05, ["worse", "equal"]),
        ((0.1, 0.1, 0.1), 0.2, ["equal", "worse"]),
        ((), 0.05, [NONE, "equal"]),
    ],
)
def test_fig3_all_must_collapse_early_and_at_any_strength(keep, tmp_path, early, beyond, expected):
    trials = trials_of(fig3_regularisation)
    for name, accuracy in zip(("lwf", "si", "ewc"), early, strict=False):
        keep(trials[name], accuracies((10, accuracy), (500, 0.9)))
    keep(trials["ewc-30"], accuracies((10, 0.9), (50, beyond)))
    assert words(fig3_regularisation, tmp_path) == expected


def test_fig5_is_never_compared_but_says_what_it_found(keep, tmp_path):
    keep(trials_of(fig5_l2p)["l2p-lite"], accuracies((10, 0.3), (100, 0.05)))
    chapter = draw(fig5_l2p, tmp_path)
    (verdict,) = chapter.verdicts
    assert verdict.verdict == NONE
    assert verdict.ours == "after 10 tasks L2P-lite: 0.300; at the end L2P-lite: 0.050"
    assert "l2p-lite-seed0" not in chapter.missing


@pytest.mark.parametrize(
    ("net", "plain", "maps", "expected"),
    [
        (0.2, 0.01, 0.9, ["equal", "equal", "equal"]),
        (0.004, 0.01, 0.9, ["worse", "worse", "equal"]),  # chance is 0.001
        (0.85, 0.01, 0.9, ["equal", "equal", "worse"]),
        (0.2, None, None, [NONE, "equal", NONE]),
    ],
)
def test_fig7_the_contrastive_net_stands_between(keep, tmp_path, net, plain, maps, expected):
    trials = trials_of(fig7_invariance)
    for name, accuracy in (("contrastive", net), ("fine-tuning", plain), ("dcl", maps)):
        if accuracy is not None:
            keep(trials[name], accuracies((100, accuracy), (200, 0.5)))
    assert words(fig7_invariance, tmp_path) == expected


def test_fig7_says_how_well_the_contrastive_net_learns_a_task(keep, tmp_path):
    keep(trials_of(fig7_invariance)["contrastive"], accuracies((1, 0.25), (100, 0.1)))
    assert "names 0.25 among all classes" in draw(fig7_invariance, tmp_path).verdicts[1].why


@pytest.mark.parametrize(("agem", "word"), [(0.5, "equal"), (0.7, "worse"), (None, NONE)])
def test_figa1_agem_must_be_far_below_dcl(keep, tmp_path, agem, word):
    trials = trials_of(figa1_agem)
    keep(trials["dcl"], accuracies((50, 0.9), (500, 0.1)))
    if agem is not None:
        keep(trials["agem"], accuracies((50, agem)))
    assert words(figa1_agem, tmp_path) == [word]


@pytest.mark.parametrize(
    ("plain", "late", "fast", "expected"),
    [
        (0.3, 0.35, 0.4, ["equal", "equal"]),
        (0.3, 0.5, 0.2, ["equal", "better"]),
        (0.3, 0.1, 0.2, ["worse", "worse"]),
        (None, 0.1, 0.2, [NONE, "worse"]),
    ],
)
def test_figa2_the_best_der_counts(keep, tmp_path, plain, late, fast, expected):
    trials = trials_of(figa2_der)
    named = {"er-5k": plain, "der++-5k-late": late, "der++-5k-late-0.001": fast}
    for name, accuracy in named.items():
        if accuracy is not None:
            keep(trials[name], accuracies((200, accuracy), (500, 0.99)))
    assert words(figa2_der, tmp_path) == expected


@pytest.mark.parametrize(
    ("dark", "told"),
    [((0.9, 0.2), "one of them is above it up to 100 tasks"), ((0.1, 0.2), "none")],
)
def test_figa2_says_how_long_some_der_is_above_replay(keep, tmp_path, dark, told):
    trials = trials_of(figa2_der)
    keep(trials["er-5k"], accuracies((100, 0.8), (200, 0.3)))
    keep(trials["der++-5k"], accuracies((100, dark[0]), (200, dark[1])))
    assert draw(figa2_der, tmp_path).verdicts[0].why.startswith(told)


@pytest.mark.parametrize(("replay", "word"), [(0.8, "equal"), (0.95, "worse"), (None, NONE)])
def test_overview_dcl_must_end_above_all_that_forget(keep, tmp_path, replay, word):
    trials = trials_of(overview)
    keep(trials["dcl"], end(0.9))
    keep(trials["joint"], end(1.0))
    if replay is not None:
        keep(trials["er-20k"], end(replay))
        keep(trials["fine-tuning"], accuracies((200, 0.1)))
    assert words(overview, tmp_path) == [word]


def probed(*moments: tuple[int, int, int]) -> Rows:
    """Probes of 100 images: the task that was learned, the task tested, and how many were right."""
    rows = [
        {
            "kind": "probe", "step": step, "learned": learned, "tested": tested, "right": right,
            "total": 100,
        }
        for step, (learned, tested, right) in enumerate(moments, 1)
    ]  # fmt: skip
    last = {row["learned"]: row["step"] for row in rows}
    ends = [
        {
            "kind": "task", "learned": learned, "step": step, "images": 100, "seconds": 0.5,
            "evaluation_seconds": 0.25, "loss": 0.1, "peak_memory": 2, "bytes": {"net": 1},
            "parameters": 1,
        }
        for learned, step in last.items()
    ]  # fmt: skip
    return [*rows, *accuracies((2, 1.0)), *ends]


def fall(lowest: int, last: int) -> Rows:
    """The first task is known to all of 100 probes, then to fewer while the second is learned."""
    return probed((0, 0, 100), (1, 0, lowest), (1, 0, last))


@pytest.mark.parametrize(
    ("replays", "word"),
    [
        ({"gap-er": (50, 100), "gap-der++": (50, 70)}, "equal"),
        ({"gap-er": (50, 100), "gap-der++": (50, 60)}, "worse"),  # a fifth comes back
        ({"gap-er": (50, 50)}, "worse"),
        ({"gap-er": (100, 100)}, "worse"),  # what does not fall cannot come back
        ({}, NONE),
    ],
)
def test_stability_replay_must_fall_and_come_back(keep, tmp_path, replays, word):
    trials = trials_of(stability)
    for name, counts in {"gap-ewc": (20, 20), **replays}.items():
        keep(trials[name], fall(*counts))
    assert words(stability, tmp_path) == [word, NONE, NONE]


def test_stability_tells_who_falls_and_how_much_comes_back(keep, tmp_path):
    trials = trials_of(stability)
    counts = {"gap-dcl": (20, 100), "gap-dcl-plus": (100, 100), "gap-ewc": (20, 28)}
    for name, pair in counts.items():
        keep(trials[name], fall(*pair))
    chapter = draw(stability, tmp_path)
    assert [verdict.ours for verdict in chapter.verdicts] == [
        "not measured",
        "EWC: falls by 0.80, regains 0.10 of it",
        "DCL: falls by 0.80, regains 1.00 of it; DCL+: does not fall",
    ]
    (table,) = chapter.tables
    assert {row[0]: (row[1], row[-1]) for row in table.rows} == {
        "DCL+": ("0.000", "0.000"),
        "DCL": ("0.800", "1.000"),
        "EWC": ("0.800", "0.100"),
    }


def test_stability_what_is_regained_is_a_share_of_all_that_was_lost(keep, tmp_path):
    trial = trials_of(stability)["gap-er"]
    first = [(0, 0, 100), (1, 0, 60), (1, 0, 70), (2, 0, 60), (2, 0, 90)]
    second = [(1, 1, 100), (2, 1, 50), (2, 1, 50)]
    keep(trial, probed(*sorted(first + second, key=lambda moment: moment[0])))
    (group,) = Found(tmp_path, PAPER).groups([trial])
    # lost 40, 10 and 50; back 10, 10 (it was not higher before) and nothing
    assert stability.regained(group) == pytest.approx(20 / 100)


def test_stability_leaves_out_what_was_never_probed(keep, tmp_path):
    keep(trials_of(stability)["gap-er"], accuracies((2, 1.0)))
    chapter = draw(stability, tmp_path)
    assert [verdict.ours for verdict in chapter.verdicts] == ["not measured"] * 3
    assert not chapter.figures
    assert not chapter.tables


def test_continuous_shows_the_poses_between_beside_those_of_the_grid(keep, tmp_path):
    grid = answers({("standard", 1000): 0.95}, 499)
    between = [{**row, "factors": "continuous", "right": 800} for row in grid]
    keep(trials_of(continuous)["dcl"], [*end(0.9), *grid, *between])
    chapter = draw(continuous, tmp_path)
    assert chapter.tables[0].rows == [["DCL", "0.9500", "0.8000"]]
    assert chapter.verdicts[0].ours == "DCL: 0.8000"


def spent(size: int) -> Rows:
    return [
        {
            "kind": "task", "learned": 499, "step": 5, "images": 100, "seconds": 2.0,
            "evaluation_seconds": 0.25, "loss": 0.1, "peak_memory": 2, "bytes": {"net": size},
            "parameters": 1,
        }
    ]  # fmt: skip


def test_cost_the_best_for_a_byte_sees_a_task_at_a_time(keep, tmp_path):
    trials = trials_of(cost)
    keep(trials["er-1k"], [*end(0.5), *spent(10_000_000)])
    keep(trials["er-20k"], [*end(0.9), *spent(90_000_000)])  # more, but less for a byte
    keep(trials["joint"], [*end(1.0), *spent(1_000_000)])
    chapter = draw(cost, tmp_path)
    assert chapter.verdicts[0].ours == "ER, 1,000, 0.5000 with 10 MB"
    assert len(chapter.figures) == 2


def test_scenarios_a_table_has_a_row_a_method_and_a_column_a_scenario(keep, tmp_path):
    trials = trials_of(scenarios)
    keep(trials["blurry-er"], end(0.3))
    keep(trials["domain-er"], end(0.6))
    keep(trials["domain-fine-tuning"], end(0.2))
    (table,) = draw(scenarios, tmp_path).tables
    assert table.head[1:] == ["blurry", "recurring", "domain"]
    assert [row[1:] for row in table.rows] == [["0.300", "–", "0.600"], ["–", "–", "0.200"]]


def test_scenarios_count_images_of_tasks_of_any_size(keep, tmp_path):
    (large,) = end(0.9)
    small = {**large, "tested": 1, "right": 0, "total": 200}
    keep(trials_of(scenarios)["blurry-er"], [large, small])
    assert draw(scenarios, tmp_path).verdicts[0].ours == "blurry, ER, 5,000: 0.750"  # 900 of 1,200
