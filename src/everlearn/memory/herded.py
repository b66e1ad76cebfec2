"""The exemplars of iCaRL (Rebuffi et al. 2017, algorithms 4 and 5): as many of each class, by herding.

The exemplars of a class stand in the order they were chosen, so that a class which must shrink gives up
its last ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from everlearn.memory.buffer import Buffer
from everlearn.memory.herding import NONE, Groups, group, herd, mean_of
from everlearn.memory.reservoir import Admitted
from everlearn.philox import Purpose, uniform
from everlearn.stream import Split

Ints = NDArray[np.int64]
See = Callable[[Tensor], Tensor]  # images to features of length 1
_AT_ONCE = 512


class Herded:
    """Exemplars in a buffer. With C classes met, each may have capacity // C.

    Where there are more classes than slots, `capacity` of them have one, those with the smallest random
    keys, and the others have none.

    Args:
        classes: how many there will be.
    """

    def __init__(self, buffer: Buffer, classes: int, seed: int, device: str) -> None:
        """Hold nothing yet."""
        self.buffer, self._device = buffer, device
        self._seen = np.zeros(classes, np.int64)
        self._units, self._ranks = np.full((2, buffer.capacity), NONE, np.int64)
        self._keys = uniform(seed, Purpose.MEMORY, 0, np.arange(classes))[:, 0]

    @property
    def used(self) -> Ints:
        """The slots in use."""
        return np.flatnonzero(self._units != NONE)

    def renew(self, split: Split, units: Ints, see: See) -> None:
        """Choose exemplars of the classes of new images, among these and the exemplars they have.

        An exemplar from before counts in the mean as many times as it stands for images.

        Args:
            units: the class of each image, 0 to classes - 1.
        """
        rows, device = np.flatnonzero(np.isin(self._units, units)), self._device
        weights = torch.from_numpy(np.concatenate([np.ones(len(units)), self._stand_for(rows)]))
        new = [see(batch.images) for batch in split.batches(_AT_ONCE, device)]
        seen = torch.cat([*new, *self._see_rows(rows, see)])
        groups = group(np.concatenate([units, self._units[rows]]))
        self._seen += np.bincount(units, minlength=len(self._seen))
        items = torch.from_numpy(groups.items).to(device)
        means = mean_of(seen, items, weights.float().to(device))
        found = herd(seen, items, means, int(self._shares().max())).cpu().numpy()
        self._keep(split, rows, *self._admit(Groups(groups.classes, found)))

    def means(self, see: See) -> tuple[Tensor, Tensor]:
        """The mean of each class (classes, D), of length 1, and which there are (classes,)."""
        rows, device = self.used, self._device
        groups, seen = group(self._units[rows]), torch.cat(self._see_rows(rows, see))
        items = torch.from_numpy(groups.items).to(device)
        found = normalize(mean_of(seen, items, seen.new_ones(len(seen))), dim=1)
        units = torch.from_numpy(groups.classes).to(device)
        out = seen.new_zeros((len(self._seen), seen.shape[1]))
        out[units] = found
        known = torch.zeros(len(out), dtype=torch.bool, device=device)
        known[units] = True
        return out, known

    def _see_rows(self, rows: Ints, see: See) -> list[Tensor]:
        """Features of exemplars, part by part."""
        placed = torch.from_numpy(rows).to(self._device)
        return [
            see(self.buffer.images(part)) for part in torch.split(placed, _AT_ONCE) if len(part)
        ]

    def _stand_for(self, rows: Ints) -> NDArray[np.float64]:
        """How many images that came before each exemplar stands for."""
        each = self._seen / np.bincount(self._units[rows], minlength=len(self._seen)).clip(min=1)
        out: NDArray[np.float64] = each[self._units[rows]]
        return out

    def _shares(self) -> Ints:
        """How many exemplars each class may have."""
        met = np.flatnonzero(self._seen)
        each, out = self.buffer.capacity // len(met), np.zeros(len(self._seen), np.int64)
        out[met] = each
        out[met[np.argsort(self._keys[met])][: self.buffer.capacity]] = max(1, each)
        return out

    def _admit(self, chosen: Groups) -> Admitted:
        """Give slots to chosen items, in ascending order of items; some exemplars leave for that."""
        shares, held = self._shares(), self.used
        over = self._ranks[held] >= shares[self._units[held]]
        self._units[held[over | np.isin(self._units[held], chosen.classes)]] = NONE
        units, ranks = np.broadcast_arrays(
            chosen.classes[:, None], np.arange(chosen.items.shape[1])
        )
        stays = (chosen.items != NONE) & (ranks < shares[units])
        order = np.argsort(chosen.items[stays])
        slots = np.flatnonzero(self._units == NONE)[: len(order)]
        self._units[slots], self._ranks[slots] = units[stays][order], ranks[stays][order]
        return Admitted(chosen.items[stays][order], slots)

    def _keep(self, split: Split, rows: Ints, items: Ints, slots: Ints) -> None:
        """Put items into slots; those beyond the images of the split are in rows of the buffer."""
        new, buffer = items[items < len(split)], self.buffer
        old = torch.from_numpy(rows[items[len(new) :] - len(split)]).to(self._device)
        images = [split.batch(new, self._device).images, buffer.images(old)]
        units = torch.from_numpy(self._units[slots]).to(self._device)
        buffer.put(slots, torch.cat(images), units)

    def state(self) -> dict[str, Any]:
        """The class and the rank of each slot, and how many images of each class there were."""
        parts = {"units": self._units, "ranks": self._ranks, "seen": self._seen}
        return {name: torch.tensor(part) for name, part in parts.items()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._units, self._ranks, self._seen = (
            state[name].numpy().copy() for name in ("units", "ranks", "seen")
        )
