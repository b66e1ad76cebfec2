"""Repeated rows agree bit for bit, within noise, or not."""

from __future__ import annotations

from typing import Any

import pytest

from everlearn.runs.agreement import compare_rows

Rows = list[Any]
OPEN_SET: dict[str, Any] = {
    "kind": "open-set",
    "learned": 0,
    "step": 0,
    "known": [0.1] * 60 + [0.9] * 40,
    "unknown": [0.2] * 30 + [0.95] * 70,
    "correct": [1] * 90 + [0] * 10,
}
THETA = {
    "kind": "theta",
    "learned": 0,
    "step": 0,
    "tested": 0,
    "squared_errors": [0.1] * 6,
    "total": 100,
}


def run_rows(*correct: int, seconds: float = 1.0, total: int = 1000) -> Rows:
    """Rows of a run that was tested after every task, on the first task."""
    tests = [
        {"kind": "test", "learned": task, "step": task, "tested": 0, "correct": n, "total": total}
        for task, n in enumerate(correct)
    ]
    costs = [
        {"kind": "task", "learned": task, "step": task, "loss": 0.5, "seconds": seconds}
        for task in range(len(correct))
    ]
    return [*tests, *costs]


def task_tests(*correct: int, total: int = 100) -> Rows:
    """Rows of a run that was tested on all its tasks after the last one."""
    last = len(correct) - 1
    return [
        {"kind": "test", "learned": last, "step": 9, "tested": task, "correct": n, "total": total}
        for task, n in enumerate(correct)
    ]


def test_times_and_the_order_of_costs_do_not_count() -> None:
    recorded = run_rows(900, 800)
    repeated = sorted(run_rows(900, 800, seconds=2.0), key=lambda row: row["learned"])
    assert compare_rows(recorded, repeated) == ("same bits", "")


# Two proportions of 1,000 images, by hand: of 900 and 871 the mean is 0.8855, the deviation of the
# difference sqrt(2 * 0.8855 * 0.1145 / 1000) = 0.01424, and 1.96 of it and Yates's 0.001 are 0.0289: 28
# images. Of 900 and 926 they are 0.0257: 25 images.
@pytest.mark.parametrize(
    ("correct", "verdict"),
    [(872, "within noise"), (871, "differs"), (925, "within noise"), (926, "differs")],
)
def test_one_accuracy_may_move_as_two_samples_of_images_do(correct: int, verdict: str) -> None:
    found = compare_rows(run_rows(900), run_rows(correct))
    assert found.verdict == verdict
    assert f"900, repeated {correct}" in found.detail or "0.9000, repeated" in found.detail


def test_the_more_evaluations_the_wider_the_limits() -> None:
    assert compare_rows(run_rows(900), run_rows(870)).verdict == "differs"
    nineteen = [800] * 19
    repeated = run_rows(870, *nineteen)
    assert compare_rows(run_rows(900, *nineteen), repeated).verdict == "within noise"
    repeated = run_rows(840, *nineteen)
    assert compare_rows(run_rows(900, *nineteen), repeated).verdict == "differs"


def test_three_seeds_show_the_noise_of_training() -> None:
    # Mean 0.5, deviation 0.05: half of Student's prediction interval is 4.303 * 0.05 * sqrt(4 / 3) =
    # 0.2484, and Yates's correction 0.0007: 249 images.
    others = [run_rows(450), run_rows(550)]
    assert compare_rows(run_rows(500), run_rows(251), others).verdict == "within noise"
    assert compare_rows(run_rows(500), run_rows(250), others).verdict == "differs"
    assert compare_rows(run_rows(500), run_rows(251), others[:1]).verdict == "differs"


def test_seeds_that_were_tested_otherwise_do_not_count() -> None:
    others = [run_rows(425, total=500), run_rows(475, total=500)]
    assert compare_rows(run_rows(900), run_rows(800), others).verdict == "differs"


