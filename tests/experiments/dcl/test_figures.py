"""Figures and verdicts from hand-written runs."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from everlearn.experiments.beyond import continuous, cost, overview, scenarios, stability
from everlearn.experiments.dcl import (
    ablations,
    fig3_regularisation,
    fig4_replay,
    fig5_l2p,
    fig7_invariance,
    fig8_online,
    fig9_open_set,
    figa1_agem,
    figa2_der,
    table1_one_shot,
)
from everlearn.experiments.framework import groups
from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.runner import Runner
from everlearn.experiments.framework.trial import PAPER, Trial
from everlearn.report.experiment import ExperimentResult

from ..conftest import accuracies

pytestmark = pytest.mark.integration

pytest.importorskip("matplotlib")

NONE = "not comparable"
Rows = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def no_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip drawing lines, which takes longer than everything else; test_reproduce draws them."""
    monkeypatch.setattr(groups, "draw_lines", lambda *_, **__: "<svg/>")


def end(accuracy: float) -> Rows:
    """The accuracy after 200 tasks, which runs are compared at."""
    return accuracies((200, accuracy))


def trials_of(module: ModuleType) -> dict[str, Trial]:
    return {trial.name: trial for trial in module.SETTINGS[PAPER].trials}


def draw(module: ModuleType, folder: Path) -> ExperimentResult:
    return module.figure(ResultsFolder(folder, PAPER))


def words(module: ModuleType, folder: Path) -> list[str]:
    return [verdict.verdict for verdict in draw(module, folder).verdicts]


BUFFERS = ("er-1k", "er-2k", "er-5k", "er-10k", "er-20k")


def declining(tasks: int | None) -> Rows:
    """Accuracy 1.0 after 20 tasks, and 0.5 from so many tasks on; None for never."""
    late = [] if tasks is None else [(tasks, 0.5)]
    return accuracies((10, 0.8), (20, 1.0), *late, (200, 1.0 if tasks is None else 0.5))


@pytest.mark.parametrize(
    ("falls", "word"),
    [
        ((30, 40, 50, 110, 190), "equal"),
        ((30, 40, 50, 110, None), "equal"),
        ((30, 30, 50, 110, 50), "undecided"),
        ((30, 50, 190, 110, 40), "worse"),
        ((30, 40, None, 110, 190), "worse"),
        ((30,), NONE),
    ],
)
def test_fig4_larger_buffers_of_the_main_table_must_decline_later(
    write_seeds, tmp_path, falls, word
):
    trials = trials_of(fig4_replay)
    for name, tasks in zip(BUFFERS, falls, strict=False):
        write_seeds(trials[name], declining(tasks))
    result = draw(fig4_replay, tmp_path)
    assert result.verdicts[0].verdict == word
    missing = [trials[name] for name in ("dcl-plus", "fine-tuning", *BUFFERS[len(falls) :])]
    assert set(result.missing) == {trial.folder(seed) for trial in missing for seed in trial.seeds}


def test_fig4_ignores_a_temporary_decline(write_run, tmp_path):
    trials = trials_of(fig4_replay)
    seed = trials["er-5k"].seeds[0]
    temporary = accuracies((10, 1.0), (20, 0.5), (30, 0.95), (40, 0.8), (200, 0.1))
    write_run(trials["er-5k"], temporary, seed)
    write_run(trials["er-20k"], declining(None), seed)
    verdict = draw(fig4_replay, tmp_path).verdicts[0]
    assert verdict.ours == "ER, 5,000: 40; ER, 20,000: > 200"
    assert verdict.verdict == "undecided"
    assert verdict.why.endswith("1 seed, too few to decide")


