"""A memory of exemplars, one canonical image per class, that can be edited, merged, searched and saved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from everlearn.core.validate import check_int
from everlearn.memory import validation
from everlearn.memory.contact_sheet import contact_sheet
from everlearn.memory.exemplar_file import State, read_state, write_state
from everlearn.memory.image_store import ImageStore
from everlearn.memory.search import SearchResult, crop_window, nearest

CONFLICTS = ("error", "keep", "replace")


class Exemplars:
    """One image per class on one device. An edit that raises changes nothing.

    Args:
        shape: (channels, height, width) of every image.
        crop: compare only a central window with this half-width, as a fraction of the side; 0.36
            contains every canonical shape. None compares entire images.
    """

    def __init__(
        self, shape: Sequence[int], device: str | torch.device = "cpu", crop: float | None = None
    ) -> None:
        self.shape = validation.check_shape(shape)
        self.crop = validation.check_crop(crop)
        self.device = torch.empty(0, device=device).device
        self._store = ImageStore(self.shape, self.device)

    def add(self, labels: ArrayLike | Tensor, images: Any) -> None:
        """Add images (N, C, H, W), uint8 or float in [0, 1], of new labels in 0 .. 2**62."""
        new, checked = self._check(labels, images)
        known = [label for label in new if label in self]
        if known:
            stored = validation.format_labels(known)
            raise ValueError(f"labels already stored: {stored}; use replace for these")
        self._store.put(new, checked)

    def replace(self, labels: ArrayLike | Tensor, images: Any) -> None:
        """Replace the images of stored labels."""
        replaced, checked = self._check(labels, images)
        self._store.put(self._check_stored(replaced), checked)

    def remove(self, labels: ArrayLike | Tensor) -> None:
        """Delete images: their memory is zeroed, and all other images stay as they are."""
        removed = validation.check_unique(validation.check_labels(labels))
        self._store.clear(self._check_stored(removed))

    def merge(self, other: Exemplars, conflict: str = "error") -> None:
        """Copy the images of another memory into this one.

        Args:
            conflict: what to do where both store different images of a label: raise an "error",
                "keep" this memory's image, or "replace" it by the other's.
        """
        if conflict not in CONFLICTS:
            raise ValueError(f"unknown conflict {conflict!r}; known: {', '.join(CONFLICTS)}")
        if other.shape != self.shape:
            raise ValueError(f"images are {self.shape} here and {other.shape} in the other memory")
        differing = self._differing(other)
        if differing and conflict == "error":
            raise ValueError(
                f"the memories store different images of labels {validation.format_labels(differing)}; "
                "choose conflict='keep' or 'replace'"
            )
        copied = [label for label in other.labels if label not in self]
        copied += differing if conflict == "replace" else []
        self._store.put(copied, other.images(copied))

    @property
    def labels(self) -> list[int]:
        """Stored labels, in ascending order."""
        return sorted(self._store.slots)

    def __contains__(self, label: object) -> bool:
        """Return whether a label is stored."""
        return label in self._store.slots

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self._store.slots)

    @property
    def bytes(self) -> int:
        """Size of the images and their labels in bytes."""
        return len(self) * (int(np.prod(self.shape)) + 8)

    def images(self, labels: ArrayLike | Tensor | None = None) -> Tensor:
        """Return images (N, C, H, W) uint8 in the order of `labels`; by default, of all labels."""
        requested = self.labels if labels is None else validation.check_labels(labels)
        return self._store.take(self._check_stored(requested))

    def gather(self, labels: Tensor) -> Tensor:
        """Return images (N, C, H, W) uint8 of labels (N,) that a search returned; zeros for -1.

        Unlike `images`, it checks nothing and does not synchronise with a GPU.
        """
        return self._store.gather(labels)

    def search(self, queries: Tensor, k: int = 2) -> SearchResult:
        """Find the k images with the smallest mean squared error to each query.

        A query with non-finite pixels has no neighbours: label -1, distance inf.

        Args:
            queries: (B, C, H, W) float in [0, 1] on the memory's device.
        """
        check_int(k, "k", 1, 1000)
        validation.check_queries(queries, self.shape, self.device)
        if not len(self):
            raise ValueError("the memory is empty: add exemplars before searching")
        return nearest(self._store, queries, k, crop_window(self.shape, self.crop))

    def state(self) -> State:
        """Return labels and images as CPU tensors in the order of labels, with shape and crop."""
        return {
            "labels": torch.tensor(self.labels, dtype=torch.int64),
            "pictures": self.images().cpu(),
            "shape": list(self.shape),
            "crop": self.crop,
        }

    def load_state(self, state: State) -> None:
        """Replace the content by the state of a memory of the same shape and crop."""
        missing = {"labels", "pictures", "shape", "crop"} - state.keys()
        if missing:
            raise ValueError(f"not a state of exemplars: it lacks {sorted(missing)}")
        found = (tuple(state["shape"]), state["crop"])
        expected = (self.shape, self.crop)
        if found != expected:
            raise ValueError(f"the state has (shape, crop) {found}, this memory {expected}")
        labels, images = self._check(state["labels"], state["pictures"])
        store = ImageStore(self.shape, self.device)
        store.put(labels, images)
        self._store = store

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write an .npz file; its bytes depend only on what is stored, so removed images leave no trace."""
        return write_state(Path(path), self.state())

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: str | torch.device = "cpu") -> Exemplars:
        """Read a memory that `save` wrote."""
        state = read_state(Path(path))
        try:
            memory = cls(state["shape"], device, state["crop"])
            memory.load_state(state)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a memory of exemplars: {error}") from None
        return memory

    def thumbnails(self, columns: int = 10, labels: ArrayLike | None = None) -> NDArray[np.uint8]:
        """Return a contact sheet of the images: (H, W) uint8 for one channel, (H, W, 3) for three."""
        check_int(columns, "columns", 1, 10_000)
        if self.shape[0] not in (1, 3):
            raise ValueError(f"thumbnails need images of 1 or 3 channels, found {self.shape[0]}")
        images = self.images(labels).cpu().numpy()
        if not len(images):
            raise ValueError("there is no image to show: add exemplars or pass some labels")
        return contact_sheet(images, columns)

    def empty(self) -> Exemplars:
        """Return an empty memory of the same shape, device and crop."""
        return Exemplars(self.shape, self.device, self.crop)

    def subset(self, labels: ArrayLike | Tensor) -> Exemplars:
        """Return a new memory with the images of some labels."""
        other = self.empty()
        other.add(labels, self.images(labels))
        return other

    def copy(self) -> Exemplars:
        """Return a copy that can be edited independently."""
        other = self.empty()
        other._store = self._store.copy()
        return other

    def _check(self, labels: ArrayLike | Tensor, images: Any) -> tuple[list[int], Tensor]:
        unique = validation.check_unique(validation.check_labels(labels))
        return unique, validation.check_images(images, self.shape, len(unique))

    def _check_stored(self, labels: list[int]) -> list[int]:
        missing = [label for label in labels if label not in self]
        if missing:
            raise ValueError(
                f"labels not stored: {validation.format_labels(missing)}; {len(self)} others are stored"
            )
        return labels

    def _differing(self, other: Exemplars) -> list[int]:
        shared = [label for label in other.labels if label in self]
        theirs = other.images(shared).to(self.device)
        same = (self.images(shared) == theirs).flatten(1).all(1).tolist()
        return [label for label, equal in zip(shared, same, strict=True) if not equal]
