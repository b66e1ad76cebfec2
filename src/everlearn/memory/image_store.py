"""Images of labels in fixed slots on one device. Images never move, so an edit touches no other image."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

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
        images: (S, C, H, W) uint8, zero in free slots.
        labels: (S,) int64, -1 in free slots.
    """

    images: Tensor
    labels: Tensor


class ImageStore:
    """Blocks of slots. Each new block doubles the store, up to a maximum size; no block is ever copied.

    Attributes:
        slots: the slot of each stored label.
    """

    def __init__(self, shape: Shape, device: torch.device) -> None:
        self.shape = shape
        self.device = device
        self.blocks: list[Block] = []
        self.slots: dict[int, int] = {}
        self._starts: list[int] = []
        self._free: list[int] = []
        self._num_slots = 0

    def put(self, labels: list[int], images: Tensor) -> None:
        """Write images: over the old one of a known label, else to the lowest free slot."""
        new = [label for label in labels if label not in self.slots]
        self._grow(len(new))
        self.slots |= {label: heapq.heappop(self._free) for label in new}
        label_tensor = torch.tensor(labels, dtype=torch.int64, device=self.device)
        images = images.to(self.device)
        for block, rows, order in self._locate(labels):
            block.images[rows] = images[order]
            block.labels[rows] = label_tensor[order]

    def clear(self, labels: list[int]) -> None:
        """Zero and free the slots of labels."""
        for block, rows, _ in self._locate(labels):
            block.images[rows] = 0
            block.labels[rows] = -1
        for label in labels:
            heapq.heappush(self._free, self.slots.pop(label))

    def take(self, labels: list[int]) -> Tensor:
        """Return images (N, C, H, W) uint8 in the order of the labels."""
        taken = torch.empty((len(labels), *self.shape), dtype=torch.uint8, device=self.device)
        for block, rows, order in self._locate(labels):
            taken[order] = block.images[rows]
        return taken

    def gather(self, labels: Tensor) -> Tensor:
        """Return images (N, C, H, W) uint8 of device labels (N,), zeros for -1, without a device sync."""
        gathered = torch.zeros((len(labels), *self.shape), dtype=torch.uint8, device=self.device)
        labels = labels.contiguous()
        for block in self.blocks:
            block_labels, rows = block.labels.sort()
            index = torch.searchsorted(block_labels, labels).clamp(max=len(block_labels) - 1)
            match = block_labels[index] == labels
            if match.is_cuda:  # a boolean index would wait for the number of matches
                found = block.images[rows[index]]
                gathered = torch.where(match[:, None, None, None], found, gathered)
            else:
                gathered[match] = block.images[rows[index[match]]]
        return gathered

    def copy(self) -> ImageStore:
        """Return a store with the same images in the same slots, which shares no memory with this one."""
        other = ImageStore(self.shape, self.device)
        other.blocks = [Block(block.images.clone(), block.labels.clone()) for block in self.blocks]
        other.slots = dict(self.slots)
        other._starts = list(self._starts)
        other._free = list(self._free)
        other._num_slots = self._num_slots
        return other

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
            images = torch.zeros((size, *self.shape), dtype=torch.uint8, device=self.device)
            labels = torch.full((size,), -1, dtype=torch.int64, device=self.device)
            self.blocks.append(Block(images, labels))
            self._starts.append(self._num_slots)
            # Still a heap, because the new slots are higher than all others.
            self._free.extend(range(self._num_slots, self._num_slots + size))
            self._num_slots += size


def max_block_size(shape: Shape) -> int:
    """Return the number of slots of the largest blocks: a power of two within the pixel budget."""
    fitting = max(_MAX_BLOCK_PIXELS // int(np.prod(shape)), 1)
    return int(min(2 ** (fitting.bit_length() - 1), _MAX_BLOCK))
