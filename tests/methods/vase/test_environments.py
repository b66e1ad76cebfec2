"""The environments of VASE on given batches: which surprise, open, switch, mask and are stored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from everlearn.core.settings import change_settings
from everlearn.methods.vase import Settings
from everlearn.methods.vase.environment_state import select_row
from everlearn.methods.vase.environments import Environments
from everlearn.methods.vase.running_stats import BatchStats, ReferenceStats

pytestmark = pytest.mark.integration

# After ten batches 1.5 times the mean error is surprising, or a used latent over 0.6 and over 0.3 more.
SMALL = {
    "latent_dim": 4,
    "max_environments": 4,
    "capacity": 8.0,
    "capacity_steps": 20,
    "min_environment_steps": 10,
    "patience": 2,
}


def make(**changes: Any) -> Environments:
    return Environments(change_settings(Settings(), SMALL | changes, "vase"), "cpu")


def stats(error: float = 10.0, alpha: float = 0.1, kl: float = 1.0, **latents: float) -> BatchStats:
    """A batch of equal latents but for some: a2=5.0 is the atypicality of latent 2, k2 its KL."""
    values = {"a": torch.full((4,), alpha), "k": torch.full((4,), kl)}
    for name, value in latents.items():
        values[name[0]][int(name[1])] = value
    return BatchStats(
        torch.tensor(error), values["a"], values["k"], torch.zeros(4), torch.ones(4), 1
    )


def feed(
    environments: Environments,
    batch: BatchStats,
    times: int = 1,
    probabilities: Sequence[float] = (1, 1, 1, 1),
    reference: BatchStats | None = None,
) -> list[bool]:
    """Update with a batch some times; return whether it was learned each time."""
    learned = []
    for _ in range(times):
        candidate = environments.candidate(likely(environments, probabilities))
        compared = None
        if reference is not None:
            valid = environments.reference_is_valid(reference.size)
            compared = ReferenceStats(reference.error, reference.atypicality, valid)
        learned.append(bool(environments.update(candidate, batch, compared)))
    return learned


def likely(environments: Environments, probabilities: Sequence[float]) -> Tensor:
    known = probabilities[: environments.settings.max_environments]
    return torch.tensor(known, dtype=torch.float32)


def visit(
    environments: Environments,
    source: int,
    times: int,
    probabilities: Sequence[float] = (1, 1, 1, 1),
) -> list[int]:
    """Update with batches of error 10 in their environment, more elsewhere; return the active ones."""
    active = []
    for _ in range(times):
        candidate = environments.candidate(likely(environments, probabilities))
        error = 10.0 if candidate == source else 50.0 + 10 * abs(int(candidate) - source)
        environments.update(candidate, stats(error))
        active.append(int(environments.state.active))
    return active


def mature(count: int = 1, **changes: Any) -> Environments:
    """Return so many environments after 30 batches each; the last is active."""
    environments = make(**changes)
    for source in range(count):
        visit(environments, source, 30 + (1 + source if source else 0))
    assert environments.state.age[:count].tolist() == [30] * count
    return environments


def changed_names(before: dict[str, Tensor], environments: Environments) -> set[str]:
    now = environments.state.tensors
    return {name for name, tensor in before.items() if not torch.equal(tensor, now[name])}


def copies(environments: Environments) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in environments.state.tensors.items()}


def test_the_first_environment_has_no_mask() -> None:
    environments = make()
    assert (environments.state.count, environments.state.active, environments.state.switches) == (
        1,
        0,
        0,
    )
    assert environments.state.masks.all()
    assert environments.known.tolist() == [True, False, False, False]
    assert environments.state.opened_at.tolist() == [-1] * 4


def test_typical_batches_are_learned_and_switch_nothing() -> None:
    environments = make()
    assert all(feed(environments, stats(), 200))
    assert (
        environments.state.count,
        environments.state.active,
        environments.state.surprises_in_a_row,
        environments.state.switches,
    ) == (1, 0, 0, 0)


def test_running_means_move_fast_at_first_and_then_slowly() -> None:
    errors = [4.0, 6.0, 11.0, 3.0, 9.0, 5.0, 7.0, 2.0, 8.0]
    environments, expected = make(running_mean_batches=2), 0.0
    for number, error in enumerate(errors):
        batch = stats(error, alpha=error / 10, kl=error / 5)
        batch = batch._replace(mean=-batch.kl, variance=1 + batch.atypicality)
        feed(environments, batch)
        expected += (error - expected) * max(1 / 2, 5 / (number + 5))
    assert environments.state.error[0] == pytest.approx(expected)
    assert environments.state.atypicality[0].tolist() == pytest.approx([expected / 10] * 4)
    assert environments.state.kl[0].tolist() == pytest.approx([expected / 5] * 4)
    assert environments.state.mean[0].tolist() == pytest.approx([-expected / 5] * 4)
    assert environments.state.variance[0].tolist() == pytest.approx([1 + expected / 10] * 4)
    assert environments.state.variance[1:].min() == 1
    assert not environments.state.error[1:].any()
    assert environments.state.age.tolist() == [9, 0, 0, 0]


@pytest.mark.parametrize("moved", [stats(20.0), stats(a2=0.9)])
def test_what_the_net_makes_of_the_reference_batch_is_typical(
    moved: BatchStats,
) -> None:
    assert feed(mature(running_mean_batches=30), moved) == [False]
    assert feed(mature(running_mean_batches=30), moved, reference=stats()) == [False]
    environments = mature(running_mean_batches=30)
    assert feed(environments, moved, reference=moved) == [True]
    assert feed(environments, stats(40.0), reference=moved) == [False]
    assert feed(mature(running_mean_batches=30), moved) == [False]


@pytest.mark.parametrize(("now", "learned"), [(0.1, False), (0.5, True)])
def test_the_rise_is_measured_from_the_reference_batch(now: float, learned: bool) -> None:
    """0.7 exceeds the threshold and the mean, but not the reference batch by 0.3."""
    assert feed(mature(running_mean_batches=30), stats(a2=0.7), reference=stats(a2=now)) == [
        learned
    ]


def test_a_latent_that_is_atypical_of_the_reference_too_is_not_masked() -> None:
    environments = mature(running_mean_batches=30, patience=1)
    feed(environments, stats(a1=5.0, a2=5.0), reference=stats(a1=5.0))
    assert environments.state.count == 2
    assert environments.state.masks[1].tolist() == [1, 1, 0, 1]


def test_a_reference_of_another_size_or_environment_is_ignored() -> None:
    other, back = mature(running_mean_batches=30), mature(2, running_mean_batches=30)
    assert visit(back, 0, 20)[-1] == 0
    for environments, moved, images in [(other, stats(50.0), 2), (back, stats(99.0), 1)]:
        assert feed(environments, moved, reference=moved._replace(size=images)) == [False]


def test_references_are_ignored_until_every_slot_is_renewed() -> None:
    """Three batches of an environment that was entered again fill three slots of four."""
    for times, learned in [(3, False), (4, True)]:
        environments = mature(2, running_mean_batches=1)
        assert visit(environments, 0, 3 + times)[-1] == 0  # three until it is recognised
        assert environments.state.visit_age == times
        assert feed(environments, stats(99.0), reference=stats(99.0)) == [learned]


def test_references_are_ignored_after_the_last_environment_accepts_a_batch() -> None:
    environments, other = (
        mature(max_environments=1, running_mean_batches=30, patience=1),
        stats(99.0),
    )
    assert feed(environments, other, reference=stats()) == [False]
    assert environments.state.visit_age == 0
    feed(environments, stats(90.0), 29, reference=stats())
    assert environments.state.error_deviation[0] < 20  # from the new mean, not from the reference


def test_deviations_are_measured_from_the_reference_batch() -> None:
    """A net that moves between errors of 10 and 40 nats has small deviations from its reference."""
    settings = {"running_mean_batches": 30, "min_environment_steps": 1000}
    compared = make(**settings)
    alone = make(**settings)
    for number in range(600):
        far = number % 40 < 20
        moved = stats(10.0 + 30.0 * far, alpha=0.1 + 0.3 * far)
        feed(compared, moved, reference=moved)
        feed(alone, moved)
    assert compared.state.error_deviation[0] < 0.1 < 10 < alone.state.error_deviation[0]
    deviation = compared.state.atypicality_deviation[0].max()
    assert deviation < 0.001 < 0.1 < alone.state.atypicality_deviation[0].min()


@pytest.mark.parametrize(("alpha", "learned"), [(1.71, True), (1.69, False), (0.0, False)])
def test_a_fall_of_atypicality_is_surprising(alpha: float, learned: bool) -> None:
    """A fall by 0.3 from a mean of 2 means other latents; it masks nothing."""
    environments = make(num_deviations=0, patience=1)
    feed(environments, stats(alpha=2.0), 30)
    assert feed(environments, stats(alpha=2.0, a1=alpha)) == [learned]
    if not learned:
        assert environments.state.masks[1].all()


def test_learned_batches_are_stored_at_regular_intervals() -> None:
    environments, when = make(running_mean_batches=12), []
    for number in range(1, 20):
        feed(environments, stats(99.0 if number == 19 else 10.0))
        when += [
            (number, slot) for slot, now in enumerate(environments.state.stored.tolist()) if now
        ]
        assert environments.state.reference_sizes.sum() == min(number // 3, 4)
    assert when == [(3, 1), (6, 2), (9, 3), (12, 0), (15, 1), (18, 2)]


def test_slots_take_turns() -> None:
    environments, slots = make(), []
    for _ in range(6):
        slots.append(int(environments.slot))
        feed(environments, stats())
    assert slots == [0, 1, 2, 3, 0, 1]


@pytest.mark.parametrize("odd", [0, 3])
def test_one_odd_reference_opens_no_environment(odd: int) -> None:
    """The net has moved: alpha is 3 in every batch but the odd one."""
    environments, moved = mature(running_mean_batches=30, patience=3), stats(a2=3.0)
    for _ in range(8):
        is_odd = environments.slot == odd
        assert feed(environments, moved, reference=stats() if is_odd else moved) == [not is_odd]
    assert (environments.state.count, environments.state.surprises) == (1, 2)


@pytest.mark.parametrize(("odd", "opened"), [(0, 36), (3, 35)])
def test_one_wrong_reference_hides_no_environment(odd: int, opened: int) -> None:
    environments, other = mature(running_mean_batches=30, patience=3), stats(50.0)
    for _ in range(6):
        feed(environments, other, reference=other if environments.slot == odd else stats())
    assert environments.state.opened_at.tolist() == [-1, opened, -1, -1]


@pytest.mark.parametrize("hard", [stats(16.0), stats(a2=0.7)])
def test_nothing_is_surprising_before_min_environment_steps(hard: BatchStats) -> None:
    environments = make()
    feed(environments, stats(), 8)
    assert feed(environments, hard, 2) == [True] * 2
    assert environments.state.count == 1
    environments = make(num_deviations=0)
    feed(environments, stats(), 10)
    assert feed(environments, hard) == [False]


def test_min_environment_steps_defaults_to_four_thirds_of_capacity_steps() -> None:
    environments = make(min_environment_steps=None, num_deviations=0)
    feed(environments, stats(), 25)  # capacity is full after 20
    assert feed(environments, stats(99.0)) == [True]
    environments = make(min_environment_steps=None, num_deviations=0)
    feed(environments, stats(), 26)
    assert feed(environments, stats(99.0)) == [False]


def test_an_error_above_kappa_times_its_mean_is_surprising() -> None:
    for error, learned in [(14.9, True), (15.1, False)]:
        assert feed(mature(num_deviations=0), stats(error)) == [learned]


def test_an_error_must_exceed_its_mean_by_num_deviations() -> None:
    """Errors of 5 and 15 in turn: 10 on average, 5 from it; 5 times so far is 35."""
    for error, learned in [(30.0, True), (40.0, False)]:
        environments = make(kappa=1.0, running_mean_batches=10**6)
        for _ in range(200):
            feed(environments, stats(5.0))
            feed(environments, stats(15.0))
        assert environments.state.error_deviation[0] == pytest.approx(5, rel=0.05)
        assert feed(environments, stats(error)) == [learned]


@pytest.mark.parametrize(
    ("batch", "learned"),
    [
        (stats(a1=0.59), True),  # below the threshold
        (stats(a1=0.61), False),
        (stats(a1=9.0, k1=1.0), False),
    ],
)
def test_atypicality_must_exceed_the_threshold(batch: BatchStats, learned: bool) -> None:
    assert feed(mature(num_deviations=0), batch) == [learned]


def test_atypicality_must_exceed_its_running_mean_by_the_rise() -> None:
    """The mean is 0.5: 0.8 is a rise of 0.3."""
    for alpha, learned in [(0.79, True), (0.82, False)]:
        environments = make(num_deviations=0)
        feed(environments, stats(a1=0.5), 30)
        assert feed(environments, stats(a1=alpha)) == [learned]


def test_an_unused_latent_is_never_surprising() -> None:
    environments = make(num_deviations=0)
    feed(environments, stats(k1=0.04), 30)
    assert environments.stats.used[0].tolist() == [True, False, True, True]
    assert feed(environments, stats(a1=9.0, k1=0.04), 5) == [True] * 5


def test_without_masks_atypicality_is_never_surprising() -> None:
    assert feed(mature(masks=False), stats(a1=9.0), 5) == [True] * 5


def test_a_surprising_batch_leaves_the_running_means_alone() -> None:
    """One wrong batch would ruin the test against kappa."""
    environments = mature()
    before = copies(environments)
    assert feed(environments, stats(50.0)) == [False]
    assert changed_names(before, environments) == {
        "steps",
        "surprises_in_a_row",
        "surprises",
        "lowest_error",
    }


def test_a_single_surprise_changes_nothing() -> None:
    environments = mature()
    for _ in range(10):
        assert feed(environments, stats(50.0)) == [False]
        assert feed(environments, stats(10.0)) == [True]
    assert (environments.state.count, environments.state.surprises_in_a_row) == (1, 0)


@pytest.mark.parametrize("patience", [1, 2, 5])
def test_patience_surprises_in_a_row_open_an_environment(patience: int) -> None:
    environments = mature(patience=patience)
    feed(environments, stats(50.0), patience - 1)
    assert (environments.state.count, environments.state.active) == (1, 0)
    assert feed(environments, stats(50.0)) == [False]
    assert (
        environments.state.count,
        environments.state.active,
        environments.state.switches,
        environments.state.surprises_in_a_row,
    ) == (2, 1, 1, 0)
    assert environments.state.opened_at.tolist() == [-1, 30 + patience, -1, -1]
    assert environments.opened.tolist() == [False, True, False, False]
    assert feed(environments, stats(50.0)) == [True]
    assert not environments.opened.any()
    assert environments.state.age.tolist() == [30, 1, 0, 0]


def test_a_new_environment_has_its_own_running_means() -> None:
    environments = mature()
    feed(environments, stats(50.0, alpha=0.2), 2 + 7)
    assert environments.state.error.tolist() == pytest.approx([10, 50, 0, 0])
    assert environments.state.atypicality[:, 0].tolist() == pytest.approx([0.1, 0.2, 0, 0])
    assert environments.state.age.tolist() == [30, 7, 0, 0]


def test_a_new_environment_masks_atypical_latents() -> None:
    environments = mature()
    feed(environments, stats(a2=3.0), 2)
    assert environments.state.masks.tolist() == [[1] * 4, [1, 1, 0, 1], [1] * 4, [1] * 4]


def test_a_mask_is_fixed_when_its_environment_opens() -> None:
    environments = mature()
    feed(environments, stats(a2=3.0), 2)
    feed(environments, stats(alpha=5.0, a2=0.0), 9)  # not yet mature
    feed(environments, stats(), 50)
    assert environments.state.masks[:2].tolist() == [[1] * 4, [1, 1, 0, 1]]


def test_one_latent_stays_unmasked_where_all_are_atypical() -> None:
    environments = mature()
    feed(environments, stats(alpha=3.0, a1=2.0), 2)
    assert environments.state.masks[1].tolist() == [0, 1, 0, 0]


def test_a_masked_latent_can_apply_in_the_next_environment() -> None:
    environments = mature()
    feed(environments, stats(a2=3.0), 2 + 12)
    feed(environments, stats(90.0, a2=0.1), 3)
    assert environments.state.count == 3
    assert environments.state.masks[2].tolist() == [1] * 4


def test_a_masked_latent_that_stays_atypical_is_masked_in_the_next_environment() -> None:
    """The running mean of its atypicality where it is masked does not matter."""
    environments = mature()
    feed(environments, stats(a2=3.0), 2 + 12)
    feed(environments, stats(90.0, a2=2.5), 3)
    assert environments.state.count == 3
    assert environments.state.masks[2].tolist() == [1, 1, 0, 1]


def test_a_masked_latent_is_never_surprising_in_its_environment() -> None:
    environments = mature()
    feed(environments, stats(a2=3.0), 2 + 12)
    assert environments.state.active == 1
    assert feed(environments, stats(a2=9.0), 3) == [True] * 3


def test_without_masks_a_new_environment_masks_nothing() -> None:
    environments = mature(masks=False)
    feed(environments, stats(90.0, a2=3.0), 2)
    assert environments.state.count == 2
    assert environments.state.masks.all()


def test_capacity_grows_from_zero_in_the_first_environment() -> None:
    environments, found = make(), []
    for _ in range(30):
        found.append(float(environments.capacity()))
        feed(environments, stats())
    assert found == pytest.approx([min(step / 20, 1) * 8 for step in range(30)])


def test_capacity_of_a_new_environment_starts_at_the_kl_of_unmasked_latents() -> None:
    environments = mature()
    feed(environments, stats(kl=0.5, a2=3.0), 2)
    found = []
    for _ in range(30):
        found.append(float(environments.capacity()))
        feed(environments, stats())
    assert found == pytest.approx([1.5 + 6.5 * min(step / 20, 1) for step in range(30)])


def test_capacity_never_exceeds_its_final_value() -> None:
    environments = mature()
    feed(environments, stats(50.0, kl=9.0), 2)
    assert environments.capacity() == 8  # their KL was 36


def test_each_environment_has_its_own_capacity() -> None:
    environments = mature()
    visit(environments, 1, 2 + 12)
    assert environments.capacity() == pytest.approx(4 + 4 * 12 / 20)
    visit(environments, 0, 3)
    assert (environments.state.active, environments.capacity()) == (0, 8)
    visit(environments, 1, 3 + 2)
    assert environments.capacity() == pytest.approx(4 + 4 * 14 / 20)


def test_the_nearest_environment_is_that_of_the_lowest_error() -> None:
    """Errors of 80 in the third, which is active, 60 in the second, tried next, and 70 in the first."""
    environments = mature(3)
    for error in (80.0, 80.0, 60.0, 70.0):
        assert environments.state.count == 3
        feed(environments, stats(error), probabilities=(0.4, 0.6, 0, 0))
    assert (environments.state.count, environments.state.nearest) == (4, 1)


def test_a_single_surprise_does_not_count_for_the_nearest_environment() -> None:
    environments = mature(2)
    feed(environments, stats(20.0))  # a surprise alone, in the second
    visit(environments, 1, 1)
    for error in (80.0, 80.0, 70.0):
        feed(environments, stats(error))
    assert (environments.state.count, environments.state.nearest) == (3, 0)


def test_a_known_environment_is_recognised_and_none_is_opened() -> None:
    environments = mature(2)
    assert visit(environments, 0, 5) == [1, 1, 0, 0, 0]
    assert (
        environments.state.count,
        environments.state.switches,
        environments.state.surprises_in_a_row,
    ) == (2, 2, 0)
    assert environments.state.age.tolist() == [
        30 + 2,
        30,
        0,
        0,
    ]  # the batches of the search are not learned
    assert visit(environments, 1, 5) == [0, 0, 1, 1, 1]
    assert (environments.state.count, environments.state.switches) == (2, 3)


def test_a_candidate_is_judged_by_its_own_running_means() -> None:
    """An error of 30 is surprising where the mean is 10, but not where it is 50."""
    environments = mature()
    feed(environments, stats(50.0), 2 + 30)
    assert environments.state.error[:2].tolist() == pytest.approx([10, 50])
    feed(environments, stats(400.0), 2)
    assert environments.state.surprises_in_a_row == 2
    feed(environments, stats(30.0))
    assert (environments.state.count, environments.state.active) == (3, 2)


def test_masks_differ_where_used_latents_are_atypical() -> None:
    environments = mature(2)
    environments.state.masks[1, 2] = 0.0
    assert environments.stats.mask_differs(stats(a2=3.0).atypicality).tolist() == [
        True,
        False,
        False,
        False,
    ]
    assert environments.stats.mask_differs(stats(a0=3.0).atypicality).tolist() == [
        True,
        True,
        False,
        False,
    ]
    assert not environments.stats.mask_differs(stats().atypicality).any()
    assert not mature(masks=False).stats.mask_differs(stats(a0=3.0).atypicality).any()


def test_environments_are_tried_in_the_order_of_the_classifier() -> None:
    for probabilities, batches in [
        ([0.5, 0.3, 0.2, 0], 3),
        ([0.3, 0.5, 0.2, 0], 4),
        ([0, 0, 0, 1], 3),
    ]:
        found = visit(mature(3), 0, 5, probabilities)
        assert found == [2] * (batches - 1) + [0] * (6 - batches)


def test_unknown_environments_are_never_tried() -> None:
    environments, unknown = mature(2), torch.tensor([0.0, 0.0, 0.4, 0.6])
    for _ in range(3):
        place = environments.candidate(unknown)
        assert place < 2
        environments.update(place, stats(90.0))
    assert environments.state.count == 3


def test_the_candidate_is_the_active_environment_without_surprises() -> None:
    environments = mature(2)
    assert environments.candidate(torch.tensor([1.0, 0.0, 0.0, 0.0])) == 1


def test_with_max_environments_open_learning_continues_in_the_active_one() -> None:
    environments = mature(2, max_environments=2)
    assert feed(environments, stats(90.0, alpha=2.0), 4) == [False, False, False, True]
    assert all(feed(environments, stats(90.0, alpha=2.0), 30))
    assert (environments.state.count, environments.state.active, environments.state.switches) == (
        2,
        1,
        1,
    )
    assert environments.state.masks.all()
    assert environments.state.age.tolist() == [30, 61]


def test_a_single_environment_never_switches() -> None:
    environments = mature(1, max_environments=1)
    assert feed(environments, stats(90.0), 4) == [False, False, True, True]
    assert (environments.state.count, environments.state.active, environments.state.switches) == (
        1,
        0,
        0,
    )


def test_given_environments_are_opened_and_entered_without_surprises() -> None:
    environments = make(environment_switches="given")
    feed(environments, stats(), 30)
    assert feed(environments, stats(90.0), 5) == [True] * 5
    environments.announce(1)
    assert feed(environments, stats(90.0, a2=3.0), 3) == [False, True, True]
    assert (
        environments.state.count,
        environments.state.active,
        environments.state.opened_at[1],
    ) == (2, 1, 36)
    assert environments.state.masks[1].tolist() == [1, 1, 0, 1]
    environments.announce(0)
    assert feed(environments, stats(), 2) == [False, True]
    assert (environments.state.count, environments.state.active, environments.state.switches) == (
        2,
        0,
        2,
    )
    environments.announce(0)
    feed(environments, stats())
    assert (environments.state.count, environments.state.active, environments.state.switches) == (
        2,
        0,
        2,
    )


def test_an_environment_can_be_given_at_the_first_step() -> None:
    environments = make(environment_switches="given")
    environments.announce(1)
    feed(environments, stats())
    assert (environments.state.count, environments.state.active, environments.state.nearest) == (
        2,
        1,
        0,
    )


def test_a_given_environment_beyond_max_environments_is_ignored() -> None:
    environments = make(environment_switches="given", max_environments=2)
    for number in (1, 2, 3):
        environments.announce(number)
        feed(environments, stats(), 2)
    assert (environments.state.count, environments.state.active) == (2, 1)
    assert environments.state.age[1] == 3  # the batch of a switch is not learned


def test_without_environments_the_mask_follows_each_batch_with_hysteresis() -> None:
    environments = make(environments=False)
    assert all(feed(environments, stats(a1=2.0), 9))
    assert environments.state.masks[0].all()  # not yet mature
    for alpha, applies in [(2.0, 0), (0.7, 0), (0.4, 1), (0.7, 1), (0.9, 0)]:
        assert feed(environments, stats(error=900.0, a1=alpha)) == [True]
        assert environments.state.masks[0].tolist() == [1, applies, 1, 1]
    assert (environments.state.count, environments.state.active) == (1, 0)
    assert environments.state.masks[1:].all()


def test_with_neither_environments_nor_masks_nothing_is_masked() -> None:
    environments = make(environments=False, masks=False)
    assert all(feed(environments, stats(alpha=9.0), 30))
    assert environments.state.masks.all()


def test_diagnostics_say_when_environments_opened() -> None:
    environments = mature(2)
    found = {name: float(value) for name, value in environments.diagnostics().items()}
    never = [found.pop("opened_2"), found.pop("opened_3")]
    assert found == {"environments": 2, "active": 1, "switches": 1, "opened_1": 32, "surprises": 2}
    assert all(math.isnan(step) for step in never)


@pytest.mark.parametrize("shown", [0, 1, 2, 3, 4])
def test_a_loaded_state_continues_in_the_middle_of_a_search(shown: int) -> None:
    whole, second = mature(3), make()
    visit(whole, 3, shown)
    second.state.load(copies(whole))
    assert visit(whole, 3, 20) == visit(second, 3, 20)
    assert not changed_names(copies(whole), second)
    assert whole.state.count == 4


def test_a_row_is_selected_by_an_index_tensor() -> None:
    assert select_row(torch.tensor([3.0, 4.0]), torch.tensor(1)) == 4
