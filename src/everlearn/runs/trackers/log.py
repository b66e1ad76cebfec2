"""Logging of rows: passed on unchanged, and written to trackers on the way."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

from everlearn.rows import Row
from everlearn.runs.trackers.metrics import is_needed_later, metrics_of
from everlearn.runs.trackers.tracker import Tracker, TrackerError

_LOG = logging.getLogger(__name__)


def log_rows(
    rows: Iterable[Row], trackers: Sequence[Tracker], before: Iterable[Row] = ()
) -> Iterator[Row]:
    """Pass rows on; write their metrics to trackers, and close the trackers in any case.

    A tracker that fails is reported and dropped: it holds a copy, the rows are in the run's folder.

    Args:
        before: rows of earlier sessions.
    """
    seen = list(filter(is_needed_later, before))
    active = list(trackers)
    finished = False
    try:
        for row in rows:
            if is_needed_later(row):
                seen.append(row)
            _write(active, row["step"], metrics_of(row, seen))
            yield row
        finished = True
    finally:
        _close(active, finished)


def _write(trackers: list[Tracker], step: int, metrics: dict[str, float]) -> None:
    """Write metrics, if there are any; remove the trackers that fail."""
    for tracker in list(trackers) if metrics else ():
        try:
            tracker.write(step, metrics)
        except TrackerError as error:
            trackers.remove(tracker)
            _LOG.warning("%s; the run continues without it, and its rows are in its folder", error)


def _close(trackers: list[Tracker], finished: bool) -> None:
    for tracker in trackers:
        try:
            tracker.close(finished)
        except TrackerError as error:
            _LOG.warning("%s at the end of the run; its rows are in its folder", error)
