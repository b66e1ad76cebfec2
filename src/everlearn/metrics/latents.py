"""Which latents of codes are at work, and which of them environments share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everlearn.metrics.rows import Floats, Ints, NotMeasuredError, Row, of_kind

Flags = NDArray[np.bool_]


class Latents(NamedTuple):
    """The latents as they were described last, environment by environment.

    Attributes:
        tested: (E,) tasks of the stream, rising.
        at_work: (E, N) whether a latent is used and not masked.
    """

    tested: Ints
    at_work: Flags

    @property
    def used(self) -> int:
        """How many latents are at work in one environment or another."""
        return int(self.at_work.any(axis=0).sum())

    @property
    def overlap(self) -> Floats:
        """Jaccard's overlap of environments: shared of all at work in either, (E, E); NaN of none."""
        work = self.at_work.astype(np.int64)
        shared = work @ work.T
        each = work.sum(axis=1)
        either = each[:, None] + each - shared
        shares = np.full(shared.shape, np.nan)
        np.divide(shared, either, out=shares, where=either > 0)
        return shares


def described_last(told: Sequence[Row]) -> dict[int, Row]:
    """Of descriptions of latents those after the last task that was learned, by the task described."""
    return {row["tested"]: row for row in told if row["learned"] == told[-1]["learned"]}


def latents(rows: Iterable[Row]) -> Latents:
    """Take the rows of the last description of latents."""
    told = [row for row in of_kind(rows, "latents") if row["used"] is not None]
    if not told:
        raise NotMeasuredError(
            "no row holds the latents that are used; measure it in the run to have this number"
        )
    found = described_last(told)
    kept = [found[tested] for tested in sorted(found)]
    used, mask = (np.array([row[name] for row in kept], bool) for name in ("used", "mask"))
    return Latents(np.array(sorted(found), np.int64), used & mask)
