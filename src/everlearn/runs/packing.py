"""Compress the rows of a run that is over; they are read as before."""

from __future__ import annotations

from os import PathLike

from everlearn.core.jsonl import pack_json_lines
from everlearn.core.lock import locked
from everlearn.runs.folder import COSTS, ROWS, check_run, remove_temporaries


def pack(folder: str | PathLike[str]) -> None:
    """Replace rows.jsonl and costs.jsonl by .gz files, unless another process writes to the run.

    Packing twice changes nothing, and equal rows give equal bytes. A packed run that is not finished
    is resumed after `gunzip`.
    """
    place = check_run(folder)
    with locked(place):
        remove_temporaries(place)
        for name in (ROWS, COSTS):
            pack_json_lines(place / name)