@pytest.mark.parametrize(("last", "word"), [(0.89, "equal"), (0.91, "worse"), (1.0, "worse")])
def test_fig4_largest_buffer_must_lose_ten_percent(write_seeds, tmp_path, last, word):
    trials = trials_of(fig4_replay)
    write_seeds(trials["er-10k"], end(0.1))
    write_seeds(trials["er-20k"], accuracies((10, 0.9), (20, 1.0), (500, last)))
    verdict = draw(fig4_replay, tmp_path).verdicts[1]
    assert verdict.verdict == word
    assert verdict.ours == f"ER, 20,000: {last:.3f}"


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((0.7, 0.8, 0.9), ["equal", "equal"]),
        ((0.7, 0.8, 0.8), ["undecided", "equal"]),
        ((0.9, 0.8, 0.7), ["worse", "equal"]),
        ((0.7, 0.8, 0.4), ["worse", "worse"]),  # five passes fall below where they began
        ((0.7, 0.8), ["undecided", "undecided"]),  # as long as five passes have no rows
        ((0.8, 0.7), ["worse", "undecided"]),  # which they cannot change
        ((), [NONE, NONE]),
    ],
)
def test_fig8_more_epochs_must_end_higher_and_all_must_rise(write_seeds, tmp_path, ends, expected):
    trials = trials_of(fig8_online)
    for name, accuracy in zip(("dcl-online", "dcl-3", "dcl"), ends, strict=False):
        write_seeds(trials[name], accuracies((10, 0.5), (200, accuracy), (500, 0.1)))
    assert words(fig8_online, tmp_path) == [*expected, NONE]


def one_shot_rows(counts: dict[tuple[str, int], float], learned: int = 199) -> Rows:
    """One-shot rows on the grid, with 10,000 images each."""
    return [
        {
            "kind": "one-shot", "mode": mode, "factors": "grid", "classes": classes,
            "correct": round(10_000 * accuracy), "total": 10_000, "learned": learned, "step": 1,
        }
        for (mode, classes), accuracy in counts.items()
    ]  # fmt: skip


OURS = {
    ("standard", 10): 0.8,
    ("standard", 100): 0.984,
    ("standard", 1000): 0.95,
    ("generalised", 10): 0.96,
    ("generalised", 100): 1.0,
    ("generalised", 1000): 0.9,
}


def test_table1_compares_each_score_with_its_published_value(write_run, write_seeds, tmp_path):
    trials = trials_of(table1_one_shot)
    write_seeds(trials["dcl"], [*end(0.9), *one_shot_rows(OURS)])
    half = [*end(0.9), *one_shot_rows(dict.fromkeys(OURS, 0.5))]
    write_run(trials["dcl-plus"], half, trials["dcl-plus"].seeds[0])
    # published: 1.00, 0.98, 0.95; 0.96, 0.95, 0.93. Wilson's intervals of 30, 300 and 3,000 shapes: 0.63 to
    # 0.91, 0.962 to 0.993, 0.942 to 0.957; 0.80 to 0.99, 0.987 to 1, 0.889 to 0.910.
    expected = ["worse", "undecided", "equal", "undecided", "better", "worse"]
    result = draw(table1_one_shot, tmp_path)
    assert [verdict.verdict for verdict in result.verdicts] == [*expected, *["undecided"] * 6]
    assert [verdict.statement.split(":")[0] for verdict in result.verdicts] == [
        *["DCL"] * 6,
        *["DCL+"] * 6,
    ]
    (table,) = result.tables
    assert table.head == ["new classes", "published", "DCL+", "DCL"]
    assert ["100, standard, grid", "0.98", "0.5000", "0.9840"] in table.rows


def test_table1_decides_no_more_than_its_shapes_can_tell(write_seeds, tmp_path):
    perfect = one_shot_rows({("standard", 10): 1.0})
    write_seeds(trials_of(table1_one_shot)["dcl"], [*end(0.9), *perfect])
    verdict = draw(table1_one_shot, tmp_path).verdicts[0]
    # 30 of 30 shapes: Wilson's lower end is 1 / (1 + 1.96**2 / 30), however many images each has
    assert (verdict.ours, verdict.verdict) == ("1.0000 (0.8865 to 1.0000)", "undecided")


