"""A memory of latents: the rule of how many enter, equal shares of all experiences, going on."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from everlearn.memory.latents import LatentMemory

SHAPE = (2, 1, 1)


def experience(index, count, device="cpu"):
    """Latents that tell their experience and their place in it, with the experience as unit."""
    places = torch.arange(count, device=device)
    latents = torch.stack([torch.full_like(places, index), places], 1).float()
    return latents.reshape(count, *SHAPE), np.full(count, index)


def filled(memory, sizes, first=0):
    for index, count in enumerate(sizes, first):
        memory.admit(index, *experience(index, count))
    return memory


def held(memory):
    """(experience, place) of everything held."""
    return [tuple(row) for row in memory.latents[: memory.filled].flatten(1).int().tolist()]


@pytest.mark.parametrize(
    ("capacity", "sizes", "found"),
    [
        (12, [20], {0: 12}),  # an experience may fill it
        (12, [5], {0: 5}),  # or have fewer latents than there is room
        (12, [5, 20], {0: 5, 1: 6}),  # 12 // 2 of them, and one place stays free
        (12, [8, 20], {0: 6, 1: 6}),  # 4 fill it, 2 replace others
        (12, [12, 3], {0: 9, 1: 3}),
        (12, [12, 0, 20], {0: 8, 2: 4}),  # an empty experience counts as one
    ],
)
def test_how_many_of_each_experience_are_held(capacity, sizes, found):
    memory = filled(LatentMemory(capacity, SHAPE, 0, "cpu"), sizes)
    counts = np.bincount(memory.labels)
    assert {unit: int(count) for unit, count in enumerate(counts) if count} == found
    assert memory.filled == sum(found.values())


def test_latents_lie_beside_their_units_and_none_is_held_twice():
    memory = filled(LatentMemory(30, SHAPE, 3, "cpu"), [20, 40, 25, 9, 60])
    rows = held(memory)
    assert len(set(rows)) == len(rows) == 30
    assert [index for index, _ in rows] == memory.units.tolist() == memory.labels.tolist()


def test_every_experience_has_the_same_share_and_so_has_every_latent():
    shares, places, seeds = np.zeros(6), np.zeros(60), 200
    for seed in range(seeds):
        rows = held(filled(LatentMemory(60, SHAPE, seed, "cpu"), [60] * 6))
        shares += np.bincount([index for index, _ in rows], minlength=6)
        places += np.bincount([place for _, place in rows], minlength=60)
    # 10 of each experience, with a standard deviation of 0.2; each place 200 times, of 13.
    assert np.abs(shares / seeds - 10).max() < 0.8
    assert np.abs(places - 200).max() < 60


def test_391_experiences_keep_storing_in_300_places():
    memory = filled(LatentMemory(300, SHAPE, 0, "cpu"), [300] + [30] * 389)
    assert memory.filled == 300
    memory.admit(390, *experience(390, 30))
    assert (memory.labels == 390).sum() == 1
    # From the 151st on each stores one latent, which stays with a chance of 299 / 300 an experience.
    assert len(set(memory.labels[memory.labels >= 300])) > 50


def test_a_stored_state_goes_on_as_if_never_stopped():
    sizes = [10, 40, 7, 30, 30]
    whole = filled(LatentMemory(25, SHAPE, 5, "cpu"), sizes)
    first = filled(LatentMemory(25, SHAPE, 5, "cpu"), sizes[:2])
    second = filled(LatentMemory(25, SHAPE, 5, "cpu"), [3])
    places = second.latents.data_ptr(), second.units.data_ptr()
    second.load_state({name: part.clone() for name, part in first.state().items()})
    filled(second, sizes[2:], first=2)
    assert held(second) == held(whole)
    assert second.labels.tolist() == whole.labels.tolist() == whole.units.tolist()
    assert (second.latents.data_ptr(), second.units.data_ptr()) == places


def test_a_state_has_only_what_is_held():
    memory = LatentMemory(50, SHAPE, 0, "cpu")
    assert not any(part.numel() for part in memory.state().values())
    state = filled(memory, [7]).state()
    assert state["latents"].shape == (7, *SHAPE)
    assert state["units"].shape == (7,)
    assert (state["latents"].dtype, state["units"].dtype) == (torch.float32, torch.int64)


def test_what_is_kept_follows_from_the_seed_and_the_experience():
    chosen = [LatentMemory(10, SHAPE, seed, "cpu").choose(0, 40).items for seed in (0, 0, 1)]
    assert (chosen[0] == chosen[1]).all()
    assert (chosen[0] != chosen[2]).any()


def test_half_precision_latents_are_kept_in_float32():
    memory, (latents, units) = LatentMemory(4, SHAPE, 0, "cpu"), experience(0, 4)
    memory.admit(0, latents.half(), units)
    assert sorted(held(memory)) == [(0, place) for place in range(4)]


@pytest.mark.gpu
def test_a_gpu_holds_the_same():
    here, there = LatentMemory(25, SHAPE, 5, "cpu"), LatentMemory(25, SHAPE, 5, "cuda")
    for index, count in enumerate([10, 40, 7]):
        here.admit(index, *experience(index, count))
        there.admit(index, *experience(index, count, "cuda"))
    assert torch.equal(there.latents.cpu(), here.latents)
    assert there.labels.tolist() == here.labels.tolist()
