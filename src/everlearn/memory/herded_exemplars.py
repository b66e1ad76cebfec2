"""The exemplars of iCaRL (Rebuffi et al. 2017, algorithms 4 and 5): equally many per class, by herding.

Every exemplar has its rank in the herding order of its class; a class that must shrink drops the last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from everlearn.core.random import Purpose, uniform
from everlearn.memory.buffer import Buffer
from everlearn.memory.herding import NONE, Groups, group, group_means, herd
from everlearn.memory.reservoir import Insertions
from everlearn.stream import Split

Ints = NDArray[np.int64]
FeatureExtractor = Callable[[Tensor], Tensor]  # images to features of length 1
_BATCH_SIZE = 512


class HerdedExemplars:
    """Herded exemplars in a buffer: with C classes seen, each has up to capacity // C.

    With more classes than slots, `capacity` random classes have one exemplar and the others none.

    Args:
        classes: total number of classes of the stream.
    """

    def __init__(self, buffer: Buffer, classes: int, seed: int, device: str) -> None:
        """Start empty."""
        self.buffer = buffer
        self._device = device
        self._seen = np.zeros(classes, np.int64)  # images seen of each class
        self._targets = np.full(buffer.capacity, NONE, np.int64)  # class of each slot
        self._ranks = np.full(buffer.capacity, NONE, np.int64)  # herding rank of each slot
        self._keys = uniform(seed, Purpose.MEMORY, 0, np.arange(classes))[:, 0]

    @property
    def used(self) -> Ints:
        """Occupied slots."""
        return np.flatnonzero(self._targets != NONE)

    def update(self, split: Split, targets: Ints, extract: FeatureExtractor) -> None:
        """Select exemplars for the classes of new images, among these and their current exemplars.

        In the class mean, a current exemplar is weighted by the number of past images per exemplar.

        Args:
            targets: class of each image, 0 to classes - 1.
        """
        device = self._device
        rows = np.flatnonzero(np.isin(self._targets, targets))
        weights = np.concatenate([np.ones(len(targets)), self._images_per_exemplar(rows)])
        new = [extract(batch.images) for batch in split.batches(_BATCH_SIZE, device)]
        features = torch.cat([*new, *self._extract_rows(rows, extract)])
        groups = group(np.concatenate([targets, self._targets[rows]]))
        self._seen += np.bincount(targets, minlength=len(self._seen))
        items = torch.from_numpy(groups.items).to(device)
        means = group_means(features, items, torch.from_numpy(weights).float().to(device))
        herded = herd(features, items, means, int(self._shares().max())).cpu().numpy()
        self._write(split, rows, *self._assign_slots(Groups(groups.classes, herded)))

    def means(self, extract: FeatureExtractor) -> tuple[Tensor, Tensor]:
        """Return unit-length class means (classes, D), and which classes have exemplars (classes,)."""
        device = self._device
        groups = group(self._targets[self.used])
        features = torch.cat(self._extract_rows(self.used, extract))
        items = torch.from_numpy(groups.items).to(device)
        means = normalize(group_means(features, items, features.new_ones(len(features))), dim=1)
        targets = torch.from_numpy(groups.classes).to(device)
        out = features.new_zeros((len(self._seen), features.shape[1]))
        out[targets] = means
        present = torch.zeros(len(out), dtype=torch.bool, device=device)
        present[targets] = True
        return out, present

    def _extract_rows(self, rows: Ints, extract: FeatureExtractor) -> list[Tensor]:
        """Return the features of exemplars, batch by batch."""
        batches = torch.split(torch.from_numpy(rows).to(self._device), _BATCH_SIZE)
        return [extract(self.buffer.images(batch)) for batch in batches if len(batch)]

    def _images_per_exemplar(self, rows: Ints) -> NDArray[np.float64]:
        """Return how many past images each exemplar represents."""
        exemplars = np.bincount(self._targets[rows], minlength=len(self._seen))
        ratio = self._seen / exemplars.clip(min=1)
        out: NDArray[np.float64] = ratio[self._targets[rows]]
        return out

    def _shares(self) -> Ints:
        """Return the maximum number of exemplars of each class."""
        classes = np.flatnonzero(self._seen)
        share = self.buffer.capacity // len(classes)
        shares = np.zeros(len(self._seen), np.int64)
        shares[classes] = share
        by_key = classes[np.argsort(self._keys[classes])]
        shares[by_key[: self.buffer.capacity]] = max(1, share)
        return shares

    def _assign_slots(self, herded: Groups) -> Insertions:
        """Free the slots of dropped exemplars and assign slots to herded items, in ascending order."""
        shares = self._shares()
        used = self.used
        dropped = self._ranks[used] >= shares[self._targets[used]]
        replaced = np.isin(self._targets[used], herded.classes)
        self._targets[used[dropped | replaced]] = NONE
        targets, ranks = np.broadcast_arrays(
            herded.classes[:, None], np.arange(herded.items.shape[1])
        )
        kept = (herded.items != NONE) & (ranks < shares[targets])
        order = np.argsort(herded.items[kept])
        slots = np.flatnonzero(self._targets == NONE)[: len(order)]
        self._targets[slots] = targets[kept][order]
        self._ranks[slots] = ranks[kept][order]
        return Insertions(herded.items[kept][order], slots)

    def _write(self, split: Split, rows: Ints, items: Ints, slots: Ints) -> None:
        """Write items to slots; items from len(split) on are images in `rows` of the buffer."""
        new = items[items < len(split)]
        old = torch.from_numpy(rows[items[len(new) :] - len(split)]).to(self._device)
        images = torch.cat([split.batch(new, self._device).images, self.buffer.images(old)])
        targets = torch.from_numpy(self._targets[slots]).to(self._device)
        self.buffer.put(slots, images, targets)

    def state(self) -> dict[str, Any]:
        """Return the class and rank of every slot, and the number of images seen per class."""
        arrays = {"targets": self._targets, "ranks": self._ranks, "seen": self._seen}
        return {name: torch.tensor(array) for name, array in arrays.items()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self._targets = state["targets"].numpy().copy()
        self._ranks = state["ranks"].numpy().copy()
        self._seen = state["seen"].numpy().copy()