def test_table1_averages_scores_after_200_tasks_over_seeds(write_run, tmp_path):
    trial = trials_of(table1_one_shot)["dcl-plus"]
    for seed, accuracy in zip(trial.seeds, (0.97, 0.98, 0.99), strict=True):
        early, late = (
            one_shot_rows({("standard", 100): accuracy}),
            one_shot_rows({("standard", 100): 0.5}, 499),
        )
        write_run(trial, [*end(0.9), *early, *late], seed)
    verdict = draw(table1_one_shot, tmp_path).verdicts[7]
    # Student's interval: 4.3027 * 0.01 / sqrt(3) = 0.0248, wider than Wilson's of 300 shapes
    assert verdict.ours == "0.9800 (0.9552 to 1.0000)"
    assert verdict.verdict == "undecided"


def test_table1_does_not_compare_unmeasured_scores(write_seeds, tmp_path):
    write_seeds(
        trials_of(table1_one_shot)["dcl"], [*end(0.9), *one_shot_rows({("standard", 10): 1.0})]
    )
    assert words(table1_one_shot, tmp_path) == ["undecided", *[NONE] * 11]


def scores(share: float) -> Rows:
    """A fraction of the known images looks certain and the rest new; the area equals that fraction."""
    certain = round(100 * share)
    known = [0.1] * certain + [1.0] * (100 - certain)
    # d2/d1 of the unknown is 2: between those of the known, 10 and 1
    row = {
        "kind": "open-set", "step": 1, "learned": 199, "known": known, "unknown": [0.5] * 100,
        "correct": [1] * 100,
    }  # fmt: skip
    return [*end(0.9), row]


@pytest.mark.parametrize(
    ("shares", "word"),
    [
        ((0.92,), "undecided"),
        ((0.94,) * 3, "better"),
        ((0.9,) * 3, "worse"),
        ((0.92,) * 3, "equal"),
        ((0.9, 0.92, 0.94), "undecided"),
    ],
)
def test_fig9_area_is_averaged_over_seeds(write_run, tmp_path, shares, word):
    trial = trials_of(fig9_open_set)["dcl-plus"]
    for seed, share in zip(trial.seeds, shares, strict=False):
        write_run(trial, scores(share), seed)
    _, area, textbook = draw(fig9_open_set, tmp_path).verdicts
    assert area.verdict == word
    mean = float(area.ours.split(" ")[0])
    assert mean == pytest.approx(sum(shares) / len(shares), abs=1e-4)
    assert textbook.verdict == NONE
    # an unknown image scores higher than a certain known one, lower than any other
    assert f"auroc: {sum(shares) / len(shares):.3f}" in textbook.ours


def test_fig9_judges_dcl_and_dcl_plus_separately(write_seeds, tmp_path):
    write_seeds(trials_of(fig9_open_set)["dcl"], scores(0.9))
    write_seeds(trials_of(fig9_open_set)["dcl-plus"], scores(0.94))
    published, ours, *_ = draw(fig9_open_set, tmp_path).verdicts
    statement = "area under the published curve"
    assert (published.statement, published.verdict) == (f"DCL: {statement}", "worse")
    assert (ours.statement, ours.verdict) == (f"DCL+: {statement}", "better")


def test_fig9_draws_groups_with_open_set_rows_and_names_their_seeds(write_run, tmp_path):
    dcl, dcl_plus = (trials_of(fig9_open_set)[name] for name in ("dcl", "dcl-plus"))
    for seed in dcl.seeds:
        write_run(dcl, end(0.9), seed)
    assert not draw(fig9_open_set, tmp_path).figures
    first, second, third = dcl_plus.seeds
    write_run(dcl_plus, end(0.9), first)
    write_run(dcl_plus, scores(0.94), second)
    write_run(dcl_plus, scores(0.94), third)
    (figure,) = draw(fig9_open_set, tmp_path).figures
    assert figure.caption == f"The two rates over all thresholds. DCL+: seed {second}."


@pytest.mark.parametrize(("size", "told"), [(64, True), (128, False), (None, False)])
def test_fig9_names_what_true_maps_reach_on_images_of_this_size(
    write_seeds, write_measurement, tmp_path, size, told
):
    write_seeds(trials_of(fig9_open_set)["dcl"], scores(0.9))
    if size:
        known = scores(0.95)[-1]
        ceiling = {"size": size, "known": known["known"], "unknown": known["unknown"]}
        write_measurement(ablations.MEASUREMENT, [{"kind": "open-set-ceiling", **ceiling}])
    result = draw(fig9_open_set, tmp_path)
    assert result.verdicts[0].why.endswith("; true maps reach 0.9500 on them") is told
    assert list(result.measurements) == ([ablations.MEASUREMENT] if size else [])
    assert ablations.MEASUREMENT not in result.missing