def test_an_evaluation_that_other_seeds_lack_is_compared_without_them() -> None:
    # With two evaluations, of test images alone: of 900 and 865 the mean is 0.8825 and the limit 2.241 *
    # sqrt(2 * 0.8825 * 0.1175 / 1000) + 0.001 = 0.0333; of 900 and 868 it is 0.0331.
    def end(correct: int) -> Rows:
        return [{**run_rows(correct)[0], "kind": "one-shot"}]

    others = [run_rows(450), run_rows(550)]
    recorded = [*run_rows(500), *end(900)]
    found = compare_rows(recorded, [*run_rows(251), *end(868)], others)
    assert found.verdict == "within noise"
    found = compare_rows(recorded, [*run_rows(251), *end(865)], others)
    assert found.verdict == "differs"
    assert "row 'one-shot' after task 0, tested on task 0: correct" in found.detail
    assert "is 0.9000, repeated 0.8650" in found.detail


def test_a_small_drop_in_all_tests_shows_in_their_average() -> None:
    seeds = [task_tests(*correct) for correct in ([84, 86] * 10, [86, 84] * 10, [85, 85] * 10)]
    assert compare_rows(seeds[0], task_tests(*[78] * 20)).verdict == "within noise"
    found = compare_rows(seeds[0], task_tests(*[78] * 20), seeds[1:])
    assert found.verdict == "differs"
    assert "accuracy averaged over 20 tests is 0.8500 over 3 seeds, repeated 0.7800" in found.detail


def test_swapped_tasks_differ() -> None:
    found = compare_rows(task_tests(0, 100), task_tests(100, 0))
    assert found.verdict == "differs"
    assert found.detail.startswith(
        "row 'test' after task 1, tested on task 0: correct (of 100 images)"
    )


def test_probes_are_compared_step_by_step() -> None:
    def probes(*correct: int) -> Rows:
        return [{**task_tests(n)[0], "kind": "probe", "step": k} for k, n in enumerate(correct)]

    # 50 probes of the same 100 images: a fall of 10 images in each is no proof, one of 50 in one is.
    assert compare_rows(probes(*[80] * 50), probes(*[70] * 50)).verdict == "within noise"
    assert compare_rows(probes(*[80] * 50), probes(30, *[80] * 49)).verdict == "differs"


def test_evaluations_are_told_apart_by_mode_factors_and_classes() -> None:
    def one_shot(mode: str, factors: str, classes: int, correct: int) -> Rows:
        key = {"mode": mode, "factors": factors, "classes": classes}
        return [
            {"kind": "one-shot", "learned": 0, "step": 9, **key, "correct": correct, "total": 100}
        ]

    first = one_shot("standard", "grid", 10, 90)
    for other in (
        ("generalised", "grid", 10),
        ("standard", "continuous", 10),
        ("standard", "grid", 9),
    ):
        recorded = [*first, *one_shot(*other, 20)]
        repeated = [*one_shot("standard", "grid", 10, 20), *one_shot(*other, 90)]
        assert compare_rows(recorded, repeated).verdict == "differs"


def test_errors_may_change_less_than_fourfold() -> None:
    def change(factor: float) -> str:
        errors = [factor**2 * error for error in THETA["squared_errors"]]  # type: ignore[union-attr]
        rows: Rows = [*run_rows(900), {**THETA, "squared_errors": errors}]
        return compare_rows([*run_rows(900), THETA], rows).verdict

    assert [change(3.9), change(1 / 3.9)] == ["within noise"] * 2
    assert [change(4.1), change(1 / 4.1)] == ["differs"] * 2


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_differs_and_is_named(number: float) -> None:
    found = compare_rows([THETA], iter([{**THETA, "squared_errors": [0.1, number]}]))
    assert found.verdict == "differs"
    assert found.detail.startswith("row 'theta' after task 0, tested on task 0: ")
    assert f"squared_errors/1 must be a finite number, found {number}" in found.detail


def test_novelty_scores_are_compared_by_the_area_under_their_curve() -> None:
    recorded = [*run_rows(900), OPEN_SET]
    swapped = {**OPEN_SET, "known": OPEN_SET["unknown"], "unknown": OPEN_SET["known"]}
    assert compare_rows(recorded, [*run_rows(900), swapped]).verdict == "differs"
    wrong = {**OPEN_SET, "correct": [0] * 100}
    assert compare_rows(recorded, [*run_rows(900), wrong]).verdict == "differs"
    rescaled = {**OPEN_SET, "known": [0.05] * 60 + [0.45] * 40, "unknown": [0.1] * 30 + [0.5] * 70}
    assert compare_rows(recorded, [*run_rows(900), rescaled]).verdict == "within noise"


