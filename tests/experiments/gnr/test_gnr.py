"""Experiments on generative negative replay: figures and verdicts from hand-written rows."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from everlearn.experiments.framework import groups
from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.trial import PAPER, Trial
from everlearn.experiments.gnr import ablation as gnr_ablation
from everlearn.experiments.gnr import ar1_long, replay_fraction
from everlearn.experiments.gnr import balance as gnr_balance
from everlearn.experiments.gnr import generator as gnr_generator
from everlearn.experiments.gnr import long as gnr_long
from everlearn.experiments.gnr import nc as gnr_nc
from everlearn.experiments.gnr import nic as gnr_nic
from everlearn.experiments.gnr.modes import describe_mean_shift, judge_orderings
from everlearn.experiments.gnr.trials import LABELS
from everlearn.report.charts.accuracy_lines import all_classes_lines
from everlearn.report.experiment import ExperimentResult

from ..conftest import accuracies

pytestmark = pytest.mark.integration

pytest.importorskip("matplotlib")

NONE = "not comparable"
Rows = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def no_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the drawing of lines and bars to other tests."""
    monkeypatch.setattr(groups, "draw_lines", lambda *_, **__: "<svg/>")
    monkeypatch.setattr(gnr_ablation, "draw_bars", lambda *_, **__: "<svg/>")


def ended(*shares: float, seen: float = 0.5) -> Rows:
    """Tests on all classes after each task, and on the first task at the end."""
    rows: Rows = [
        {
            "kind": "all_classes", "step": task, "learned": task, "correct": round(1000 * share),
            "total": 1000, "seen_correct": round(100 * seen), "seen_total": 100,
        }
        for task, share in enumerate(shares)
    ]  # fmt: skip
    last = len(shares) - 1
    test = {"kind": "test", "step": last, "learned": last, "tested": 0, "correct": 1, "total": 2}
    return [*rows, test]


def tasks(*pairs: tuple[float | None, float | None]) -> Rows:
    """Cost rows of k + 1 seconds each, with the norms of new and old class weights."""
    return [
        {
            "kind": "task", "step": k, "learned": k, "seconds": k + 1.0, "images": 1,
            "evaluation_seconds": 0.0, "peak_memory": 0, "bytes": {"net": 4000}, "parameters": 1,
            "diagnostics": {"new_norm": new, "old_norm": old},
        }
        for k, (new, old) in enumerate(pairs)
    ]  # fmt: skip


def trials_of(module: ModuleType) -> dict[str, Trial]:
    return {trial.name: trial for trial in module.SETTINGS[PAPER].trials}


def draw(module: ModuleType, folder: Any) -> ExperimentResult:
    return module.figure(ResultsFolder(folder, PAPER))


GOOD = {
    "none": 0.60, "ar1": 0.61, "pr-od": 0.70, "nr-od": 0.68, "pr-gd": 0.50, "nr-gd": 0.66,
    "pr-rd": 0.40, "nr-rd": 0.64,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "worse"),
    [
        ({}, []),
        ({"PR-GD": 0.609}, []),
        ({"PR-GD": 0.619}, [0]),
        ({"PR-GD": 0.609, "no replay": 0.58}, [4]),
        ({"PR-OD": 0.641}, []),
        ({"no replay": 0.67}, [1]),
        ({"AR1*": 0.661}, [2]),
        ({"PR-OD": 0.63}, [3]),
        ({"NR-RD": 0.39}, [5]),
    ],
)
def test_each_ordering_is_judged_separately(changes, worse):
    ends = {LABELS.get(mode, "AR1*"): end for mode, end in GOOD.items()} | changes
    accuracies = {label: dict.fromkeys(range(3), end) for label, end in ends.items()}
    found = [verdict.verdict for verdict in judge_orderings(accuracies)]
    assert found == ["worse" if k in worse else "equal" for k in range(6)]