CHOSEN_STRENGTHS = {"dcl-plus", "dcl", "fine-tuning", "lwf", "si", "online-ewc"}


@pytest.mark.parametrize(
    ("early", "beyond", "expected"),
    [
        ((0.1, 0.1, 0.19), 0.09, ["equal", "equal"]),
        ((0.1, 0.3, 0.1), 0.05, ["worse", "equal"]),
        ((0.1, 0.1, 0.1), 0.2, ["equal", "worse"]),
        ((), 0.05, [NONE, "undecided"]),
    ],
)
def test_fig3_all_must_collapse_early_and_at_any_strength(
    write_seeds, tmp_path, early, beyond, expected
):
    trials = trials_of(fig3_regularisation)
    for name, accuracy in zip(("lwf", "si", "online-ewc"), early, strict=False):
        write_seeds(trials[name], accuracies((10, accuracy), (20, 0.05), (500, 0.005)))
    for name in trials.keys() - CHOSEN_STRENGTHS:
        accuracy = beyond if name == "online-ewc-30" else 0.05
        write_seeds(trials[name], accuracies((10, 0.9), (20, accuracy)))
    assert words(fig3_regularisation, tmp_path) == expected


def test_fig3_names_methods_and_strengths_without_rows(write_seeds, tmp_path):
    trials = trials_of(fig3_regularisation)
    for name in ("lwf", "si"):
        write_seeds(trials[name], accuracies((10, 0.1), (20, 0.05), (200, 0.05)))
    write_seeds(trials["lwf-10"], accuracies((20, 0.05)))
    verdicts = draw(fig3_regularisation, tmp_path).verdicts
    assert [verdict.verdict for verdict in verdicts] == ["undecided", "undecided"]
    assert verdicts[0].why.endswith("; no rows yet of: EWC, online")
    assert "no rows yet of: EWC, online; LwF, 0.1; SI, 0.1; " in verdicts[1].why


def test_fig3_leaves_out_strengths_at_which_nothing_is_learned(write_seeds, tmp_path):
    trials = trials_of(fig3_regularisation)
    for name in trials.keys() - {"lwf-10", "dcl", "dcl-plus", "fine-tuning"}:
        write_seeds(trials[name], accuracies((20, 0.05)))
    write_seeds(trials["lwf-10"], accuracies((1, 0.5), (20, 0.5)))  # 0.5 right after learning it
    verdict = draw(fig3_regularisation, tmp_path).verdicts[1]
    assert verdict.verdict == "equal"
    assert "LwF, 10:" not in verdict.ours
    assert "did not learn their tasks: LwF, 10" in verdict.why


def test_fig5_reports_accuracies_without_comparison(write_run, tmp_path):
    trial = trials_of(fig5_l2p)["l2p-lite"]
    write_run(trial, accuracies((10, 0.3), (100, 0.05)), trial.seeds[0])
    result = draw(fig5_l2p, tmp_path)
    (verdict,) = result.verdicts
    assert verdict.verdict == NONE
    assert verdict.ours == (
        "after 10 tasks L2P-lite (seed 0): 0.300; at the end L2P-lite (seed 0): 0.050"
    )
    assert verdict.measured
    assert trial.folder(trial.seeds[0]) not in result.missing


@pytest.mark.parametrize(
    ("net", "plain", "maps", "expected"),
    [
        (0.2, 0.01, 0.9, ["equal", "equal", "equal"]),
        (0.004, 0.01, 0.9, ["worse", "worse", "equal"]),  # chance is 0.001
        (0.85, 0.01, 0.9, ["equal", "equal", "worse"]),
        (0.2, None, None, [NONE, "equal", NONE]),
    ],
)
def test_fig7_contrastive_net_is_between_fine_tuning_and_dcl(
    write_seeds, tmp_path, net, plain, maps, expected
):
    trials = trials_of(fig7_invariance)
    for name, accuracy in (("contrastive", net), ("fine-tuning", plain), ("dcl", maps)):
        if accuracy is not None:
            write_seeds(trials[name], accuracies((100, accuracy), (200, 0.5)))
    assert words(fig7_invariance, tmp_path) == expected


