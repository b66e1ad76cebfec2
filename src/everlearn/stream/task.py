"""Task, Split and Batch: what a learner is given. Images are made on request and never stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from everlearn.core.random import Purpose, permutation
from everlearn.factors import Factors
from everlearn.render import check_device
from everlearn.stream.device_copy import copy_to_device

Ints = NDArray[np.int64]
SPLITS = ("train", "val", "test")
# Pixels made at once while iterating over batches: 32 MB of float32 images.
_PIXELS_AT_ONCE = 2**23


class Batch(NamedTuple):
    """Images with their labels and factors, all on one device.

    Attributes:
        images: (B, C, H, W).
        labels: (B,) global class ids.
        factors: one tensor per factor, or None where the data have none.
        theta: (B, 2, 3) maps from canonical to image coordinates, or None where the data have none.
    """

    images: Tensor
    labels: Tensor
    factors: Factors | None
    theta: Tensor | None

    def chunks(self, size: int) -> Iterator[Batch]:
        """Yield consecutive views of `size` rows; the last may be smaller."""
        for start in range(0, len(self.labels), size):
            rows = slice(start, start + size)
            factors = self.factors and Factors(*(column[rows] for column in self.factors))
            theta = None if self.theta is None else self.theta[rows]
            yield Batch(self.images[rows], self.labels[rows], factors, theta)


class ImageSource(Protocol):
    """The images of a split."""

    def loader(self, device: str) -> Callable[[Tensor], Tensor]:
        """Return a function from row numbers to images (B, C, H, W), both on the device."""


class DeviceSplit(NamedTuple):
    """A split with its tables on a device."""

    labels: Tensor
    factors: Factors | None
    theta: Tensor | None
    images: Callable[[Tensor], Tensor]

    def batch(self, rows: Tensor) -> Batch:
        """Make a batch of rows, given as a tensor on the device."""
        factors = self.factors and Factors(*(column[rows] for column in self.factors))
        theta = None if self.theta is None else self.theta[rows]
        return Batch(self.images(rows), self.labels[rows], factors, theta)


@dataclass(frozen=True, eq=False)
class Split:
    """The training, validation or test rows of a task."""

    labels: Ints
    image_source: ImageSource = field(repr=False)
    factors: Factors | None = None
    theta: NDArray[np.float64] | None = None
    _on_device: dict[str, DeviceSplit] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.labels)

    def batch(self, rows: ArrayLike | slice, device: str = "cpu") -> Batch:
        """Make a batch of any rows, in any order: a slice or an array of row numbers."""
        chosen = (
            np.arange(len(self))[rows] if isinstance(rows, slice) else _check_rows(rows, len(self))
        )
        split = self.to(device)
        return split.batch(torch.from_numpy(chosen).to(split.labels.device))

    def batches(self, batch_size: int, device: str = "cpu") -> Iterator[Batch]:
        """Yield all rows once, in order."""
        _check_positive(batch_size, "batch_size")
        for start in range(0, len(self), batch_size):
            yield self.batch(slice(start, start + batch_size), device)

    def to(self, device: str) -> DeviceSplit:
        """Copy the tables to a device once, so that batches are made without leaving it."""
        device = check_device(device)
        if device not in self._on_device:
            self._on_device[device] = self._copy_to(device)
        return self._on_device[device]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the copies on devices, so that a split can be sent to another process."""
        return {**self.__dict__, "_on_device": {}}

    def _copy_to(self, device: str) -> DeviceSplit:
        factors = self.factors and Factors(
            torch.from_numpy(self.factors.color.astype(np.int64)).to(device),
            *(torch.from_numpy(c.astype(np.float32)).to(device) for c in self.factors[1:]),
        )
        theta = None
        if self.theta is not None:
            theta = torch.from_numpy(self.theta.astype(np.float32)).to(device)
        labels = torch.from_numpy(self.labels).to(device)
        return DeviceSplit(labels, factors, theta, self.image_source.loader(device))