@pytest.mark.parametrize("module", [gnr_nc, gnr_nic])
@pytest.mark.parametrize(("spread", "word"), [(0.1, "undecided"), (0.01, "equal")])
def test_verdicts_use_the_interval_over_seeds(write_run, tmp_path, module, spread, word):
    trials = trials_of(module)
    name = module.__name__.rpartition(".")[2]
    for seed in (0, 1, 2):
        write_run(trials[f"gnr-{name}-nr-gd"], ended(0.2, 0.73 + spread * (seed - 1)), seed)
        write_run(trials[f"gnr-{name}-pr-gd"], ended(0.2, 0.65), seed)
    result = draw(module, tmp_path)
    assert result.verdicts[0].ours == "NR-GD: 0.730; PR-GD: 0.650"
    # 0.03 above the margin of 0.05; Student's interval is 2.48 times the deviation wide
    assert result.verdicts[0].verdict == word
    assert len(result.missing) == 18


def test_missing_modes_do_not_prevent_other_verdicts(write_seeds, tmp_path):
    trials = trials_of(gnr_nc)
    for mode in ("nr-gd", "pr-gd"):
        write_seeds(trials[f"gnr-nc-{mode}"], ended(0.2, GOOD[mode]))
    words = [found.verdict for found in draw(gnr_nc, tmp_path).verdicts]
    assert words == ["equal", *5 * [NONE]]


def test_table_shows_final_and_mean_accuracies_beside_the_published_ones(write_run, tmp_path):
    trials = trials_of(gnr_nc)
    for seed, end in enumerate((0.6, 0.7, 0.8)):
        write_run(trials["gnr-nc-nr-gd"], ended(0.2, end, seen=0.9), seed)
    write_run(trials["gnr-nc-none"], ended(0.2, 0.4, seen=0.3))
    (table,) = draw(gnr_nc, tmp_path).tables
    assert table.rows == [
        ["no replay", "0.400", "0.300", "0.300", "0.300", "–", "–"],
        [
            "NR-GD", "0.700 ± 0.100", "0.450 ± 0.050", "0.900 ± 0.000", "0.900 ± 0.000",
            "0.689 ± 0.009", "0.446 ± 0.008",
        ],
    ]  # fmt: skip


def test_lines_of_all_classes_and_of_classes_seen(write_run, tmp_path):
    trial = trials_of(gnr_nc)["gnr-nc-nr-gd"]
    for seed in (0, 1):
        write_run(trial, ended(0.2 + seed / 10, 0.5, seen=0.9), seed)
    groups = ResultsFolder(tmp_path, PAPER).groups([trial])
    ((line,), (seen,)) = all_classes_lines(groups), all_classes_lines(groups, seen_only=True)
    assert line.x.tolist() == [1, 2]
    assert line.mean.tolist() == pytest.approx([0.25, 0.5])
    assert line.low.tolist() == pytest.approx([0.2, 0.5])
    assert seen.mean.tolist() == pytest.approx([0.9, 0.9])


def test_runs_without_tests_on_all_classes_have_no_line(write_run, tmp_path):
    trial = trials_of(gnr_nc)["gnr-nc-nr-gd"]
    write_run(trial, ended(0.5)[1:])
    assert all_classes_lines(ResultsFolder(tmp_path, PAPER).groups([trial])) == []


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        (GOOD, ["equal", "equal", "equal"]),
        (GOOD | {"pr-gd": 0.67, "nr-rd": 0.3, "nr-od": 0.73}, ["worse", "worse", "worse"]),
        (GOOD | {"nr-od": 0.71}, ["equal", "equal", "equal"]),
        (GOOD | {"pr-gd": 0.661}, ["worse", "equal", "equal"]),
    ],
)
def test_ablation_judges_both_streams(write_seeds, tmp_path, ends, expected):
    trials = trials_of(gnr_ablation)
    for mode, end in ends.items():
        write_seeds(trials[f"gnr-nic-{mode}"], ended(end))
    result = draw(gnr_ablation, tmp_path)
    assert [found.verdict for found in result.verdicts] == [NONE, NONE, NONE, *expected]
    table, differences = result.tables
    rows = {row[0]: row[1:] for row in table.rows}
    ours = f"{ends['nr-gd']:.3f} ± 0.000"
    assert rows["NR-GD"] == ["–", "0.689 ± 0.009", ours, "0.615 ± 0.007"]
    lead = f"{ends['nr-gd'] - ends['pr-gd']:+.3f}".replace("-", "−")
    assert differences.rows[0] == ["NR-GD minus PR-GD", "–", f"{lead} ({lead} to {lead})"]