def test_fig7_reports_the_learning_accuracy_of_the_contrastive_net(write_seeds, tmp_path):
    write_seeds(trials_of(fig7_invariance)["contrastive"], accuracies((1, 0.25), (100, 0.1)))
    assert (
        "an accuracy of 0.25 among all classes" in draw(fig7_invariance, tmp_path).verdicts[1].why
    )


@pytest.mark.parametrize(("agem", "word"), [(0.5, "equal"), (0.7, "worse"), (None, NONE)])
def test_figa1_agem_must_be_far_below_dcl(write_seeds, tmp_path, agem, word):
    trials = trials_of(figa1_agem)
    write_seeds(trials["dcl"], accuracies((50, 0.9), (500, 0.1)))
    if agem is not None:
        write_seeds(trials["agem"], accuracies((50, agem)))
    assert words(figa1_agem, tmp_path) == [word]


@pytest.mark.parametrize(
    ("plain", "dark", "expected"),
    [
        (0.3, 0.4, ["equal", "equal"]),
        (0.3, 0.5, ["equal", "better"]),
        (0.3, 0.2, ["worse", "worse"]),
        (None, 0.2, [NONE, "worse"]),
    ],
)
def test_figa2_der_is_compared_with_replay_and_the_published_number(
    write_seeds, tmp_path, plain, dark, expected
):
    trials = trials_of(figa2_der)
    for name, accuracy in {"er-5k": plain, "der++-5k": dark}.items():
        if accuracy is not None:
            write_seeds(trials[name], accuracies((200, accuracy), (500, 0.99)))
    assert words(figa2_der, tmp_path) == expected


def test_figa2_tabulates_settings_that_were_not_chosen(write_seeds, write_run, tmp_path):
    trials = trials_of(figa2_der)
    write_seeds(trials["er-5k"], accuracies((50, 0.75), (200, 0.1)))
    write_run(trials["er-5k-3e-4"], accuracies((50, 0.78)), trials["er-5k-3e-4"].seeds[0])
    result = draw(figa2_der, tmp_path)
    table, steps = result.tables
    assert [row[:2] for row in table.rows] == [
        ["ER, 5,000", "chosen on another seed"],
        ["ER, 5,000, learning rate 3e-4", "not chosen"],
    ]
    assert table.head[3] == "after 50"
    assert [row[3] for row in table.rows] == ["0.750 (0.750 to 0.750)", "0.780 (1 seed)"]
    assert result.verdicts[0].verdict == NONE  # other settings stand for neither method
    ((step, *differences),) = steps.rows
    assert "learning rate" in step
    assert differences == ["–", "−0.030 (1 seed)", "–", "–"]


def test_figa2_steps_are_paired_over_seeds(write_run, tmp_path):
    trials = trials_of(figa2_der)
    for seed, (half, full) in {10: (0.5, 0.58), 11: (0.7, 0.76), 12: (0.2, 0.3)}.items():
        write_run(trials["der++-5k"], accuracies((100, half), (200, 0.1)), seed)
        write_run(trials["der++-5k-beta-1"], accuracies((100, full)), seed)
    write_run(trials["der++-5k-balanced"], accuracies((200, 0.3)), 10, tasks=200)
    labels, balanced = draw(figa2_der, tmp_path).tables[1].rows
    assert "beta 1 instead of 0.5" in labels[0]
    # differences .08, .06, .10: mean .08, standard error .02 / sqrt(3), t(2) = 4.303
    assert labels[1:] == ["–", "–", "+0.080 (+0.030 to +0.130)", "–"]
    assert "balanced" in balanced[0]
    assert balanced[1:] == ["–", "–", "–", "+0.200 (1 seed)"]


