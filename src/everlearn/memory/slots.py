"""Pictures in slots on one device. A picture never moves, so editing one leaves all others alone."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from everlearn.memory.checks import Shape

_SMALLEST, _LARGEST = 256, 8192
# Numbers that a block may hold when the search turns it into float32: 128 MiB.
_BUDGET = 2**25


class Block(NamedTuple):
    """Slots that were made together.

    Attributes:
        pictures: (S, C, H, W) uint8, zero where the slot is free.
        labels: (S,) int64, -1 where the slot is free.
    """

    pictures: Tensor
    labels: Tensor


class Slots:
    """Blocks of slots. A new block is as large as all before, up to a limit; none is ever copied."""

    def __init__(self, shape: Shape, device: torch.device) -> None:
        self.shape = shape
        self.device = device
        self.blocks: list[Block] = []
        self.places: dict[int, int] = {}
        self._starts: list[int] = []
        self._free: list[int] = []
        self._count = 0

    def put(self, labels: list[int], pictures: Tensor) -> None:
        """Write pictures: over the old one where the label is known, else in the lowest free slot."""
        new = [label for label in labels if label not in self.places]
        self._grow(len(new))
        self.places |= {label: heapq.heappop(self._free) for label in new}
        written = torch.tensor(labels, dtype=torch.int64, device=self.device)
        pictures = pictures.to(self.device)
        for block, rows, order in self._find(labels):
            block.pictures[rows] = pictures[order]
            block.labels[rows] = written[order]

    def clear(self, labels: list[int]) -> None:
        """Zero the slots of labels and free them."""
        for block, rows, _ in self._find(labels):
            block.pictures[rows] = 0
            block.labels[rows] = -1
        for label in labels:
            heapq.heappush(self._free, self.places.pop(label))

    def take(self, labels: list[int]) -> Tensor:
        """Pictures (N, C, H, W) uint8 in the order of the labels."""
        taken = torch.empty((len(labels), *self.shape), dtype=torch.uint8, device=self.device)
        for block, rows, order in self._find(labels):
            taken[order] = block.pictures[rows]
        return taken

    def gather(self, labels: Tensor) -> Tensor:
        """Pictures (N, C, H, W) uint8 of labels (N,) on the device, zeros for -1; waits for nothing."""
        taken = torch.zeros((len(labels), *self.shape), dtype=torch.uint8, device=self.device)
        labels = labels.contiguous()
        for block in self.blocks:
            known, rows = block.labels.sort()
            place = torch.searchsorted(known, labels).clamp(max=len(known) - 1)
            here = known[place] == labels
            if here.is_cuda:  # to know how many there are would mean to wait
                taken = torch.where(here[:, None, None, None], block.pictures[rows[place]], taken)
            else:
                taken[here] = block.pictures[rows[place[here]]]
        return taken

    def copy(self) -> Slots:
        """The same pictures in the same slots, in memory of their own."""
        other = Slots(self.shape, self.device)
        other.blocks = [Block(*(part.clone() for part in block)) for block in self.blocks]
        other.places, other._count = dict(self.places), self._count
        other._starts, other._free = list(self._starts), list(self._free)
        return other

    def _find(self, labels: list[int]) -> Iterator[tuple[Block, Tensor, Tensor]]:
        """For each block that holds labels: the block, their rows in it, their places in the list."""
        slots = np.array([self.places[label] for label in labels], np.int64)
        owners = np.searchsorted(self._starts, slots, side="right") - 1
        for owner in np.unique(owners):
            order = np.flatnonzero(owners == owner)
            rows = slots[order] - self._starts[owner]
            yield self.blocks[owner], self._move(rows), self._move(order)

    def _move(self, numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Tensor:
        return torch.from_numpy(numbers).to(self.device)

    def _grow(self, needed: int) -> None:
        largest = block_limit(self.shape)
        # A GPU searches one large block faster than several small ones.
        smallest = largest if self.device.type == "cuda" else _SMALLEST
        while len(self._free) < needed:
            size = min(max(self._count, smallest), largest)
            pictures = torch.zeros((size, *self.shape), dtype=torch.uint8, device=self.device)
            labels = torch.full((size,), -1, dtype=torch.int64, device=self.device)
            self.blocks.append(Block(pictures, labels))
            self._starts.append(self._count)
            # Still a heap: the new slots are higher than all before.
            self._free.extend(range(self._count, self._count + size))
            self._count += size


def block_limit(shape: Shape) -> int:
    """How many slots the largest blocks have: a power of two within the budget."""
    fitting = max(_BUDGET // int(np.prod(shape)), 1)
    return int(min(2 ** (fitting.bit_length() - 1), _LARGEST))
