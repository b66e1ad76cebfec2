"""Whether a repeated run agrees with the recorded one: the same bits, within noise, or not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from everlearn.core.jsonl import encode_row
from everlearn.rows import Row
from everlearn.runs.evaluations import (
    NOVELTY,
    RowKey,
    describe_key,
    index_rows,
    read_accuracies,
    read_errors,
)
from everlearn.runs.outliers import find_outlier

Verdict = Literal["same bits", "within noise", "differs", "not compared", "cannot run"]
_VARIABLE = ("seconds", "evaluation_seconds", "host_memory", "memory", "peak_memory")
# Noise changes none of them.
_EXACT = ("step", "images", "total", "seen_total", *(f"{name} images" for name in NOVELTY))
# Where committed runs differ in the seed alone, one error is hardly ever three times the other.
_MAX_ERROR_RATIO = 4.0

_Row = Mapping[str, Any]
Rows = Mapping[RowKey, _Row]


class Agreement(NamedTuple):
    """A verdict and, unless the bits are the same, the first difference or the reason."""

    verdict: Verdict
    detail: str = ""


def compare_rows(
    recorded: Iterable[Row], repeated: Iterable[Row], other_seeds: Iterable[Iterable[Row]] = ()
) -> Agreement:
    """Compare two runs of the same tasks; times and memory may differ.

    Args:
        other_seeds: rows of the same tasks of runs that differ in the seed alone; two or more show how
            noisy training is.
    """
    repeated = list(repeated)
    unwritable = _first_unwritable(repeated)
    if unwritable:
        return Agreement("differs", unwritable)
    old = index_rows(_plain(recorded))
    new = index_rows(_plain(repeated))
    missing = _first_missing(old, new)
    if missing:
        return Agreement("differs", missing)
    difference = _first_difference(old, new)
    if not difference:
        return Agreement("same bits")
    others = [index_rows(_plain(rows)) for rows in other_seeds]
    outside = _first_inexact(old, new) or _first_wrong_error(old, new)
    outside = outside or find_outlier(old, new, others)
    return Agreement("differs", outside) if outside else _describe_noise(old, new, difference)


def _describe_noise(old: Rows, new: Rows, difference: str) -> Agreement:
    """Return the verdict on rows that differ by no more than noise, with the kinds not compared."""
    if not any(map(_is_compared, old.values())):
        return Agreement("not compared", f"{difference}; no row has an accuracy or an error")
    kinds = sorted(
        {old[key]["kind"] for key in old if old[key] != new[key] and not _is_compared(old[key])}
    )
    left_out = f"; not compared: rows of kind {', '.join(map(repr, kinds))}" if kinds else ""
    return Agreement("within noise", difference + left_out)


def _is_compared(row: Mapping[str, Any]) -> bool:
    return bool(read_accuracies(row) or read_errors(row))


def _plain(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return rows as they are read from a file, without what varies, with numbers of images."""
    plain = [json.loads(encode_row(row)) for row in rows]
    return [
        {**_count_images(row), **{k: row[k] for k in row if k not in _VARIABLE}} for row in plain
    ]


def _count_images(row: Mapping[str, Any]) -> dict[str, int]:
    """Return the numbers of images of an open-set row, which has a number for each image."""
    return {f"{name} images": len(row[name]) for name in NOVELTY if name in row}


def _first_unwritable(rows: Iterable[Row]) -> str:
    """Describe the first row that holds what JSON cannot, such as NaN, if any."""
    for key, row in index_rows(rows).items():
        try:
            encode_row(row)
        except (ValueError, TypeError) as error:
            return f"{describe_key(key)}: {error}"
    return ""


def _first_missing(old: Rows, new: Rows) -> str:
    for key in (*old, *new):
        if key not in old or key not in new:
            state = "repeated" if key in old else "recorded"
            return f"{describe_key(key)}: the row is not {state}"
    return ""


def _first_difference(old: Rows, new: Rows) -> str:
    return _first_change(old, new, lambda row, other: dict.fromkeys([*row, *other]))


def _first_inexact(old: Rows, new: Rows) -> str:
    """Describe the first number that noise cannot change, or accuracy that a run lacks, if any."""
    return _first_change(
        old,
        new,
        lambda row, other: [
            *_EXACT,
            *(read_accuracies(row).keys() ^ read_accuracies(other).keys()),
        ],
    )


def _first_change(old: Rows, new: Rows, names: Callable[[_Row, _Row], Iterable[str]]) -> str:
    """Describe the first change of the keys that `names` chooses for two rows, if any."""
    texts = (_describe_change(key, row, new[key], names(row, new[key])) for key, row in old.items())
    return next(filter(None, texts), "")


def _first_wrong_error(old: Rows, new: Rows) -> str:
    """Describe the first error that is several times as large in one of the runs, or absent, if any."""
    for key, row in old.items():
        recorded = read_errors(row)
        repeated = read_errors(new[key])
        for name in recorded | repeated:
            low, high = sorted(errors.get(name, np.inf) for errors in (recorded, repeated))
            if high > _MAX_ERROR_RATIO * low:
                return _describe_change(key, recorded, repeated, [name])
    return ""


def _describe_change(
    key: RowKey, old: Mapping[str, Any], new: Mapping[str, Any], names: Iterable[str]
) -> str:
    """Name the first of some keys in which two rows differ, if any."""
    for name in names:
        recorded, repeated = (_text(row, name) for row in (old, new))
        if recorded != repeated:
            return f"{describe_key(key)}: {name} is {_shorten(recorded)}, repeated {_shorten(repeated)}"
    return ""


def _text(row: Mapping[str, Any], name: str) -> str:
    return json.dumps(row[name], sort_keys=True) if name in row else "absent"


def _shorten(text: str) -> str:
    return text if len(text) < 40 else f"{text[:36]} ..."