@pytest.mark.parametrize(
    ("mode", "ends", "word"),
    [
        ("nr-rd", (0.3, 0.4, 0.2), "undecided"),
        ("pr-od", (0.3, 0.4, 0.5), "undecided"),
        ("pr-od", (0.3,), NONE),
    ],
)
def test_the_best_replay_fraction_of_one_seed_is_undecided(write_run, tmp_path, mode, ends, word):
    trials = trials_of(replay_fraction)
    write_run(trials["gnr-nc-none"], ended(0.9))
    for percent, end in zip((10, 30, 50), ends, strict=False):
        write_run(trials[f"gnr-share-{mode}-{percent}"], ended(end))
    result = draw(replay_fraction, tmp_path)
    told = {found.statement.split(" ")[0]: found for found in result.verdicts}[mode.upper()]
    assert told.verdict == word
    assert len(result.figures) == 1


def pair_rows(end: float, recognised: float) -> Rows:
    """One experience, and how much of what it replays is recognised."""
    (cost,) = tasks((1.0, 1.0))
    return [*ended(end), cost | {"diagnostics": {"recognised": recognised}}]


def test_generator_counts_every_pair_on_both_sides_of_the_cut(write_run, tmp_path):
    trials = trials_of(gnr_generator)
    ends = {
        "gnr-nc-{}-rd": (0.5, 0.6, 0.1),  # positive, negative, recognised
        "gnr-nic-{}-od": (0.9, 0.8, 0.9),
        "gnr-rate-{}-gd-1e-3": (0.8, 0.7, 0.2),  # the exception
        "gnr-share-{}-rd-30": (0.3, 0.4, 0.0),
    }
    for name, (positive, negative, recognised) in ends.items():
        write_run(trials[name.format("pr")], pair_rows(positive, recognised))
        write_run(trials[name.format("nr")], pair_rows(negative, recognised))
    write_run(trials["gnr-nc-pr-gd"], pair_rows(0.9, 0.1))  # has no partner
    result = draw(gnr_generator, tmp_path)
    assert [row[0] for row in result.tables[0].rows] == [
        "NC, RD, 30 %",
        "NC, RD",
        "NC, GD, rate 1e-3",
        "NIC, OD",
    ]
    (verdict,) = result.verdicts
    assert verdict.ours == "in 3 of 4 pairs: 2 of 3 below the cut, 1 of 1 above it"
    assert "after seeing" in verdict.why


def test_runs_of_different_lengths_are_a_pair_after_the_tasks_that_both_learned(
    write_run, tmp_path
):
    def learned(*recognised: float) -> Rows:
        rows = tasks(*[(1.0, 1.0)] * len(recognised))
        return [
            row | {"learned": 100 * k, "diagnostics": {"recognised": share}}
            for k, (row, share) in enumerate(zip(rows, recognised, strict=True))
        ]

    trials = trials_of(gnr_generator)
    longer = accuracies((100, 0.3), (200, 0.2), (500, 0.05))
    # Over 200 tasks 0.2 is recognised and negatives are ahead; over 500 neither is so.
    write_run(trials["gnr-long"], [*longer, *learned(0.3, 0.1, 0.9, 0.9)])
    shorter = [*accuracies((100, 0.2), (200, 0.1)), *learned(0.2, 0.2)]
    write_run(trials["gnr-pr-long"], shorter, tasks=200)
    result = draw(gnr_generator, tmp_path)
    (table,) = result.tables
    assert table.rows == [["paper's stream, GD", "0", "0.200", "0.100", "0.200", "+0.100"]]
    assert result.verdicts[0].ours == "in 1 of 1 pairs: 1 of 1 below the cut, 0 of 0 above it"


