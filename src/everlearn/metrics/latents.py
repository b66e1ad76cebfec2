"""Which latents of the codes are active, and which of them environments share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everlearn.metrics.measured import Floats, Ints, NotMeasuredError
from everlearn.rows import LatentsRow, Row, of_kind

Flags = NDArray[np.bool_]


class ActiveLatents(NamedTuple):
    """The active latents of each environment, as described last.

    Attributes:
        tested: (E,) tasks of the stream, rising.
        active: (E, N) whether a latent is used and not masked.
    """

    tested: Ints
    active: Flags

    @property
    def used(self) -> int:
        """Count the latents that are active in at least one environment."""
        return int(self.active.any(axis=0).sum())

    @property
    def overlap(self) -> Floats:
        """Jaccard index of the active latents of two environments, (E, E); NaN if neither has any."""
        active = self.active.astype(np.int64)
        shared = active @ active.T
        counts = active.sum(axis=1)
        union = counts[:, None] + counts - shared
        shares = np.full(shared.shape, np.nan)
        np.divide(shared, union, out=shares, where=union > 0)
        return shares


def described_last(rows: Sequence[LatentsRow]) -> dict[int, LatentsRow]:
    """Keep the descriptions made after the last task learned, by the task described."""
    return {row["tested"]: row for row in rows if row["learned"] == rows[-1]["learned"]}


def active_latents(rows: Iterable[Row]) -> ActiveLatents:
    """Read the active latents from the last descriptions."""
    described = [row for row in of_kind(rows, LatentsRow) if row["used"] is not None]
    if not described:
        raise NotMeasuredError(
            "no row holds the latents that are used; measure it in the run to have this number"
        )
    found = described_last(described)
    kept = [found[tested] for tested in sorted(found)]
    used = np.array([row["used"] for row in kept], bool)
    mask = np.array([row["mask"] for row in kept], bool)
    return ActiveLatents(np.array(sorted(found), np.int64), used & mask)
