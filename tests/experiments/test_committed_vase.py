"""V13 to V15, and what VASE must find and keep, hold in the committed rows; or by how much not.

These are of commit 7f01c71, whose inference differs from that of now (docs/methods/vase.md, Measured).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from everlearn.experiments import EXPERIMENTS
from everlearn.experiments.found import Found
from everlearn.experiments.trial import PAPER
from everlearn.experiments.vase import PLAIN, VASE, A, B
from everlearn.experiments.vase_probes import shares_position
from everlearn.experiments.vase_read import average, exact, used
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
    reason="-3.6 and -6.6: what moves last gives back what was lost (lowest: -4.9 and -14.0)",
    strict=True,
)
def test_v13_vase_loses_five_points_less_than_nothing_at_all(vase, plain):
    assert average(vase, "change") >= average(plain, "change") + 5


def test_v13_does_so_where_accuracies_are_lowest_and_through_five_environments(vase, plain):
    assert average(vase, "lowest") >= average(plain, "lowest") + 5
    five = [group_of(B, VASE, (0, 1, 2, 3, 4)), group_of(B, PLAIN, (0,))]
    ours, none = (average(group, "change") for group in five)
    assert ours >= none + 5


@pytest.mark.xfail(reason="in 3 seeds of 5, two of them among the first three", strict=True)
def test_v14_latents_of_position_are_shared_in_two_seeds_of_three(vase):
    assert sum(shares_position(run) for run in vase.runs) >= 2 / 3 * len(vase.runs)


def test_v15_sixteen_latents_of_24_are_enough(vase):
    assert max(used(run) for run in vase.runs) <= 16


def test_vase_forgets_least_of_all_ablations():
    assert verdicts("vase-table1")["VASE forgets least, disentangled"] == "equal"


def test_the_first_environment_is_drawn_a_fifth_better(vase, plain):
    assert average(vase, "end") <= 0.8 * average(plain, "end")


def test_three_environments_are_found_in_four_seeds_of_five(vase):
    assert exact([vase]) >= (4, 5)


@pytest.mark.xfail(reason="3 of 5", strict=True)
def test_five_environments_are_found_in_four_seeds_of_five():
    assert exact([group_of(B, VASE, (0, 1, 2, 3, 4))]) >= (4, 5)
