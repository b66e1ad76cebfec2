"""A buffer restores the images written to it, in as few bytes as they need."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from everlearn.evaluation.costs import count_bytes
from everlearn.memory import Buffer, draw_replay_rows


def make_images(count: int, shape: tuple[int, int, int]) -> torch.Tensor:
    """Return images with pixels n / 255 that include every level."""
    numbers = torch.arange(count * shape[0] * shape[1] * shape[2]) % 256
    return numbers.reshape(count, *shape).float() / 255


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_8_bit_images_are_restored_bit_for_bit(device: str) -> None:
    buffer, images = Buffer(8, (1, 8, 8), 8, device), make_images(8, (1, 8, 8))
    rows = torch.arange(8, device=device)
    buffer.put(np.arange(8), images.to(device), rows)
    assert torch.equal(buffer.images(rows).cpu(), images)
    assert images.unique().numel() == 256


@pytest.mark.parametrize("off", [-0.4, 0.4])
def test_other_pixels_are_rounded_to_the_nearest_level(off: float) -> None:
    buffer, images = Buffer(8, (1, 8, 8), 8, "cpu"), make_images(8, (1, 8, 8))
    buffer.put(np.arange(8), images + off / 255, torch.arange(8))
    assert torch.equal(buffer.images(torch.arange(8)), images)


def test_float_images_are_stored_without_loss() -> None:
    images = torch.randn((3, 5, 1, 1), generator=torch.Generator().manual_seed(0))
    buffer = Buffer(3, (5, 1, 1), 32, "cpu")
    buffer.put(np.arange(3), images, torch.zeros(3, dtype=torch.int64))
    assert torch.equal(buffer.images(torch.arange(3)), images)


def test_put_replaces_the_content_of_a_slot() -> None:
    buffer, images = Buffer(3, (1, 2, 2), 8, "cpu"), make_images(4, (1, 2, 2))
    buffer.put(np.array([0, 1, 2]), images[:3], torch.tensor([7, 8, 9]))
    buffer.put(np.array([1]), images[3:], torch.tensor([5]))
    rows = torch.tensor([2, 1, 0])
    assert torch.equal(buffer.images(rows), images[[2, 3, 0]])
    assert buffer.targets(rows).tolist() == [9, 5, 7]


def test_state_bytes_count_the_stored_images_targets_and_logits() -> None:
    buffer = Buffer(10, (3, 4, 4), 8, "cpu", logits=6)
    assert count_bytes(buffer.state()) == 0
    buffer.put(np.arange(7), make_images(7, (3, 4, 4)), torch.arange(7))
    assert count_bytes(buffer.state()) == 7 * (3 * 4 * 4 + 8 + 6 * 4)
    floats = Buffer(10, (3, 4, 4), 32, "cpu")
    floats.put(np.arange(10), make_images(10, (3, 4, 4)), torch.arange(10))
    assert count_bytes(floats.state()) == 10 * (4 * 3 * 4 * 4 + 8)


def test_the_extra_row_is_never_part_of_the_state() -> None:
    buffer, images = Buffer(2, (1, 2, 2), 8, "cpu"), make_images(3, (1, 2, 2))
    buffer.put(np.arange(2), images[:2], torch.tensor([3, 4]))
    buffer.write(torch.tensor([2]), images[2:], torch.tensor([9]))
    assert buffer.filled == 2
    assert buffer.state()["targets"].tolist() == [3, 4]
    assert torch.equal(buffer.state()["images"].float() / 255, images[:2])


def test_logits_are_stored_with_their_images() -> None:
    buffer, logits = Buffer(4, (1, 1, 1), 8, "cpu", logits=3), torch.randn(2, 3)
    buffer.write_logits(torch.tensor([3, 0]), logits.requires_grad_())
    assert torch.equal(buffer.logits(torch.tensor([0, 3])), logits[[1, 0]])
    assert not buffer.logits(torch.tensor([0])).requires_grad


def test_load_state_writes_into_the_allocated_tensors() -> None:
    first, second = (Buffer(5, (1, 2, 2), 8, "cpu", logits=2) for _ in range(2))
    first.put(np.arange(3), make_images(3, (1, 2, 2)), torch.tensor([1, 2, 3]))
    first.write_logits(torch.arange(3), torch.ones(3, 2))
    addresses = [tensor.data_ptr() for tensor in second.tensors]
    second.load_state(first.state())
    rows = torch.arange(3)
    assert second.filled == 3
    assert torch.equal(first.images(rows), second.images(rows))
    assert torch.equal(first.targets(rows), second.targets(rows))
    assert torch.equal(first.logits(rows), second.logits(rows))
    assert [tensor.data_ptr() for tensor in second.tensors] == addresses


def test_replay_rows_are_uniform_with_replacement() -> None:
    drawn = draw_replay_rows(0, 3, 20, steps=1_000, count=32)
    counts = np.bincount(drawn.ravel(), minlength=20)
    # 1,600 of each on average, with a standard deviation of 39.
    assert len(counts) == 20
    assert np.abs(counts - 1_600).max() < 160
    assert any(len(set(row)) < 32 for row in drawn.tolist())


def test_replay_rows_depend_on_seed_task_step_and_substream() -> None:
    first = draw_replay_rows(0, 3, 1_000, steps=5, count=8)
    assert (draw_replay_rows(0, 3, 1_000, steps=9, count=8)[:5] == first).all()
    for other in (draw_replay_rows(1, 3, 1_000, 5, 8), draw_replay_rows(0, 4, 1_000, 5, 8)):
        assert (other != first).any()
    assert (draw_replay_rows(0, 3, 1_000, 5, 8, substream=1) != first).any()


def test_replay_rows_respect_the_fill_level_of_each_step() -> None:
    filled = np.array([1, 3, 10, 40])
    drawn = draw_replay_rows(0, 0, filled, steps=4, count=500)
    assert drawn.max(axis=1).tolist() == [0, 2, 9, 39]
    assert (drawn >= 0).all()