@dataclass(frozen=True, eq=False)
class Task:
    """One experience of a stream.

    Attributes:
        index: position in the stream.
        classes: global ids of the classes that occur.
        canonical: one canonical image per class, in the order of `classes`.
        seed: determines the training order.
        online: whether every training row may be seen only once.
        task_id_given: whether the learner is told the index at test time.
    """

    index: int
    classes: tuple[int, ...]
    train: Split
    val: Split
    test: Split
    canonical: Split
    seed: int
    online: bool = False
    task_id_given: bool = False

    def split(self, name: str) -> Split:
        """Return the split called train, val or test."""
        if name not in SPLITS:
            raise ValueError(f"unknown split {name!r}; known: {', '.join(SPLITS)}")
        return {"train": self.train, "val": self.val, "test": self.test}[name]

    def batches(
        self, batch_size: int, epochs: int = 1, device: str = "cpu", *, drop_last: bool = False
    ) -> Iterator[Batch]:
        """Yield training batches, reshuffled every epoch in an order that the seed determines.

        Args:
            drop_last: skip an epoch's last batch when it is not full.
        """
        self.count_batches(batch_size, epochs)
        return self._batches(batch_size, epochs, check_device(device), drop_last)

    def _batches(self, size: int, epochs: int, device: str, drop_last: bool) -> Iterator[Batch]:
        """Make as many batches at once as the pixel budget allows: rendering them together is faster."""
        train = self.train.to(device)
        at_once = size
        stop = len(self.train) - (len(self.train) % size if drop_last else 0)
        for epoch in range(epochs):
            rows = copy_to_device(self.order(epoch)[:stop], device)
            start = 0
            while start < stop:
                block = train.batch(rows[start : start + at_once])
                yield from block.chunks(size)
                start += at_once
                at_once = size * max(1, _PIXELS_AT_ONCE // max(1, size * block.images[0].numel()))

    def count_batches(self, batch_size: int, epochs: int = 1, *, drop_last: bool = False) -> int:
        """Count the batches that `batches` yields."""
        _check_positive(batch_size, "batch_size")
        _check_positive(epochs, "epochs")
        if self.online and epochs > 1:
            raise ValueError(f"this stream is online: one pass is allowed, found epochs={epochs}")
        full, rest = divmod(len(self.train), batch_size)
        return epochs * (full + (rest > 0 and not drop_last))

    def nth_batch(self, number: int, batch_size: int, device: str = "cpu") -> Batch:
        """Make the batch that `batches` yields as number `number`, counted across epochs."""
        count = self.count_batches(batch_size)
        if number < 0 or count == 0 or (self.online and number >= count):
            raise IndexError(f"batch {number} is not among the {count} batches of an epoch")
        epoch, position = divmod(number, count)
        rows = self.order(epoch)[position * batch_size : (position + 1) * batch_size]
        return self.train.batch(rows, device)

    def order(self, epoch: int = 0) -> Ints:
        """Return the order of the training rows in an epoch."""
        return permutation(self.seed, Purpose.ORDER, self.index, len(self.train), substream=epoch)

    def to(self, device: str) -> Task:
        """Copy the tables that learning needs to a device ahead of time."""
        self.train.to(device)
        self.canonical.to(device)
        return self

    def exemplars(self, device: str = "cpu") -> Batch:
        """Return one canonical image per class, in the order of `classes`."""
        return self.canonical.batch(slice(None), device)


def find_task(index: int, tasks: int) -> int:
    """Return the number of a task; a negative index counts from the end of the stream."""
    if isinstance(index, bool) or not isinstance(index, (int, np.integer)):
        raise TypeError(f"a task is chosen by a whole number, found {index!r}")
    number = int(index) + (tasks if index < 0 else 0)
    if not 0 <= number < tasks:
        raise IndexError(f"task {index} is not in the stream (0 .. {tasks - 1})")
    return number


def _check_rows(rows: ArrayLike, count: int) -> Ints:
    array = np.atleast_1d(np.asarray(rows))
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(f"rows must be whole numbers in one row, found {array.dtype} {array.shape}")
    if array.min() < 0 or array.max() >= count:
        raise IndexError(f"rows must lie in 0 .. {count - 1}, found {array.min()} .. {array.max()}")
    return array.astype(np.int64)


def _check_positive(value: int, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} must be a whole number of 1 or more, found {value!r}")