@pytest.mark.parametrize("name", ["known", "unknown"])
def test_another_number_of_images_in_an_open_set_row_differs(name: str) -> None:
    doubled = {**OPEN_SET, name: OPEN_SET[name] * 2}
    if name == "known":
        doubled["correct"] = OPEN_SET["correct"] * 2
    found = compare_rows([*run_rows(900), OPEN_SET], [*run_rows(900), doubled])
    assert found.verdict == "differs"
    assert found.detail.endswith(f"{name} images is 100, repeated 200")


def test_kinds_that_are_not_compared_are_named() -> None:
    latents = {"kind": "latents", "learned": 0, "step": 0, "tested": 0, "kl": [0.5]}
    found = compare_rows([*run_rows(900), latents], [*run_rows(901), {**latents, "kl": [0.6]}])
    assert found.verdict == "within noise"
    assert found.detail.endswith("repeated 901; not compared: rows of kind 'latents'")


def test_a_missing_row_without_counts_differs() -> None:
    recorded = [*run_rows(900), OPEN_SET]
    found = compare_rows(recorded, run_rows(901))
    assert found.verdict == "differs"
    assert found.detail == "row 'open-set' after task 0: the row is not repeated"
    assert compare_rows(run_rows(901), recorded).verdict == "differs"
    assert compare_rows(recorded, [*run_rows(901), OPEN_SET]).verdict == "within noise"


def test_a_missing_row_and_another_number_of_images_or_steps_differ() -> None:
    assert compare_rows(run_rows(900, 800), run_rows(900)).verdict == "differs"
    assert compare_rows(run_rows(900), run_rows(900, 800)).verdict == "differs"
    assert compare_rows(run_rows(900), run_rows(900, total=1001)).verdict == "differs"
    repeated = run_rows(900)
    repeated[-1]["step"] = 7
    assert compare_rows(run_rows(900), repeated).verdict == "differs"


def test_an_accuracy_that_a_row_lacks_differs() -> None:
    repeated = run_rows(900)
    del repeated[0]["correct"]
    found = compare_rows(run_rows(900), repeated)
    assert found.verdict == "differs"
    assert found.detail.endswith("correct is 900, repeated absent")


def test_the_first_difference_names_the_row_and_the_key() -> None:
    repeated = run_rows(900, 800)
    repeated[-1]["loss"] = 0.25
    found = compare_rows(run_rows(900, 800), repeated)
    assert found.verdict == "within noise"
    difference = "row 'task' after task 1: loss is 0.5, repeated 0.25"
    assert found.detail == f"{difference}; not compared: rows of kind 'task'"


def test_a_key_that_is_absent_or_none_is_a_difference() -> None:
    repeated = run_rows(900)
    repeated[-1]["diagnostics"] = None
    found = compare_rows(run_rows(900), repeated)
    assert found.verdict == "within noise"
    assert "diagnostics is absent, repeated null" in found.detail
    assert "diagnostics is null, repeated absent" in compare_rows(repeated, run_rows(900)).detail


def test_long_values_that_begin_alike_differ() -> None:
    rows: Rows = [{"kind": "latents", "learned": 0, "step": 1, "tested": 0, "kl": [0.5] * 50}]
    found = compare_rows(rows, [{**rows[0], "kl": [0.5] * 51}])
    assert "kl is [0.5," in found.detail


def test_rows_without_accuracies_and_errors_are_not_compared() -> None:
    recorded: Rows = [{"kind": "disentanglement", "learned": 0, "step": 1, "mig": 0.5}]
    assert compare_rows(recorded, recorded).verdict == "same bits"
    found = compare_rows(recorded, [{**recorded[0], "mig": 0.6}])
    assert found.verdict == "not compared"
    assert "mig is 0.5, repeated 0.6" in found.detail
