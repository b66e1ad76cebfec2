"""Tables of benchmarks on pages: the comparisons with Avalanche, and fitting with known maps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cells import table
from committed import Committed, check_known

from everlearn.report.tables import numbers
from everlearn.report.tables.protocol import format_seeds

Rows = Sequence[Mapping[str, Any]]


def avalanche(rows: Committed, names: Sequence[str]) -> str:
    """Return the accuracies of both packages, and how far weights differ from the same batches."""
    check_known(names, [row["method"] for row in rows.records("avalanche")], "method of avalanche")
    pairs: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows.records("avalanche"):
        if row["method"] in names:
            key = f"{row['settings']} {row['copying']} {row['batch_size']}"
            pairs.setdefault(key, []).append(row)
    lines = [
        [_settings(found[0]), _accuracy(found), _accuracy(found, "avalanche_"), _difference(found)]
        for found in pairs.values()
    ]
    return table(["settings", "Everlearn", "Avalanche", "weights differ by"], *lines)


def _settings(row: Mapping[str, Any]) -> str:
    settings = row["settings"].items()
    text = ", ".join(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
                     for name, value in settings) or "defaults"  # fmt: skip
    text = f"`{text}`, batches of 1" if row["batch_size"] == 1 else f"`{text}`"
    return f"{text}, Avalanche patched" if row["copying"] else text


def _accuracy(rows: Rows, side: str = "") -> str:
    if not all(row[f"{side}finite"] for row in rows):
        return "diverges"
    text = format_seeds([row[f"{side}correct"] / row["total"] for row in rows])
    naive = side and rows[0]["settings"] and all(row["avalanche_equals_naive"] for row in rows)
    return f"{text}, `Naive` bit for bit" if naive else text


def _difference(rows: Rows) -> str:
    differences = [row["weight_difference"] for row in rows]
    return numbers.MISSING if None in differences else f"{max(differences):.0e}"


def avalanche_ar1(rows: Committed) -> str:
    """Return the largest differences of the parts of AR1."""
    columns = ("outputs", "gradients", "running_statistics", "consolidated", "upper_half")
    lines = []
    for row in rows.records("avalanche_ar1"):
        if any(name in row for name in columns):
            strength = f", strength {row['strength']:g}" if "strength" in row else ""
            cells = [f"{row[name]:.0e}" if name in row else "" for name in columns]
            lines.append([row["what"] + strength, *cells])
    head = ["", "outputs", "gradients", "running statistics", "consolidated rows", "upper half"]
    return table(head, *lines)


def fit(rows: Committed) -> str:
    """Return what the nearest exemplars classify by the error of maps, without and with fitting."""
    found = rows.only("fit", {}, "error_of_maps", "edges", "fitted")
    errors = dict.fromkeys(error for error, *_ in found)
    lines = [
        [
            f"{error:g}",
            *(
                cell
                for edges in ("soft", "hard")
                for cell in (
                    _fraction(found[error, edges, 0]),
                    _fraction(found[error, edges, 10]),
                    numbers.fraction(found[error, edges, 10]["open_set_average_precision"]),
                )
            ),
        ]
        for error in errors
    ]
    head = [f"{edges}: {what}" for edges in ("soft edges", "hard edges")
            for what in ("nearest", "fitted", "open set, fitted")]  # fmt: skip
    return table(["error of maps", *head], *lines)


def fit_tuning(rows: Committed) -> str:
    """Return the accuracy with each edge contrast, of all seeds and images that choose."""
    shares = _pool(
        ((row["edge_contrast"], row["edges"], row["error_of_maps"]), row["correct"], row["total"])
        for row in rows.records("tuning/fit")
        if row["fitted"]
    )
    contrasts = dict.fromkeys(contrast for contrast, *_ in shares)
    columns = list(dict.fromkeys((edges, error) for _, edges, error in shares))
    lines = []
    for contrast in contrasts:
        values = [shares[contrast, *column] for column in columns]
        name = "no weights" if contrast == "inf" else f"{contrast:g}"
        lines.append([name, *map(numbers.fraction, [*values, sum(values) / len(values)])])
    head = [f"{edges}, {error:g}" for edges, error in columns]
    return table(["edge contrast", *head, "mean"], *lines)


def edges_by_learner(rows: Committed, words: Sequence[str]) -> str:
    """Return the accuracy of nets that learned hard edges, and that of true maps, over some seeds together.

    Args:
        words: the file of the rows and their seeds.
    """
    file, *seeds = words
    hard = [row for row in rows.records(file) if row["trained_on"] == "hard"]
    check_known(seeds, [str(row["seed"]) for row in hard], f"seed of {file}")
    shares = _pool(
        ((label, row["edges"], row["factors"]), row[name], row["total"])
        for row in hard
        if str(row["seed"]) in seeds
        for label, name in (
            (f"`{row['learner']}`", "correct"),
            ("true maps, fitted", "true_map_fitted"),
        )
    )
    columns = list(dict.fromkeys((edges, factors) for _, edges, factors in shares))
    lines = [
        [label, *(numbers.fraction(shares[label, *column]) for column in columns)]
        for label in sorted({label for label, *_ in shares}, key=lambda label: label.strip("`"))
    ]
    return table(["", *(f"{edges}, {factors}" for edges, factors in columns)], *lines)


def _pool(counts: Iterable[tuple[tuple[Any, ...], int, int]]) -> dict[tuple[Any, ...], float]:
    """Return the fraction correct of all counts (key, correct, total) with a key, by key."""
    sums: dict[tuple[Any, ...], list[int]] = {}
    for key, correct, total in counts:
        pair = sums.setdefault(key, [0, 0])
        pair[0] += correct
        pair[1] += total
    return {key: correct / total for key, (correct, total) in sums.items()}


def _fraction(row: Mapping[str, Any]) -> str:
    return numbers.fraction(row["correct"] / row["total"])
