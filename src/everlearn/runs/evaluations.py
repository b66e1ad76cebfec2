"""Evaluations in the rows of a run: what each row evaluates, its accuracies and its errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from everlearn.metrics import auroc, share

# A row's kind, the last task learned and whatever else says which evaluation it is: (name, value).
RowKey = tuple[tuple[str, str], ...]
_IDENTITY = ("kind", "learned", "tested", "split", "mode", "factors", "classes")
_DURING_TASKS = ("probe", "codes")  # kinds of rows that a step identifies
_COUNTS = (("correct", "total"), ("seen_correct", "seen_total"), ("answered", "total"))
NOVELTY = ("known", "unknown")  # scores of each image in an open-set row
_PHRASES = {"tested": "tested on task", "step": "at step", "row": "number"}


class Accuracy(NamedTuple):
    """A share of images, and how many images it is a share of."""

    share: float
    images: int


def index_rows(rows: Iterable[Mapping[str, Any]]) -> dict[RowKey, Mapping[str, Any]]:
    """Return rows by what they evaluate; rows that evaluate the same are numbered."""
    indexed = {}
    seen: Counter[RowKey] = Counter()
    for row in rows:
        key = _row_key(row)
        seen[key] += 1
        indexed[key if seen[key] == 1 else (*key, ("row", str(seen[key])))] = row
    return indexed


def describe_key(key: RowKey) -> str:
    """Name a row by its key."""
    names = dict(key)
    text = f"row {names.pop('kind')!r} after task {names.pop('learned')}"
    return text + "".join(f", {_PHRASES.get(name, name)} {value}" for name, value in names.items())


def read_accuracies(row: Mapping[str, Any]) -> dict[str, Accuracy]:
    """Return the accuracies in a row by name, if it has any."""
    if row["kind"] == "open-set":
        return _open_set_accuracies(row)
    return {
        correct: Accuracy(float(share(row[correct], row[total])), row[total])
        for correct, total in _COUNTS
        if correct in row and row.get(total)
    }


def read_errors(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the root mean squared error and the mean reconstruction error of a row, if it has them."""
    errors = {}
    if row.get("squared_errors") and row["total"]:
        errors["RMSE"] = float(np.sqrt(np.mean(row["squared_errors"]) / row["total"]))
    if row.get("reconstruction_error") is not None and row["total"]:
        errors["reconstruction error"] = row["reconstruction_error"] / row["total"]
    return errors


def _row_key(row: Mapping[str, Any]) -> RowKey:
    names = (*_IDENTITY, "step") if row["kind"] in _DURING_TASKS else _IDENTITY
    return tuple((name, str(row[name])) for name in names if row.get(name) is not None)


def _open_set_accuracies(row: Mapping[str, Any]) -> dict[str, Accuracy]:
    known = len(row["known"])
    # The area under the ROC curve A of m and n images has at most the variance A (1 - A) / min(m, n)
    # (Birnbaum and Klose 1957): that of a share of min(m, n) images.
    images = min(known, len(row["unknown"]))
    return {
        "correct": Accuracy(float(share(sum(row["correct"]), known)), known),
        "AUROC": Accuracy(auroc(row["known"], row["unknown"]), images),
    }
