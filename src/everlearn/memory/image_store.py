"""Images of labels in fixed slots on one device. Images never move, so an edit touches no other image."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from everlearn.memory.validation import Shape

_MIN_BLOCK = 256
_MAX_BLOCK = 8192
# Pixels per block: 128 MiB when the search converts a block to float32.
_MAX_BLOCK_PIXELS = 2**25


class Block(NamedTuple):
    """Slots that were allocated together.

    Attributes:
        images: (S + 1, C, H, W) uint8, zero in free slots and in one more that stays free.
        labels: (S,) int64, -1 in free slots.
    """

    images: Tensor
    labels: Tensor


class LabelIndex(NamedTuple):
    """Where the labels of a block are, to find them without a device sync.

    Attributes:
        labels: (S + 1,) int64 in ascending order, the last one larger than any label.
        rows: (S + 1,) the row of each label; the last one is that of the image that stays zero.
    """

    labels: Tensor
    rows: Tensor

    def find(self, labels: Tensor) -> Tensor:
        """Return the rows (N,) of labels (N,), and that of a zero image for labels not in the block."""
        place = torch.searchsorted(self.labels, labels)
        return self.rows[torch.where(self.labels[place] == labels, place, len(self.rows) - 1)]


class ImageStore:
    """Blocks of slots. Each new block doubles the store, up to a maximum size; no block is ever copied.

    Attributes:
        slots: the slot of each stored label.
        prepared: what a search computed from the images; every edit empties it.
    """

    def __init__(self, shape: Shape, device: torch.device) -> None:
        self.shape = shape
        self.device = device
        self.blocks: list[Block] = []
        self.slots: dict[int, int] = {}
        self.prepared: dict[str, Any] = {}
        self._starts: list[int] = []
        self._free: list[int] = []
        self._num_slots = 0
        self._num_used = 0  # slots up to the highest one that was ever filled
        self._indices: list[LabelIndex] = []

    def put(self, labels: list[int], images: Tensor) -> None:
        """Write images: over the old one of a known label, else to the lowest free slot."""
        new = [label for label in labels if label not in self.slots]
        self._grow(len(new))
        self.slots |= {label: heapq.heappop(self._free) for label in new}
        self._num_used = max([self._num_used, *(self.slots[label] + 1 for label in new)])
        label_tensor = torch.tensor(labels, dtype=torch.int64, device=self.device)
        images = images.to(self.device)
        for block, rows, order in self._locate(labels):
            block.images[rows] = images[order]
            block.labels[rows] = label_tensor[order]
        self._forget_prepared()

    def clear(self, labels: list[int]) -> None:
        """Zero and free the slots of labels."""
        for block, rows, _ in self._locate(labels):
            block.images[rows] = 0
            block.labels[rows] = -1
        for label in labels:
            heapq.heappush(self._free, self.slots.pop(label))
        self._forget_prepared()

    def take(self, labels: list[int]) -> Tensor:
        """Return images (N, C, H, W) uint8 in the order of the labels."""
        taken = torch.empty((len(labels), *self.shape), dtype=torch.uint8, device=self.device)
        for block, rows, order in self._locate(labels):
            taken[order] = block.images[rows]
        return taken

    def gather(self, labels: Tensor) -> Tensor:
        """Return images (N, C, H, W) uint8 of device labels (N,), zeros for -1, without a device sync."""
        if not self.blocks:
            return torch.zeros((len(labels), *self.shape), dtype=torch.uint8, device=self.device)
        labels = labels.contiguous()
        found = (
            block.images[index.find(labels)]
            for block, index in zip(self.blocks, self._label_indices(), strict=True)
        )
        # A label is in one block, and the others give zeros: the sum is its image. A GPU adds bytes
        # several times faster than it selects them by a condition.
        return reduce(torch.add, found)

    def used_blocks(self) -> Iterator[Block]:
        """Yield blocks without the slots that were never filled, up to a multiple of 256."""
        for block, start in zip(self.blocks, self._starts, strict=True):
            used = -(-(self._num_used - start) // _MIN_BLOCK) * _MIN_BLOCK
            labels = block.labels[: max(used, 0)]
            if len(labels):
                yield Block(block.images[: len(labels)], labels)

    def copy(self) -> ImageStore:
        """Return a store with the same images in the same slots, which shares no memory with this one."""
        other = ImageStore(self.shape, self.device)
        other.blocks = [Block(block.images.clone(), block.labels.clone()) for block in self.blocks]
        other.slots = dict(self.slots)
        other._starts = list(self._starts)
        other._free = list(self._free)
        other._num_slots = self._num_slots
        other._num_used = self._num_used
        return other

    def _label_indices(self) -> list[LabelIndex]:
        """Sort the labels of every block, unless nothing changed since the last time."""
        if not self._indices:
            self._indices = [_index_labels(block.labels) for block in self.blocks]
        return self._indices

    def _forget_prepared(self) -> None:
        self.prepared.clear()
        self._indices = []

    def _locate(self, labels: list[int]) -> Iterator[tuple[Block, Tensor, Tensor]]:
        """Yield each block with some of the labels, their rows in it and their positions in the list."""
        slots = np.array([self.slots[label] for label in labels], np.int64)
        block_index = np.searchsorted(self._starts, slots, side="right") - 1
        for index in np.unique(block_index):
            order = np.flatnonzero(block_index == index)
            rows = slots[order] - self._starts[index]
            yield self.blocks[index], self._to_device(rows), self._to_device(order)

    def _to_device(self, numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Tensor:
        return torch.from_numpy(numbers).to(self.device)

    def _grow(self, needed: int) -> None:
        largest = max_block_size(self.shape)
        # A GPU searches one large block faster than several small ones.
        smallest = largest if self.device.type == "cuda" else _MIN_BLOCK
        while len(self._free) < needed:
            size = min(max(self._num_slots, smallest), largest)
            images = torch.zeros((size + 1, *self.shape), dtype=torch.uint8, device=self.device)
            labels = torch.full((size,), -1, dtype=torch.int64, device=self.device)
            self.blocks.append(Block(images, labels))
            self._starts.append(self._num_slots)
            # Still a heap, because the new slots are higher than all others.
            self._free.extend(range(self._num_slots, self._num_slots + size))
            self._num_slots += size


def _index_labels(labels: Tensor) -> LabelIndex:
    """Sort the labels of a block."""
    ascending, rows = labels.sort()
    end = labels.new_full((1,), torch.iinfo(torch.int64).max)
    zero_row = labels.new_full((1,), len(labels))
    return LabelIndex(torch.cat((ascending, end)), torch.cat((rows, zero_row)))


def max_block_size(shape: Shape) -> int:
    """Return the number of slots of the largest blocks: a power of two within the pixel budget."""
    fitting = max(_MAX_BLOCK_PIXELS // int(np.prod(shape)), 1)
    return int(min(2 ** (fitting.bit_length() - 1), _MAX_BLOCK))
