"""Task and Batch: what a learner is given. Nothing is kept that was drawn; two passes agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from everlearn.factors import Factors
from everlearn.philox import Purpose, permutation
from everlearn.render import check_device

Ints = NDArray[np.int64]
SPLITS = ("train", "val", "test")
# Numbers drawn at once when batches are made: 32 MB of images.
_NUMBERS = 2**23


class Batch(NamedTuple):
    """Images with the truth about them, all on one device.

    Attributes:
        images: (B, C, H, W).
        labels: (B,) global class ids.
        factors: one tensor a factor, or None where the data have none.
        theta: (B, 2, 3) maps from canonical to image coordinates, or None likewise.
    """

    images: Tensor
    labels: Tensor
    factors: Factors | None
    theta: Tensor | None

    def parts(self, size: int) -> Iterator[Batch]:
        """Cut into batches of a size, the last as large as is left; nothing is copied."""
        for start in range(0, len(self.labels), size):
            rows = slice(start, start + size)
            factors = self.factors and Factors(*(column[rows] for column in self.factors))
            theta = None if self.theta is None else self.theta[rows]
            yield Batch(self.images[rows], self.labels[rows], factors, theta)


class Pictures(Protocol):
    """Where the images of a split come from."""

    def drawer(self, device: str) -> Callable[[Tensor], Tensor]:
        """Return a function from rows, a tensor on the device, to images there."""


class Placed(NamedTuple):
    """A split whose tables lie on a device."""

    labels: Tensor
    factors: Factors | None
    theta: Tensor | None
    images: Callable[[Tensor], Tensor]

    def batch(self, rows: Tensor) -> Batch:
        """Rows, a tensor on the device, as a batch."""
        factors = self.factors and Factors(*(column[rows] for column in self.factors))
        theta = None if self.theta is None else self.theta[rows]
        return Batch(self.images(rows), self.labels[rows], factors, theta)


@dataclass(frozen=True, eq=False)
class Split:
    """The rows of one part of a task: train, val or test."""

    labels: Ints
    pictures: Pictures = field(repr=False)
    factors: Factors | None = None
    theta: NDArray[np.float64] | None = None
    _places: dict[str, Placed] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.labels)

    def batch(self, rows: ArrayLike | slice, device: str = "cpu") -> Batch:
        """Give any rows, in any order; a slice or an array of row numbers."""
        chosen = (
            np.arange(len(self))[rows] if isinstance(rows, slice) else _check_rows(rows, len(self))
        )
        placed = self.on(device)
        return placed.batch(torch.from_numpy(chosen).to(placed.labels.device))

    def batches(self, batch_size: int, device: str = "cpu") -> Iterator[Batch]:
        """Go through all rows once, in their order."""
        _check_positive(batch_size, "batch_size")
        for start in range(0, len(self), batch_size):
            yield self.batch(slice(start, start + batch_size), device)

    def on(self, device: str) -> Placed:
        """Put the tables on a device, once; batches are then made without leaving it."""
        device = check_device(device)
        if device not in self._places:
            self._places[device] = self._place(device)
        return self._places[device]

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what lies on devices, so that a split can be sent to another process."""
        return {**self.__dict__, "_places": {}}

    def _place(self, device: str) -> Placed:
        factors = self.factors and Factors(
            torch.from_numpy(self.factors.color.astype(np.int64)).to(device),
            *(torch.from_numpy(c.astype(np.float32)).to(device) for c in self.factors[1:]),
        )
        theta = None
        if self.theta is not None:
            theta = torch.from_numpy(self.theta.astype(np.float32)).to(device)
        labels = torch.from_numpy(self.labels).to(device)
        return Placed(labels, factors, theta, self.pictures.drawer(device))


@dataclass(frozen=True, eq=False)
class Task:
    """One experience of a stream.

    Attributes:
        index: place in the stream.
        classes: global ids of the classes that occur.
        canonical: one canonical image a class, in the order of `classes`.
        seed: what the order of training follows from.
        online: whether every training row may be seen only once.
        tells_index: whether a learner may know the index when tested.
    """

    index: int
    classes: tuple[int, ...]
    train: Split
    val: Split
    test: Split
    canonical: Split
    seed: int
    online: bool = False
    tells_index: bool = False

    def split(self, name: str) -> Split:
        """Choose train, val or test."""
        if name not in SPLITS:
            raise ValueError(f"unknown split {name!r}; known: {', '.join(SPLITS)}")
        return {"train": self.train, "val": self.val, "test": self.test}[name]

    def batches(
        self, batch_size: int, epochs: int = 1, device: str = "cpu", *, drop_last: bool = False
    ) -> Iterator[Batch]:
        """Give the training rows, shuffled anew each epoch, in an order that follows from the seed.

        Args:
            drop_last: leave out an epoch's last batch when it is not full.
        """
        self.count_batches(batch_size, epochs)
        return self._batches(batch_size, epochs, check_device(device), drop_last)

    def _batches(self, size: int, epochs: int, device: str, drop_last: bool) -> Iterator[Batch]:
        """Make several batches at once, as many as fit a budget: one long drawing is faster."""
        placed, at_once = self.train.on(device), size
        stop = len(self.train) - (len(self.train) % size if drop_last else 0)
        for epoch in range(epochs):
            rows, start = torch.from_numpy(self.order(epoch))[:stop].to(device), 0
            while start < stop:
                several = placed.batch(rows[start : start + at_once])
                yield from several.parts(size)
                start += at_once
                at_once = size * max(1, _NUMBERS // max(1, size * several.images[0].numel()))

    def count_batches(self, batch_size: int, epochs: int = 1, *, drop_last: bool = False) -> int:
        """How many batches `batches` gives."""
        _check_positive(batch_size, "batch_size")
        _check_positive(epochs, "epochs")
        if self.online and epochs > 1:
            raise ValueError(f"this stream is online: one pass is allowed, found epochs={epochs}")
        full, rest = divmod(len(self.train), batch_size)
        return epochs * (full + (rest > 0 and not drop_last))

    def nth_batch(self, number: int, batch_size: int, device: str = "cpu") -> Batch:
        """Batch `number` of those that `batches` gives, made directly; epochs follow one another."""
        count = self.count_batches(batch_size)
        if number < 0 or count == 0 or (self.online and number >= count):
            raise IndexError(f"batch {number} is not among the {count} batches of an epoch")
        epoch, place = divmod(number, count)
        rows = self.order(epoch)[place * batch_size : (place + 1) * batch_size]
        return self.train.batch(rows, device)

    def order(self, epoch: int = 0) -> Ints:
        """The order of the training rows in an epoch."""
        return permutation(self.seed, Purpose.ORDER, self.index, len(self.train), lane=epoch)

    def place(self, device: str) -> Task:
        """Put the tables that learning needs on a device ahead of time."""
        self.train.on(device)
        self.canonical.on(device)
        return self

    def exemplars(self, device: str = "cpu") -> Batch:
        """One canonical image a class, in the order of `classes`."""
        return self.canonical.batch(slice(None), device)


def find_task(index: int, tasks: int) -> int:
    """The number of a task of a stream with so many, counted from its end where below 0."""
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
