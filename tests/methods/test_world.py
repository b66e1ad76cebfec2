"""The environments of VASE on given batches: what surprises, is opened, found again, masked and kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from everlearn.methods.vase import Settings
from everlearn.methods.vase.usual import Look, at
from everlearn.methods.vase.world import World
from everlearn.settings import change_settings

# Ten quiet batches; then 1.5 times the usual error surprises, or a used latent over 0.6 and over 0.3 more.
FEW = {"z": 4, "most": 4, "capacity": 8.0, "capacity_steps": 20, "quiet": 10, "patience": 2}


def make(**changes: Any) -> World:
    return World(change_settings(Settings(), FEW | changes, "vase"), "cpu")


def look(error: float = 10.0, alpha: float = 0.1, kl: float = 1.0, **numbers: float) -> Look:
    """A batch whose latents are all alike, but for some: a2=5.0 is the atypicality of latent 2."""
    shown = torch.full((4,), alpha), torch.full((4,), kl)
    for name, value in numbers.items():
        shown["ak".index(name[0])][int(name[1])] = value
    return Look(torch.tensor(error), *shown, torch.zeros(4), torch.ones(4), 1)


def show(
    world: World,
    batch: Look,
    times: int = 1,
    chances: Sequence[float] = (1, 1, 1, 1),
    back: Look | None = None,
) -> list[bool]:
    """Show a batch some times; whether it was learned each time."""
    likely = torch.tensor(chances[: world.settings.most], dtype=torch.float32)
    return [bool(world.turn(world.candidate(likely), batch, back)) for _ in range(times)]


def visit(
    world: World, kind: int, times: int, chances: Sequence[float] = (1, 1, 1, 1)
) -> list[int]:
    """Show batches of error 10 in the environment of their kind, more elsewhere; list the active ones."""
    found, likely = [], torch.tensor(chances[: world.settings.most], dtype=torch.float32)
    for _ in range(times):
        place = world.candidate(likely)
        world.turn(place, look(10.0 if place == kind else 50.0 + 10 * abs(int(place) - kind)))
        found.append(int(world.active))
    return found


def settled(count: int = 1, **changes: Any) -> World:
    """A world that has met so many environments, 30 batches each; the last is active."""
    world = make(**changes)
    for kind in range(count):
        visit(world, kind, 30 + (1 + kind if kind else 0))
    assert world.age[:count].tolist() == [30] * count
    return world


def changed(before: dict[str, Tensor], world: World) -> set[str]:
    return {name for name, old in before.items() if not torch.equal(old, world.tensors[name])}


def kept(world: World) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in world.tensors.items()}


def test_it_begins_in_one_environment_where_all_latents_apply() -> None:
    world = make()
    assert (world.count, world.active, world.switches) == (1, 0, 0)
    assert world.masks.all()
    assert world.known.tolist() == [True, False, False, False]
    assert world.opened.tolist() == [-1] * 4


def test_usual_batches_are_learned_and_change_no_environment() -> None:
    world = make()
    assert all(show(world, look(), 200))
    assert (world.count, world.active, world.doubt, world.switches) == (1, 0, 0, 0)


def test_what_is_usual_follows_quickly_at_first_and_then_slowly() -> None:
    errors = [4.0, 6.0, 11.0, 3.0, 9.0, 5.0, 7.0, 2.0, 8.0]
    world, expected = make(slow=2), 0.0
    for number, error in enumerate(errors):
        batch = look(error, alpha=error / 10, kl=error / 5)
        batch = batch._replace(centre=-batch.kl, variance=1 + batch.alpha)
        show(world, batch)
        expected += (error - expected) * max(1 / 2, 5 / (number + 5))
    assert world.error[0] == pytest.approx(expected)
    assert world.alpha[0].tolist() == pytest.approx([expected / 10] * 4)
    assert world.kl[0].tolist() == pytest.approx([expected / 5] * 4)
    assert world.centre[0].tolist() == pytest.approx([-expected / 5] * 4)
    assert world.variance[0].tolist() == pytest.approx([1 + expected / 10] * 4)
    assert world.variance[1:].min() == 1
    assert not world.error[1:].any()
    assert world.age.tolist() == [9, 0, 0, 0]


@pytest.mark.parametrize("moved", [look(20.0), look(a2=0.9)])
def test_what_a_net_that_moved_makes_of_an_earlier_batch_is_usual_while_it_does(
    moved: Look,
) -> None:
    assert show(settled(slow=30), moved) == [False]
    assert show(settled(slow=30), moved, back=look()) == [False]
    world = settled(slow=30)
    assert show(world, moved, back=moved) == [True]
    assert show(world, look(40.0), back=moved) == [False]
    assert show(settled(slow=30), moved) == [False]


@pytest.mark.parametrize(("now", "learned"), [(0.1, False), (0.5, True)])
def test_a_batch_is_compared_with_an_earlier_one_that_is_almost_unusual(
    now: float, learned: bool
) -> None:
    """0.7 is over the limit and over the mean, but not 0.3 over what the net makes of an earlier batch."""
    assert show(settled(slow=30), look(a2=0.7), back=look(a2=now)) == [learned]


def test_a_mask_leaves_out_what_the_net_has_not_moved_itself() -> None:
    world = settled(slow=30, patience=1)
    show(world, look(a1=5.0, a2=5.0), back=look(a1=5.0))
    assert world.count == 2
    assert world.masks[1].tolist() == [1, 1, 0, 1]


def test_nothing_is_looked_back_on_of_another_size_or_environment() -> None:
    other, back = settled(slow=30), settled(2, slow=30)
    assert visit(back, 0, 20)[-1] == 0
    for world, moved, images in [(other, look(50.0), 2), (back, look(99.0), 1)]:
        assert show(world, moved, back=moved._replace(images=images)) == [False]


def test_however_fast_means_are_nothing_is_looked_back_on_before_every_slot_is_new() -> None:
    """Three batches of an environment that was found again are in as many slots of four."""
    for times, learned in [(3, False), (4, True)]:
        world = settled(2, slow=1)
        assert visit(world, 0, 3 + times)[-1] == 0  # three until it is found
        assert world.stay == times
        assert show(world, look(99.0), back=look(99.0)) == [learned]


def test_where_there_are_as_many_as_may_be_nothing_is_looked_back_on_for_a_while() -> None:
    world, other = settled(most=1, slow=30, patience=1), look(99.0)
    assert show(world, other, back=look()) == [False]
    assert world.stay == 0
    show(world, look(90.0), 29, back=look())
    assert world.error_spread[0] < 20  # of what is usual now, not of the batch that was kept


def test_how_far_batches_are_apart_is_measured_by_one_net() -> None:
    """A net that moves between batches of 10 and 40 nats takes them all for alike, if it is asked."""
    asked, alone = make(slow=30, quiet=1000), make(slow=30, quiet=1000)
    for number in range(600):
        far = number % 40 < 20
        moved = look(10.0 + 30.0 * far, alpha=0.1 + 0.3 * far)
        show(asked, moved, back=moved)
        show(alone, moved)
    assert asked.error_spread[0] < 0.1 < 10 < alone.error_spread[0]
    assert asked.alpha_spread[0].max() < 0.001 < 0.1 < alone.alpha_spread[0].min()


@pytest.mark.parametrize(("alpha", "learned"), [(1.71, True), (1.69, False), (0.0, False)])
def test_latents_that_are_less_unusual_than_ever_surprise(alpha: float, learned: bool) -> None:
    """Where 2 is usual, a fall by 0.3 is one to other latents; nothing is masked for it."""
    world = make(spreads=0, patience=1)
    show(world, look(alpha=2.0), 30)
    assert show(world, look(alpha=2.0, a1=alpha)) == [learned]
    if not learned:
        assert world.masks[1].all()


def test_a_batch_is_kept_now_and_then_if_it_was_learned() -> None:
    world, when = make(slow=12), []
    for number in range(1, 20):
        show(world, look(99.0 if number == 19 else 10.0))
        when += [(number, slot) for slot, now in enumerate(world.renewed.tolist()) if now]
        assert world.kept.sum() == min(number // 3, 4)
    assert when == [(3, 1), (6, 2), (9, 3), (12, 0), (15, 1), (18, 2)]


def test_what_was_kept_is_looked_back_on_in_turn() -> None:
    world, slots = make(), []
    for _ in range(6):
        slots.append(int(world.slot))
        show(world, look())
    assert slots == [0, 1, 2, 3, 0, 1]


@pytest.mark.parametrize("odd", [0, 3])
def test_one_odd_batch_that_was_kept_opens_no_environment(odd: int) -> None:
    """A net that moved makes 3 of every batch but of that one."""
    world, moved = settled(slow=30, patience=3), look(a2=3.0)
    for _ in range(8):
        is_odd = world.slot == odd
        assert show(world, moved, back=look() if is_odd else moved) == [not is_odd]
    assert (world.count, world.surprises) == (1, 2)


@pytest.mark.parametrize(("odd", "opened"), [(0, 36), (3, 35)])
def test_one_batch_that_was_kept_by_mistake_hides_no_environment(odd: int, opened: int) -> None:
    world, other = settled(slow=30, patience=3), look(50.0)
    for _ in range(6):
        show(world, other, back=other if world.slot == odd else look())
    assert world.opened.tolist() == [-1, opened, -1, -1]


@pytest.mark.parametrize("hard", [look(16.0), look(a2=0.7)])
def test_nothing_surprises_before_the_quiet_steps_are_over(hard: Look) -> None:
    world = make()
    show(world, look(), 8)
    assert show(world, hard, 2) == [True] * 2
    assert world.count == 1
    world = make(spreads=0)
    show(world, look(), 10)
    assert show(world, hard) == [False]


def test_no_quiet_steps_of_its_own_are_a_third_more_than_those_until_capacity_is_full() -> None:
    world = make(quiet=None, spreads=0)
    show(world, look(), 25)  # capacity is full after 20
    assert show(world, look(99.0)) == [True]
    world = make(quiet=None, spreads=0)
    show(world, look(), 26)
    assert show(world, look(99.0)) == [False]


def test_the_error_must_be_over_kappa_times_the_usual() -> None:
    for error, learned in [(14.9, True), (15.1, False)]:
        assert show(settled(spreads=0), look(error)) == [learned]


def test_the_error_must_be_far_over_the_usual_by_its_own_spread() -> None:
    """Errors of 5 and 15 in turn: 10 on average, 5 from it; 5 times so far is 35."""
    for error, learned in [(30.0, True), (40.0, False)]:
        world = make(kappa=1.0, slow=10**6)
        for _ in range(200):
            show(world, look(5.0))
            show(world, look(15.0))
        assert world.error_spread[0] == pytest.approx(5, rel=0.05)
        assert show(world, look(error)) == [learned]


@pytest.mark.parametrize(
    ("batch", "learned"),
    [
        (look(a1=0.59), True),  # below the limit
        (look(a1=0.61), False),
        (look(a1=9.0, k1=1.0), False),
    ],
)
def test_a_latent_must_be_over_the_limit(batch: Look, learned: bool) -> None:
    assert show(settled(spreads=0), batch) == [learned]


def test_a_latent_must_be_over_its_own_usual_too() -> None:
    """Usual is 0.5: 0.8 is a rise of 0.3."""
    for alpha, learned in [(0.79, True), (0.82, False)]:
        world = make(spreads=0)
        show(world, look(a1=0.5), 30)
        assert show(world, look(a1=alpha)) == [learned]


def test_a_latent_that_says_nothing_surprises_nobody() -> None:
    world = make(spreads=0)
    show(world, look(k1=0.04), 30)
    assert world.used[0].tolist() == [True, False, True, True]
    assert show(world, look(a1=9.0, k1=0.04), 5) == [True] * 5


def test_without_masks_latents_surprise_nobody() -> None:
    assert show(settled(masks=False), look(a1=9.0), 5) == [True] * 5


def test_a_surprising_batch_is_not_learned_and_what_is_usual_stays() -> None:
    """Pitfall 6: one wrong batch would ruin kappa."""
    world = settled()
    before = kept(world)
    assert show(world, look(50.0)) == [False]
    assert changed(before, world) == {"steps", "doubt", "surprises", "least"}


def test_one_surprise_alone_changes_nothing() -> None:
    world = settled()
    for _ in range(10):
        assert show(world, look(50.0)) == [False]
        assert show(world, look(10.0)) == [True]
    assert (world.count, world.doubt) == (1, 0)


@pytest.mark.parametrize("patience", [1, 2, 5])
def test_so_many_surprises_in_a_row_open_an_environment(patience: int) -> None:
    world = settled(patience=patience)
    show(world, look(50.0), patience - 1)
    assert (world.count, world.active) == (1, 0)
    assert show(world, look(50.0)) == [False]
    assert (world.count, world.active, world.switches, world.doubt) == (2, 1, 1, 0)
    assert world.opened.tolist() == [-1, 30 + patience, -1, -1]
    assert world.opened_now().tolist() == [False, True, False, False]
    assert show(world, look(50.0)) == [True]
    assert not world.opened_now().any()
    assert world.age.tolist() == [30, 1, 0, 0]


def test_a_new_environment_has_what_is_usual_of_its_own() -> None:
    world = settled()
    show(world, look(50.0, alpha=0.2), 2 + 7)
    assert world.error.tolist() == pytest.approx([10, 50, 0, 0])
    assert world.alpha[:, 0].tolist() == pytest.approx([0.1, 0.2, 0, 0])
    assert world.age.tolist() == [30, 7, 0, 0]


def test_v9_a_new_environment_masks_the_latents_that_are_unusual() -> None:
    world = settled()
    show(world, look(a2=3.0), 2)
    assert world.masks.tolist() == [[1] * 4, [1, 1, 0, 1], [1] * 4, [1] * 4]


def test_v11_a_mask_stays_as_it_was_when_the_environment_was_opened() -> None:
    world = settled()
    show(world, look(a2=3.0), 2)
    show(world, look(alpha=5.0, a2=0.0), 9)  # still quiet
    show(world, look(), 50)
    assert world.masks[:2].tolist() == [[1] * 4, [1, 1, 0, 1]]


def test_v11_one_latent_is_left_where_all_are_unusual() -> None:
    world = settled()
    show(world, look(alpha=3.0, a1=2.0), 2)
    assert world.masks[1].tolist() == [0, 1, 0, 0]


def test_a_latent_masked_in_one_environment_can_apply_in_the_next() -> None:
    world = settled()
    show(world, look(a2=3.0), 2 + 12)
    show(world, look(90.0, a2=0.1), 3)
    assert world.count == 3
    assert world.masks[2].tolist() == [1] * 4


def test_a_latent_that_still_does_not_apply_is_masked_in_the_next_too() -> None:
    """Its usual atypicality in an environment where it is masked says nothing."""
    world = settled()
    show(world, look(a2=3.0), 2 + 12)
    show(world, look(90.0, a2=2.5), 3)
    assert world.count == 3
    assert world.masks[2].tolist() == [1, 1, 0, 1]


def test_a_latent_masked_in_one_environment_is_no_reason_to_leave_it() -> None:
    world = settled()
    show(world, look(a2=3.0), 2 + 12)
    assert world.active == 1
    assert show(world, look(a2=9.0), 3) == [True] * 3


def test_without_masks_all_latents_apply_in_a_new_environment() -> None:
    world = settled(masks=False)
    show(world, look(90.0, a2=3.0), 2)
    assert world.count == 2
    assert world.masks.all()


def test_v6_capacity_grows_from_nothing_in_the_first_environment() -> None:
    world, found = make(), []
    for _ in range(30):
        found.append(float(world.capacity()))
        show(world, look())
    assert found == pytest.approx([min(step / 20, 1) * 8 for step in range(30)])


def test_v6_capacity_starts_at_what_latents_that_apply_say_in_a_new_one() -> None:
    world = settled()
    show(world, look(kl=0.5, a2=3.0), 2)
    found = []
    for _ in range(30):
        found.append(float(world.capacity()))
        show(world, look())
    assert found == pytest.approx([1.5 + 6.5 * min(step / 20, 1) for step in range(30)])


def test_v6_capacity_is_at_most_the_full_one() -> None:
    world = settled()
    show(world, look(50.0, kl=9.0), 2)
    assert world.capacity() == 8  # they said 36


def test_v6_each_environment_has_a_capacity_of_its_own() -> None:
    world = settled()
    visit(world, 1, 2 + 12)
    assert world.capacity() == pytest.approx(4 + 4 * 12 / 20)
    visit(world, 0, 3)
    assert (world.active, world.capacity()) == (0, 8)
    visit(world, 1, 3 + 2)
    assert world.capacity() == pytest.approx(4 + 4 * 14 / 20)


def test_a_new_environment_is_lent_from_the_one_that_was_least_wrong() -> None:
    """Errors of 80 in the third, which is active, 60 in the second, tried next, and 70 in the first."""
    world = settled(3)
    for error in (80.0, 80.0, 60.0, 70.0):
        assert world.count == 3
        show(world, look(error), chances=(0.4, 0.6, 0, 0))
    assert (world.count, world.nearest) == (4, 1)


def test_what_was_least_wrong_before_is_forgotten() -> None:
    world = settled(2)
    show(world, look(20.0))  # a surprise alone, in the second
    visit(world, 1, 1)
    for error in (80.0, 80.0, 70.0):
        show(world, look(error))
    assert (world.count, world.nearest) == (3, 0)


def test_v8_a_known_environment_is_found_again_and_none_is_opened() -> None:
    world = settled(2)
    assert visit(world, 0, 5) == [1, 1, 0, 0, 0]
    assert (world.count, world.switches, world.doubt) == (2, 2, 0)
    assert world.age.tolist() == [30 + 2, 30, 0, 0]  # what it was found by is not learned
    assert visit(world, 1, 5) == [0, 0, 1, 1, 1]
    assert (world.count, world.switches) == (2, 3)


def test_a_batch_is_tried_by_what_is_usual_there() -> None:
    """An error of 30 is too much where 10 is usual, though little where 50 is."""
    world = settled()
    show(world, look(50.0), 2 + 30)
    assert world.error[:2].tolist() == pytest.approx([10, 50])
    show(world, look(400.0), 2)
    assert world.doubt == 2
    show(world, look(30.0))
    assert (world.count, world.active) == (3, 2)


def test_latents_are_strange_where_they_are_used_and_unusual() -> None:
    world = settled(2)
    world.masks[1, 2] = 0.0
    assert world.usual.strange(look(a2=3.0).alpha).tolist() == [True, False, False, False]
    assert world.usual.strange(look(a0=3.0).alpha).tolist() == [True, True, False, False]
    assert not world.usual.strange(look().alpha).any()
    assert not settled(masks=False).usual.strange(look(a0=3.0).alpha).any()


def test_environments_are_tried_in_the_order_of_the_classifier() -> None:
    for chances, batches in [([0.5, 0.3, 0.2, 0], 3), ([0.3, 0.5, 0.2, 0], 4), ([0, 0, 0, 1], 3)]:
        found = visit(settled(3), 0, 5, chances)
        assert found == [2] * (batches - 1) + [0] * (6 - batches)


def test_what_is_not_known_is_never_tried() -> None:
    world, unknown = settled(2), torch.tensor([0.0, 0.0, 0.4, 0.6])
    for _ in range(3):
        place = world.candidate(unknown)
        assert place < 2
        world.turn(place, look(90.0))
    assert world.count == 3


def test_a_batch_is_of_the_active_environment_until_it_surprises() -> None:
    world = settled(2)
    assert world.candidate(torch.tensor([1.0, 0.0, 0.0, 0.0])) == 1


def test_when_there_is_no_room_nothing_is_opened_and_learning_goes_on() -> None:
    world = settled(2, most=2)
    assert show(world, look(90.0, alpha=2.0), 4) == [False, False, False, True]
    assert all(show(world, look(90.0, alpha=2.0), 30))
    assert (world.count, world.active, world.switches) == (2, 1, 1)
    assert world.masks.all()
    assert world.age.tolist() == [30, 61]


def test_a_world_of_one_environment_never_changes() -> None:
    world = settled(1, most=1)
    assert show(world, look(90.0), 4) == [False, False, True, True]
    assert (world.count, world.active, world.switches) == (1, 0, 0)


def test_told_environments_are_opened_and_gone_to_and_surprise_nobody() -> None:
    world = make(switches="told")
    show(world, look(), 30)
    assert show(world, look(90.0), 5) == [True] * 5
    world.tell(1)
    assert show(world, look(90.0, a2=3.0), 3) == [False, True, True]
    assert (world.count, world.active, world.opened[1]) == (2, 1, 36)
    assert world.masks[1].tolist() == [1, 1, 0, 1]
    world.tell(0)
    assert show(world, look(), 2) == [False, True]
    assert (world.count, world.active, world.switches) == (2, 0, 2)
    world.tell(0)
    show(world, look())
    assert (world.count, world.active, world.switches) == (2, 0, 2)


def test_what_is_told_counts_from_the_first_step() -> None:
    world = make(switches="told")
    world.tell(1)
    show(world, look())
    assert (world.count, world.active, world.nearest) == (2, 1, 0)


def test_told_of_more_than_there_is_room_for_it_stays() -> None:
    world = make(switches="told", most=2)
    for number in (1, 2, 3):
        world.tell(number)
        show(world, look(), 2)
    assert (world.count, world.active) == (2, 1)
    assert world.age[1] == 3  # the batch with which it was told is not learned


def test_without_environments_masks_follow_each_batch_with_memory() -> None:
    world = make(environments=False)
    assert all(show(world, look(a1=2.0), 9))
    assert world.masks[0].all()  # still quiet
    for alpha, applies in [(2.0, 0), (0.7, 0), (0.4, 1), (0.7, 1), (0.9, 0)]:
        assert show(world, look(error=900.0, a1=alpha)) == [True]
        assert world.masks[0].tolist() == [1, applies, 1, 1]
    assert (world.count, world.active) == (1, 0)
    assert world.masks[1:].all()


def test_with_neither_environments_nor_masks_nothing_is_masked() -> None:
    world = make(environments=False, masks=False)
    assert all(show(world, look(alpha=9.0), 30))
    assert world.masks.all()


def test_it_notes_what_was_opened_when() -> None:
    world = settled(2)
    notes = {name: float(value) for name, value in world.notes().items()}
    assert (notes.pop("environments"), notes.pop("active"), notes.pop("switches")) == (2, 1, 1)
    assert (notes.pop("opened_1"), notes.pop("surprises")) == (32, 2)
    assert set(notes) == {"opened_2", "opened_3"}
    assert all(value != value for value in notes.values())  # never


@pytest.mark.parametrize("shown", [0, 1, 2, 3, 4])
def test_it_goes_on_in_the_midst_of_doubt(shown: int) -> None:
    whole, second = settled(3), make()
    visit(whole, 3, shown)
    second.load(kept(whole))
    assert visit(whole, 3, 20) == visit(second, 3, 20)
    assert not changed(kept(whole), second)
    assert whole.count == 4


def test_names_that_are_no_tensors_are_not_there() -> None:
    with pytest.raises(AttributeError, match="mask_"):
        make().mask_  # noqa: B018
    assert at(torch.tensor([3.0, 4.0]), torch.tensor(1)) == 4
