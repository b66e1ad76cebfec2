"""V13 to V16, and what VASE must find and keep, hold in the committed rows; or by how much not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from everlearn.experiments import EXPERIMENTS
from everlearn.experiments.found import Found
from everlearn.experiments.trial import PAPER
from everlearn.experiments.vase import PLAIN, VASE, A, B
from everlearn.experiments.vase_fig5 import (
    CODES,
    HERE,
    MOVING,
    PART,
    PAST,
    STILL,
    accuracies,
)
from everlearn.experiments.vase_probes import shares_position
from everlearn.experiments.vase_read import average, exact, used
from everlearn.metrics.rows import of_kind
from everlearn.report import Group

pytest.importorskip("matplotlib")

ROWS = Path(__file__).parents[2] / "results" / "paper"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not ROWS.is_dir(), reason="the committed rows are not here"),
]


def group_of(course, ablation: str, seeds: tuple[int, ...] = (0, 1, 2)) -> Group:
    (group,) = Found(ROWS, PAPER).groups([course[PAPER].ablation(ablation, seeds=seeds)])
    assert len(group.runs) == len(seeds)
    return group


@pytest.fixture(scope="module")
def vase() -> Group:
    return group_of(A, VASE, (0, 1, 2, 3, 4))


@pytest.fixture(scope="module")
def plain() -> Group:
    return group_of(A, PLAIN)


def verdicts(name: str) -> dict[str, str]:
    found = EXPERIMENTS[name].figure(Found(ROWS, PAPER)).verdicts
    return {verdict.statement: verdict.verdict for verdict in found}


def test_v13_the_best_accuracies_are_within_three_points(vase, plain):
    assert abs(average(vase, "best") - average(plain, "best")) <= 3


@pytest.mark.xfail(
    reason="-3.5 and -6.6: what moves last gives back what was lost (lowest: -4.9 and -14.0)",
    strict=True,
)
def test_v13_vase_loses_five_points_less_than_nothing_at_all(vase, plain):
    assert average(vase, "change") >= average(plain, "change") + 5


def test_v13_does_so_where_accuracies_are_lowest_and_through_five_environments(vase, plain):
    assert average(vase, "lowest") >= average(plain, "lowest") + 5
    five = [group_of(B, VASE, (0, 1, 2, 3, 4)), group_of(B, PLAIN, (0,))]
    ours, none = (average(group, "change") for group in five)
    assert ours >= none + 5


def test_v14_latents_of_position_are_shared_in_two_seeds_of_three(vase):
    assert sum(shares_position(run) for run in vase.runs[:3]) >= 2


@pytest.mark.xfail(reason="in 3 seeds of 5", strict=True)
def test_v14_latents_of_position_are_shared_in_two_thirds_of_all_seeds(vase):
    assert sum(shares_position(run) for run in vase.runs) >= 2 / 3 * len(vase.runs)


def test_v15_sixteen_latents_of_24_are_enough(vase):
    assert max(used(run) for run in vase.runs) <= 16


@pytest.mark.xfail(
    reason="20.1 to 21.5 %, 20.7 from digits that stand still; 30.8 is the most these codes give",
    strict=True,
)
def test_v16_probes_learn_fifteen_points_more_from_imagined_digits():
    told = accuracies(of_kind(Found(ROWS, PAPER).rows(PART), "lesson"))
    assert max(np.mean(told[lesson]) for lesson in (CODES, HERE, PAST)) >= np.mean(told[STILL]) + 15


def test_v16_could_not_hold_for_even_digits_that_move_teach_less_than_that():
    told = accuracies(of_kind(Found(ROWS, PAPER).rows(PART), "lesson"))
    assert len(told[MOVING]) == 3
    assert np.mean(told[MOVING]) < np.mean(told[STILL]) + 15


@pytest.mark.parametrize("kind", ["disentangled", "entangled"])
def test_vase_forgets_least_of_all_ablations(kind):
    assert verdicts("vase-table1")[f"VASE forgets least, {kind}"] == "equal"


def test_the_first_environment_is_drawn_a_fifth_better(vase, plain):
    assert average(vase, "end") <= 0.8 * average(plain, "end")


def test_three_environments_are_found_in_four_seeds_of_five(vase):
    assert exact([vase]) >= (4, 5)


def test_five_environments_are_found_in_four_seeds_of_five():
    assert exact([group_of(B, VASE, (0, 1, 2, 3, 4))]) >= (4, 5)