def test_figa2_goes_from_er_to_der_in_steps(tmp_path):
    """ER with DER++'s learning rate, then its labels, then its distance, then its weight of old labels."""
    trials = trials_of(figa2_der)
    preset = Runner(tmp_path, PAPER, "cpu").preset
    settings = {
        name: {**preset.settings_of(trial.method), **trial.settings}
        for name, trial in trials.items()
    }
    dark = settings["der++-5k"]
    assert settings["er-5k-3e-4"]["learning_rate"] == dark["learning_rate"]
    assert settings["der++-5k-beta-1"] == {**dark, "beta": 1.0}
    assert settings["der++-5k-labels"] == {**dark, "beta": 1.0, "alpha": 0.0}


@pytest.mark.parametrize(("replay", "word"), [(0.8, "equal"), (0.95, "worse"), (None, "undecided")])
def test_overview_dcl_must_end_above_all_methods_that_forget(write_seeds, tmp_path, replay, word):
    trials = trials_of(overview)
    write_seeds(trials["dcl"], end(0.9))
    write_seeds(trials["joint"], end(1.0))
    others = [
        trial for trial in trials.values() if trial.method not in ("joint", "dcl", "dcl-plus")
    ]
    for trial in others:
        accuracy = replay if trial.name == "er-20k" else 0.1
        if accuracy is not None:  # without one of them the statement is not decided
            write_seeds(trial, end(accuracy))
    assert words(overview, tmp_path) == [word]


