"""The latent memory: how many latents enter, equal shares of experiences, and resuming."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from everlearn.memory.latent_memory import LatentMemory

SHAPE = (2, 1, 1)


def experience(index, count, device="cpu"):
    """Return latents that encode their experience and position, with the experience as target."""
    places = torch.arange(count, device=device)
    latents = torch.stack([torch.full_like(places, index), places], 1).float()
    return latents.reshape(count, *SHAPE), np.full(count, index)


def filled(memory, sizes, first=0):
    for index, count in enumerate(sizes, first):
        memory.insert(index, *experience(index, count))
    return memory


def stored(memory):
    """Return (experience, position) of every stored latent."""
    return [tuple(row) for row in memory.latents[: memory.filled].flatten(1).int().tolist()]


@pytest.mark.parametrize(
    ("capacity", "sizes", "found"),
    [
        (12, [20], {0: 12}),  # an experience may fill it
        (12, [5], {0: 5}),  # or have fewer latents than on_gpu is room
        (12, [5, 20], {0: 5, 1: 6}),  # 12 // 2 of them, and one place stays free
        (12, [8, 20], {0: 6, 1: 6}),  # 4 fill it, 2 replace others
        (12, [12, 3], {0: 9, 1: 3}),
        (12, [12, 0, 20], {0: 8, 2: 4}),  # an empty experience counts as one
    ],
)
def test_number_of_latents_stored_per_experience(capacity, sizes, found):
    memory = filled(LatentMemory(capacity, SHAPE, 0, "cpu"), sizes)
    counts = np.bincount(memory.labels)
    assert {target: int(count) for target, count in enumerate(counts) if count} == found
    assert memory.filled == sum(found.values())


def test_latents_keep_their_targets_and_are_stored_once():
    memory = filled(LatentMemory(30, SHAPE, 3, "cpu"), [20, 40, 25, 9, 60])
    rows = stored(memory)
    assert len(set(rows)) == len(rows) == 30
    assert [index for index, _ in rows] == memory.targets.tolist() == memory.labels.tolist()


def test_experiences_and_latents_have_equal_shares():
    shares, places, seeds = np.zeros(6), np.zeros(60), 200
    for seed in range(seeds):
        rows = stored(filled(LatentMemory(60, SHAPE, seed, "cpu"), [60] * 6))
        shares += np.bincount([index for index, _ in rows], minlength=6)
        places += np.bincount([place for _, place in rows], minlength=60)
    # 10 of each experience, with a standard deviation of 0.2; each place 200 times, of 13.
    assert np.abs(shares / seeds - 10).max() < 0.8
    assert np.abs(places - 200).max() < 60


def test_more_experiences_than_slots_still_store_one_latent_each():
    memory = filled(LatentMemory(300, SHAPE, 0, "cpu"), [300] + [30] * 389)
    assert memory.filled == 300
    memory.insert(390, *experience(390, 30))
    assert (memory.labels == 390).sum() == 1
    # From the 151st on each stores one latent, which stays with a chance of 299 / 300 an experience.
    assert len(set(memory.labels[memory.labels >= 300])) > 50


def test_a_loaded_state_continues_as_before():
    sizes = [10, 40, 7, 30, 30]
    uninterrupted = filled(LatentMemory(25, SHAPE, 5, "cpu"), sizes)
    first = filled(LatentMemory(25, SHAPE, 5, "cpu"), sizes[:2])
    second = filled(LatentMemory(25, SHAPE, 5, "cpu"), [3])
    places = second.latents.data_ptr(), second.targets.data_ptr()
    second.load_state({name: part.clone() for name, part in first.state().items()})
    filled(second, sizes[2:], first=2)
    assert stored(second) == stored(uninterrupted)
    assert second.labels.tolist() == uninterrupted.labels.tolist() == uninterrupted.targets.tolist()
    assert (second.latents.data_ptr(), second.targets.data_ptr()) == places


def test_the_state_contains_only_filled_slots():
    memory = LatentMemory(50, SHAPE, 0, "cpu")
    assert not any(part.numel() for part in memory.state().values())
    state = filled(memory, [7]).state()
    assert state["latents"].shape == (7, *SHAPE)
    assert state["targets"].shape == (7,)
    assert (state["latents"].dtype, state["targets"].dtype) == (torch.float32, torch.int64)


def test_the_selection_depends_on_the_seed():
    chosen = [LatentMemory(10, SHAPE, seed, "cpu").select(0, 40).items for seed in (0, 0, 1)]
    assert (chosen[0] == chosen[1]).all()
    assert (chosen[0] != chosen[2]).any()


def test_half_precision_latents_are_stored_in_float32():
    memory, (latents, targets) = LatentMemory(4, SHAPE, 0, "cpu"), experience(0, 4)
    memory.insert(0, latents.half(), targets)
    assert sorted(stored(memory)) == [(0, place) for place in range(4)]


@pytest.mark.gpu
def test_gpu_and_cpu_store_the_same():
    on_cpu, on_gpu = LatentMemory(25, SHAPE, 5, "cpu"), LatentMemory(25, SHAPE, 5, "cuda")
    for index, count in enumerate([10, 40, 7]):
        on_cpu.insert(index, *experience(index, count))
        on_gpu.insert(index, *experience(index, count, "cuda"))
    assert torch.equal(on_gpu.latents.cpu(), on_cpu.latents)
    assert on_gpu.labels.tolist() == on_cpu.labels.tolist()
