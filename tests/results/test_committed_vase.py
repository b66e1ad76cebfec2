"""The findings on VASE hold in the committed rows, or are marked with the numbers that fail."""

from __future__ import annotations

import numpy as np
import pytest

from everlearn.experiments.framework.trial import PAPER
from everlearn.experiments.vase import table1
from everlearn.experiments.vase.fig5 import (
    CODES,
    MEASUREMENT,
    MOVING,
    PAST,
    PRESENT,
    STILL,
    accuracies,
)
from everlearn.experiments.vase.probe_figures import shares_position
from everlearn.experiments.vase.scores import count_exact, latents_used, scores_by_seed
from everlearn.experiments.vase.trials import (
    ABLATIONS,
    CCI_VAE,
    SEQUENCE_A,
    SEQUENCE_B,
    VASE,
    ablation_label,
)
from everlearn.report import Group
from everlearn.rows import TrainingSetRow, of_kind

pytest.importorskip("matplotlib")


def group_of(committed, sequence, ablation: str, seeds: tuple[int, ...] = (0, 1, 2)) -> Group:
    (group,) = committed.groups([sequence[PAPER].ablation(ablation, seeds=seeds)])
    assert len(group.runs) == len(seeds)
    return group


def mean_score(group: Group, name: str) -> float:
    return float(np.mean([*scores_by_seed(group, name).values()]))


@pytest.fixture(scope="module")
def vase(committed) -> Group:
    return group_of(committed, SEQUENCE_A, VASE, (0, 1, 2, 3, 4))


@pytest.fixture(scope="module")
def cci_vae(committed) -> Group:
    return group_of(committed, SEQUENCE_A, CCI_VAE)


def test_best_accuracies_of_vase_and_cci_vae_are_within_three_points(vase, cci_vae):
    assert abs(mean_score(vase, "best_accuracy") - mean_score(cci_vae, "best_accuracy")) <= 3


@pytest.mark.xfail(
    reason="-3.5 and -6.6: what moves last gives back what was lost (lowest: -4.9 and -14.0)",
    strict=True,
)
def test_vase_loses_five_points_less_than_cci_vae(vase, cci_vae):
    assert mean_score(vase, "accuracy_change") >= mean_score(cci_vae, "accuracy_change") + 5


def test_vase_loses_five_points_less_at_the_lowest_and_on_five_environments(
    committed, vase, cci_vae
):
    assert mean_score(vase, "lowest_change") >= mean_score(cci_vae, "lowest_change") + 5
    vase_b = group_of(committed, SEQUENCE_B, VASE, (0, 1, 2, 3, 4))
    cci_vae_b = group_of(committed, SEQUENCE_B, CCI_VAE, (0,))
    assert mean_score(vase_b, "accuracy_change") >= mean_score(cci_vae_b, "accuracy_change") + 5


def test_latents_of_position_are_shared_in_two_of_the_first_three_seeds(vase):
    assert sum(shares_position(run) for run in vase.runs[:3]) >= 2


@pytest.mark.xfail(reason="in 3 seeds of 5", strict=True)
def test_latents_of_position_are_shared_in_two_thirds_of_all_seeds(vase):
    assert sum(shares_position(run) for run in vase.runs) >= 2 / 3 * len(vase.runs)


def test_vase_uses_at_most_16_of_24_latents(vase):
    assert max(latents_used(run) for run in vase.runs) <= 16


@pytest.mark.xfail(
    reason="20.1 to 21.5 %, 20.7 from digits that stand still; 30.8 is the most these codes give",
    strict=True,
)
def test_probes_learn_15_points_more_from_imagined_digits(committed):
    percentages = accuracies(of_kind(committed.rows(MEASUREMENT), TrainingSetRow))
    means = {name: np.mean(list(values.values())) for name, values in percentages.items()}
    assert max(means[name] for name in (CODES, PRESENT, PAST)) >= means[STILL] + 15


def test_even_real_moving_digits_teach_probes_less_than_15_points_more(committed):
    percentages = accuracies(of_kind(committed.rows(MEASUREMENT), TrainingSetRow))
    assert len(percentages[MOVING]) == 3
    means = {name: np.mean(list(values.values())) for name, values in percentages.items()}
    assert means[MOVING] < means[STILL] + 15


@pytest.mark.parametrize("entangled", [False, True])
def test_vase_forgets_least_of_all_ablations_in_the_mean(committed, entangled):
    trials = table1.SETTINGS[PAPER].trials
    groups = committed.groups(trial for trial in trials if ("beta" in trial.settings) == entangled)
    changes = {group.label: mean_score(group, "accuracy_change") for group in groups}
    assert len(changes) == len(ABLATIONS)
    assert max(changes, key=lambda label: changes[label]) == ablation_label(VASE, entangled)


def test_vase_reconstructs_the_first_environment_20_percent_better(vase, cci_vae):
    assert mean_score(vase, "final_error") <= 0.8 * mean_score(cci_vae, "final_error")


def test_three_environments_are_found_in_four_seeds_of_five(vase):
    assert count_exact([vase]) >= (4, 5)


def test_five_environments_are_found_in_four_seeds_of_five(committed):
    assert count_exact([group_of(committed, SEQUENCE_B, VASE, (0, 1, 2, 3, 4))]) >= (4, 5)