def probed(*moments: tuple[int, int, int], just_learned: float = 1.0) -> Rows:
    """Probes with 100 images: the task learned, the task tested, and the number correct."""
    rows = [
        {
            "kind": "probe", "step": step, "learned": learned, "tested": tested, "correct": right,
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
    return [*rows, *accuracies((1, just_learned), (2, 1.0)), *ends]


def drop(lowest: int, last: int, just_learned: float = 1.0) -> Rows:
    """Accuracy on the first task is 1.0, drops while the second is learned, and ends at `last`."""
    return probed((0, 0, 100), (1, 0, lowest), (1, 0, last), just_learned=just_learned)


@pytest.mark.parametrize(
    ("replays", "others", "expected"),
    [
        ({"gap-er": (50, 100), "gap-der++": (50, 70)}, (20, 20), ["equal", "worse"]),
        ({"gap-er": (50, 100), "gap-der++": (50, 60)}, (20, 90), ["worse", "equal"]),  # a fifth
        ({"gap-er": (50, 50)}, (20, 20), ["worse", "worse"]),
        ({"gap-er": (100, 100)}, (20, 20), ["worse", "worse"]),  # nothing to come back
        ({}, (20, 20), [NONE, "worse"]),
    ],
)
def test_stability_losses_must_be_temporary(write_seeds, tmp_path, replays, others, expected):
    trials = trials_of(stability)
    regularised = dict.fromkeys(("gap-lwf", "gap-si", "gap-online-ewc", "gap-agem"), others)
    for name, counts in {**regularised, **replays}.items():
        write_seeds(trials[name], drop(*counts))
    assert words(stability, tmp_path) == [*expected, NONE]


def test_stability_reports_drop_and_recovery_of_each_method(write_seeds, tmp_path):
    trials = trials_of(stability)
    counts = {"gap-dcl": (20, 100), "gap-dcl-plus": (100, 100), "gap-lwf": (20, 28)}
    for name, pair in counts.items():
        write_seeds(trials[name], drop(*pair))
    result = draw(stability, tmp_path)
    assert [verdict.ours for verdict in result.verdicts] == [
        "not measured",
        "LwF: drops by 0.80, regains 0.10 of what it loses",
        "DCL: drops by 0.80, regains 1.00 of what it loses; DCL+: does not drop",
    ]
    (table,) = result.tables
    # learning accuracy, gap, in the first step, regained
    assert {row[0]: tuple(row[2:6]) for row in table.rows} == {
        "DCL+": ("1.000", "0.000", "–", "–"),
        "DCL": ("1.000", "0.800", "1.000", "1.000"),
        "LwF": ("1.000", "0.800", "1.000", "0.100"),
    }
    gaps = stability.gaps(ResultsFolder(tmp_path, PAPER))
    assert gaps == pytest.approx({"DCL+": 0.0, "DCL": 0.8, "LwF": 0.8})


def test_stability_shows_no_gap_where_a_task_is_forgotten_for_good(write_seeds, tmp_path):
    write_seeds(trials_of(stability)["gap-si"], drop(20, 20))
    result = draw(stability, tmp_path)
    assert result.verdicts[1].ours == "SI: regains 0.00 of what it loses"
    assert result.verdicts[1].verdict == "worse"
    assert result.tables[0].rows[0][3] == "–"
    assert stability.gaps(ResultsFolder(tmp_path, PAPER)) == {}


def test_stability_shows_no_gap_of_a_method_that_did_not_learn(write_seeds, tmp_path):
    trials = trials_of(stability)
    write_seeds(trials["gap-er"], drop(50, 100))
    write_seeds(trials["gap-lwf"], drop(20, 20, just_learned=0.5))
    result = draw(stability, tmp_path)
    learned, others = result.tables
    assert [row[0] for row in learned.rows] == ["ER, 5,000"]
    assert others.rows == [["LwF", "10, 11, 12", "0.500, 0.500, 0.500"]]
    assert [verdict.verdict for verdict in result.verdicts] == ["undecided", "undecided", NONE]
    assert result.verdicts[0].why.endswith("no rows yet of: der++")
    assert result.verdicts[1].ours == "none of them learned its tasks"
    assert stability.gaps(ResultsFolder(tmp_path, PAPER)) == {"ER, 5,000": pytest.approx(0.5)}


def test_stability_shows_a_row_only_where_every_seed_learned(write_run, tmp_path):
    trial = trials_of(stability)["gap-er"]
    first, second, third = trial.seeds
    write_run(trial, drop(50, 100), first)
    write_run(trial, drop(50, 100), second)
    write_run(trial, drop(0, 40, just_learned=0.85), third)  # mean learning accuracy 0.95
    result = draw(stability, tmp_path)
    (others,) = result.tables
    assert others.rows == [["ER, 5,000", "10, 11, 12", "1.000, 1.000, 0.850"]]
    assert len(result.figures) == 1  # accuracy on the first task, without bars of gaps
    assert stability.gaps(ResultsFolder(tmp_path, PAPER)) == {}


def test_stability_shows_no_row_without_learning_accuracy(write_seeds, tmp_path):
    rows = [row for row in drop(50, 100) if row["kind"] not in ("test", "diagonal")]
    write_seeds(trials_of(stability)["gap-er"], [*rows, *accuracies((2, 0.5))])
    (others,) = draw(stability, tmp_path).tables
    assert others.title == "Did not learn"


def test_stability_has_no_gap_where_one_seed_regains_nothing(write_run, tmp_path):
    trial = trials_of(stability)["gap-er"]
    for seed, counts in zip(trial.seeds, [(50, 100), (50, 100), (20, 20)], strict=True):
        write_run(trial, drop(*counts), seed)
    assert stability.gaps(ResultsFolder(tmp_path, PAPER)) == {}


def test_stability_is_undecided_where_a_method_of_the_statement_did_not_learn(
    write_seeds, tmp_path
):
    trials = trials_of(stability)
    for name in ("gap-agem", "gap-si", "gap-online-ewc"):
        write_seeds(trials[name], drop(50, 100))
    write_seeds(trials["gap-lwf"], drop(20, 20, just_learned=0.5))
    verdict = draw(stability, tmp_path).verdicts[1]
    assert verdict.verdict == "undecided"
    assert verdict.why.endswith("did not learn their tasks: LwF")


def test_stability_judges_the_plain_trial_and_lists_its_variants(write_seeds, tmp_path):
    trials = trials_of(stability)
    write_seeds(trials["gap-er"], drop(50, 100))
    for name in ("gap-er-reset", "gap-er-averaged"):
        write_seeds(trials[name], drop(20, 20))
    result = draw(stability, tmp_path)
    assert result.verdicts[0].ours == "ER, 5,000: drops by 0.50, regains 1.00 of what it loses"
    assert [row[0] for row in result.tables[0].rows] == [
        "ER, 5,000",
        "ER, 5,000, averaged weights",
        "ER, 5,000, optimizer reset",
    ]


def test_stability_keeps_optimizer_state_except_in_controls():
    resets = {
        trial.name: trial.settings["reset_optimizer"] for trial in trials_of(stability).values()
    }
    assert {name for name, reset in resets.items() if reset} == {
        "gap-dcl-reset",
        "gap-er-reset",
        "gap-dcl-same-reset",
    }


def test_stability_control_learns_the_same_task_again(tmp_path):
    trial = trials_of(stability)["gap-dcl-same"]
    first, second = list(Runner(tmp_path, "tiny", "cpu").stream(trial))[:2]
    assert first.classes == second.classes
    assert all(
        (a == b).all() for a, b in zip(first.train.factors, second.train.factors, strict=True)
    )


def test_stability_leaves_out_runs_without_probes(write_seeds, tmp_path):
    write_seeds(trials_of(stability)["gap-er"], accuracies((2, 1.0)))
    result = draw(stability, tmp_path)
    assert [verdict.ours for verdict in result.verdicts] == ["not measured"] * 3
    assert not result.figures
    assert not result.tables


def test_continuous_compares_poses_on_the_grid_and_in_between(write_seeds, tmp_path):
    grid = one_shot_rows({("standard", 1000): 0.95})
    between = [{**row, "factors": "continuous", "correct": 8000} for row in grid]
    write_seeds(trials_of(continuous)["dcl"], [*end(0.9), *grid, *between])
    result = draw(continuous, tmp_path)
    assert result.tables[0].rows == [["DCL", "0.9500", "0.8000"]]
    assert result.verdicts[0].ours == "DCL: 0.8000"


def spent(size: int) -> Rows:
    return [
        {
            "kind": "task", "learned": 199, "step": 5, "images": 100, "seconds": 2.0,
            "evaluation_seconds": 0.25, "loss": 0.1, "peak_memory": 2, "bytes": {"net": size},
            "parameters": 1,
        }
    ]  # fmt: skip


def test_cost_excludes_joint_training_from_accuracy_per_byte(write_seeds, tmp_path):
    trials = trials_of(cost)
    write_seeds(trials["er-5k"], [*end(0.5), *spent(10_000_000)], tasks=200)
    dear = [*end(0.9), *spent(90_000_000)]  # more, but less for a byte
    write_seeds(trials["er-20k"], dear, tasks=200)
    write_seeds(trials["joint"], [*end(1.0), *spent(1_000_000)], tasks=200)
    result = draw(cost, tmp_path)
    assert result.verdicts[0].ours == "ER, 5,000, 0.5000 with 10 MB"
    assert len(result.figures) == 2


def one_task(correct: int) -> Rows:
    """Rows of a run of one task, tested on 1,000 images."""
    counts = {"correct": correct, "total": 1000}
    return [{"kind": "test", "step": 1, "learned": 0, "tested": 0, **counts}]


def test_scenarios_table_has_methods_as_rows_and_scenarios_as_columns(write_seeds, tmp_path):
    trials = trials_of(scenarios)
    write_seeds(trials["blurry-er"], one_task(300))
    write_seeds(trials["domain-er"], one_task(600))
    write_seeds(trials["domain-fine-tuning"], one_task(200))
    table, learning = draw(scenarios, tmp_path).tables
    assert table.head == learning.head
    assert table.head[1:] == ["blurry", "recurring", "domain"]
    assert [row[1:] for row in learning.rows] == [["0.300", "–", "0.600"], ["–", "–", "0.200"]]
    assert [row[1:] for row in table.rows] == [["0.300", "–", "0.600"], ["–", "–", "0.200"]]


def test_scenarios_weight_images_equally(write_seeds, tmp_path):
    (large,) = end(0.9)
    small = {**large, "tested": 1, "correct": 0, "total": 200}
    write_seeds(trials_of(scenarios)["blurry-er"], [large, small])
    assert draw(scenarios, tmp_path).verdicts[0].ours == "blurry, ER, 5,000: 0.750"  # 900 of 1,200