def test_generator_pairs_trials_that_differ_only_in_the_mode():
    found = trials_of(gnr_generator)
    assert len(found) % 2 == 0
    for trial in found.values():
        role, data = trial.settings["replay_mode"].split("-")
        other = {"pr": "nr", "nr": "pr"}[role]
        name = trial.name.replace(f"-{role}-{data}", f"-{other}-{data}")
        twin = found[{"gnr-long": "gnr-pr-long", "gnr-pr-long": "gnr-long"}.get(name, name)]
        assert twin.settings == {**trial.settings, "replay_mode": f"{other}-{data}"}
        assert (twin.stream, twin.plan, twin.seeds) == (trial.stream, trial.plan, trial.seeds)


def test_norm_ratios_leave_out_the_first_experience(write_run, tmp_path):
    trials = trials_of(gnr_balance)
    costs = tasks((1.0, 0.0), (3.0, 2.0), (1.0, 2.0))
    write_run(trials["gnr-nc-pr-od"], [*ended(0.2, 0.5, 0.6), *costs])
    write_run(
        trials["gnr-rate-pr-od-1e-2"], [*ended(0.2, 0.5, 0.8), *tasks((1.0, 0.0), (None, 2.0))]
    )
    write_run(trials["gnr-rate-none-1e-2"], ended(0.2, 0.5, 0.9))
    result = draw(gnr_balance, tmp_path)
    (table,) = result.tables
    assert table.rows == [
        ["PR-OD", "0.003", "0.600", "1.000"],
        ["no replay", "0.01", "0.900", "–"],
        ["PR-OD", "0.01", "0.800", "–"],
    ]
    assert result.verdicts[0].ours == "0.003: PR-OD, 0.600; 0.01: no replay, 0.900"
    assert len(result.figures) == 1


def test_cost_table_compares_first_and_last_tasks(write_run, tmp_path):
    trial = trials_of(gnr_long)["gnr-long"]
    write_run(trial, [*ended(0.5), *tasks(*21 * [(1.0, 1.0)])])
    (table,) = draw(gnr_long, tmp_path).tables
    assert table.rows[0] == ["GNR", "1", "8.20", "4.0 kB"]


def test_long_streams_compare_accuracies_after_as_many_tasks(write_run, tmp_path):
    longer = accuracies((100, 0.8), (200, 0.7), (500, 0.1))
    write_run(trials_of(gnr_long)["gnr-long"], longer)
    write_run(trials_of(gnr_long)["gnr-pr-long"], accuracies((100, 0.6), (200, 0.5)), tasks=200)
    write_run(trials_of(gnr_long)["bir-long"], accuracies((100, 0.3)), tasks=100)
    result = draw(gnr_long, tmp_path)
    assert [(verdict.statement, verdict.ours) for verdict in result.verdicts] == [
        (
            "Accuracy after 100 tasks",
            "GNR (seed 0): 0.800; GNR, positive (seed 0): 0.600; BIR (seed 0): 0.300",
        ),
        ("Accuracy after 200 tasks", "GNR (seed 0): 0.700; GNR, positive (seed 0): 0.500"),
    ]
    assert len(result.runs) == 3


def test_ar1_on_the_long_stream_is_compared_after_200_tasks(write_run, tmp_path):
    write_run(trials_of(ar1_long)["ar1-free-long"], accuracies((200, 0.5), (500, 0.1)))
    (verdict,) = draw(ar1_long, tmp_path).verdicts
    assert (verdict.statement, verdict.verdict) == ("Accuracy after 200 tasks", NONE)
    assert verdict.ours == "AR1*free, 5,000 (seed 0): 0.500"


def test_the_note_names_the_mean_shifts_of_the_runs():
    def run(**settings):
        return SimpleNamespace(method_settings=settings)

    runs = [run(mean_shift="per_class"), run(mean_shift="global"), run(learning_rate=1.0)]
    assert describe_mean_shift(runs).startswith("Runs have the mean shift global and per_class;")
    assert describe_mean_shift(runs[2:]) == ""
