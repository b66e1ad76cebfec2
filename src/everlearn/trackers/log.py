"""Rows on their way: given on as they are, and written to trackers in passing."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

from everlearn.results import Row
from everlearn.trackers.numbers import is_exam, measure
from everlearn.trackers.tracker import Tracker, TrackerError

_LOG = logging.getLogger(__name__)


def log_rows(
    rows: Iterable[Row], trackers: Sequence[Tracker], before: Iterable[Row] = ()
) -> Iterator[Row]:
    """Give rows on; write what they add up to, and close the trackers however it ends.

    A tracker that fails is told of and left out: it holds a copy, the rows are in the run's folder.

    Args:
        before: rows of earlier sessions.
    """
    seen, left, finished = list(filter(is_exam, before)), list(trackers), False
    try:
        for row in rows:
            if is_exam(row):
                seen.append(row)
            _write(left, row["step"], measure(row, seen))
            yield row
        finished = True
    finally:
        _close(left, finished)


def _write(trackers: list[Tracker], step: int, numbers: dict[str, float]) -> None:
    """Write numbers, if there are any; take out the trackers that fail."""
    for tracker in list(trackers) if numbers else ():
        try:
            tracker.write(step, numbers)
        except TrackerError as error:
            trackers.remove(tracker)
            _LOG.warning("%s; the run goes on without it, its rows are in its folder", error)


def _close(trackers: list[Tracker], finished: bool) -> None:
    for tracker in trackers:
        try:
            tracker.close(finished)
        except TrackerError as error:
            _LOG.warning("%s at the end of the run; its rows are in its folder", error)
