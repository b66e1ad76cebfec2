"""Exemplars: one canonical picture a class, that can be read, edited, merged, searched and saved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from everlearn.border import check_whole
from everlearn.memory import checks
from everlearn.memory.file import State, read_state, write_state
from everlearn.memory.search import Found, nearest, window
from everlearn.memory.sheet import contact_sheet
from everlearn.memory.slots import Slots

CONFLICTS = ("error", "keep", "replace")


class Exemplars:
    """A picture of each class on one device. An edit is done as a whole or not at all.

    Args:
        shape: (channels, height, width) of every picture.
        crop: compare only a central part, this half-width as a fraction of the side; 0.36 holds
            every canonical shape. None compares whole pictures.
    """

    def __init__(
        self, shape: Sequence[int], device: str | torch.device = "cpu", crop: float | None = None
    ) -> None:
        self.shape = checks.check_shape(shape)
        self.crop = checks.check_crop(crop)
        self.device = torch.empty(0, device=device).device
        self._slots = Slots(self.shape, self.device)

    def add(self, labels: ArrayLike | Tensor, images: Any) -> None:
        """Add pictures (N, C, H, W), uint8 or float in 0 .. 1, of new labels, 0 .. 2**62."""
        new, pictures = self._check(labels, images)
        known = [label for label in new if label in self]
        if known:
            raise ValueError(f"labels already stored: {checks.name(known)}; use replace for these")
        self._slots.put(new, pictures)

    def replace(self, labels: ArrayLike | Tensor, images: Any) -> None:
        """Put other pictures in the place of those of known labels."""
        changed, pictures = self._check(labels, images)
        self._slots.put(self._check_known(changed), pictures)

    def remove(self, labels: ArrayLike | Tensor) -> None:
        """Forget pictures: their slots are zeroed and all others stay as they are."""
        gone = checks.check_different(checks.check_labels(labels))
        self._slots.clear(self._check_known(gone))

    def merge(self, other: Exemplars, conflict: str = "error") -> None:
        """Take over, in place, the pictures of another memory, which is left as it is.

        Args:
            conflict: what happens where both hold different pictures of one label: an error,
                or this memory's is kept, or it is replaced by the other's.
        """
        if conflict not in CONFLICTS:
            raise ValueError(f"unknown conflict {conflict!r}; known: {', '.join(CONFLICTS)}")
        if other.shape != self.shape:
            raise ValueError(
                f"pictures are {self.shape} here and {other.shape} in the other memory"
            )
        differing = self._differing(other)
        if differing and conflict == "error":
            raise ValueError(
                f"the memories hold different pictures of labels {checks.name(differing)}; "
                "choose conflict='keep' or 'replace'"
            )
        taken = [label for label in other.labels if label not in self]
        taken += differing if conflict == "replace" else []
        self._slots.put(taken, other.images(taken))

    @property
    def labels(self) -> list[int]:
        """The labels stored, in ascending order."""
        return sorted(self._slots.places)

    def __contains__(self, label: object) -> bool:
        """Whether there is a picture of a label."""
        return label in self._slots.places

    def __len__(self) -> int:
        """Count the pictures."""
        return len(self._slots.places)

    @property
    def bytes(self) -> int:
        """What the pictures and their labels take."""
        return len(self) * (int(np.prod(self.shape)) + 8)

    def images(self, labels: ArrayLike | Tensor | None = None) -> Tensor:
        """Pictures (N, C, H, W) uint8 in the order asked, or of all in the order of labels."""
        asked = self.labels if labels is None else checks.check_labels(labels)
        return self._slots.take(self._check_known(asked))

    def pictures(self, labels: Tensor) -> Tensor:
        """Pictures (N, C, H, W) uint8 of labels (N,) that a search found; zeros for -1.

        The same as `images`, but nothing is checked and a GPU is not waited for.
        """
        return self._slots.gather(labels)

    def search(self, queries: Tensor, k: int = 2) -> Found:
        """Find the k pictures with the smallest mean squared difference from each query.

        A query that is not finite is near to nothing: label -1, distance inf.

        Args:
            queries: (B, C, H, W) float on the memory's device, in 0 .. 1.
        """
        check_whole(k, "k", 1, 1000)
        checks.check_queries(queries, self.shape, self.device)
        if not len(self):
            raise ValueError("the memory is empty: add exemplars before searching")
        return nearest(self._slots, queries, k, window(self.shape, self.crop))

    def state(self) -> State:
        """Everything stored as tensors on the CPU, in the order of labels, and plain values."""
        return {
            "labels": torch.tensor(self.labels, dtype=torch.int64),
            "pictures": self.images().cpu(),
            "shape": list(self.shape),
            "crop": self.crop,
        }

    def load_state(self, state: State) -> None:
        """Hold what a memory of the same shape and crop held, and nothing else."""
        missing = {"labels", "pictures", "shape", "crop"} - state.keys()
        if missing:
            raise ValueError(f"no state of exemplars: it lacks {sorted(missing)}")
        found, own = (tuple(state["shape"]), state["crop"]), (self.shape, self.crop)
        if found != own:
            raise ValueError(f"the state is of (shape, crop) {found}, this memory of {own}")
        labels, pictures = self._check(state["labels"], state["pictures"])
        slots = Slots(self.shape, self.device)
        slots.put(labels, pictures)
        self._slots = slots

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write an .npz file that depends on what is stored alone: nothing removed leaves a trace."""
        return write_state(Path(path), self.state())

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: str | torch.device = "cpu") -> Exemplars:
        """Read a memory that was saved."""
        state = read_state(Path(path))
        try:
            memory = cls(state["shape"], device, state["crop"])
            memory.load_state(state)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} holds no memory of exemplars: {error}") from None
        return memory

    def thumbnails(self, columns: int = 10, labels: ArrayLike | None = None) -> NDArray[np.uint8]:
        """Lay pictures on a sheet: (H, W) uint8 for one channel, (H, W, 3) for three."""
        check_whole(columns, "columns", 1, 10_000)
        if self.shape[0] not in (1, 3):
            raise ValueError(f"pictures of 1 or 3 channels can be shown, found {self.shape[0]}")
        pictures = self.images(labels).cpu().numpy()
        if not len(pictures):
            raise ValueError("there is no picture to show: add exemplars or ask for some labels")
        return contact_sheet(pictures, columns)

    def empty(self) -> Exemplars:
        """A memory of the same kind that holds nothing."""
        return Exemplars(self.shape, self.device, self.crop)

    def part(self, labels: ArrayLike | Tensor) -> Exemplars:
        """A memory of the same kind that holds some of the pictures, in slots of its own."""
        other = self.empty()
        other.add(labels, self.images(labels))
        return other

    def copy(self) -> Exemplars:
        """The same memory, which can be edited apart from this one."""
        other = self.empty()
        other._slots = self._slots.copy()
        return other

    def _check(self, labels: ArrayLike | Tensor, images: Any) -> tuple[list[int], Tensor]:
        checked = checks.check_different(checks.check_labels(labels))
        return checked, checks.check_pictures(images, self.shape, len(checked))

    def _check_known(self, labels: list[int]) -> list[int]:
        unknown = [label for label in labels if label not in self]
        if unknown:
            raise ValueError(
                f"labels not stored: {checks.name(unknown)}; stored are {len(self)} others"
            )
        return labels

    def _differing(self, other: Exemplars) -> list[int]:
        shared = [label for label in other.labels if label in self]
        here, there = self.images(shared), other.images(shared).to(self.device)
        same = (here == there).flatten(1).all(1).tolist()
        return [label for label, equal in zip(shared, same, strict=True) if not equal]
