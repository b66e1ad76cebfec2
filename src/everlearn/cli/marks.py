"""How a player did: a table of right answers, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence

from everlearn.cli.progress import Row
from everlearn.cli.say import tell

_COLUMNS = ("choices", "right", "of", "accuracy", "95 % interval", "chance", "unread")
_MILLION = 1e6


def print_marks(rows: Sequence[Row]) -> None:
    """Print right answers for each number of choices, beside chance."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for head in _COLUMNS:
        table.add_column(head, justify="right", no_wrap=True)
    for line in mark(rows):
        table.add_row(*line)
    Console().print(table)


def mark(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """The lines of the table; an answer that cannot be read is wrong."""
    from everlearn.choice import NO_ANSWER
    from everlearn.metrics import tally, wilson

    lines: list[tuple[str, ...]] = []
    for n, found in tally(rows).items():
        low, high = wilson(found.right, found.total)
        unread = sum(row["n"] == n and row["chosen"] == NO_ANSWER for row in rows)
        counts = (str(n), str(found.right), str(found.total))
        shares = (f"{found.accuracy:.3f}", f"{low:.3f} – {high:.3f}", f"{1 / n:.3f}")
        lines.append((*counts, *shares, str(unread)))
    return lines


def tell_cost(rows: Sequence[Row], price_in: float | None, price_out: float | None) -> None:
    """Say how many tokens were used, and what they cost where prices are known.

    Args:
        price_in: of a million tokens that a model reads.
        price_out: of a million tokens that it writes.
    """
    asked = [row for row in rows if "prompt_tokens" in row]
    if not asked:
        return
    read, written = (_total(asked, name) for name in ("prompt_tokens", "completion_tokens"))
    words = f"{read:,} tokens read and {written:,} written"
    silent = sum(row["prompt_tokens"] is None or row["completion_tokens"] is None for row in asked)
    if silent:
        words += f" ({silent} of {len(asked)} replies did not tell)"
    if price_in is not None or price_out is not None:
        cost = (read * (price_in or 0.0) + written * (price_out or 0.0)) / _MILLION
        words += f"; they cost {cost:.4f} at {price_in or 0:g} and {price_out or 0:g} a million"
    tell(words)


def _total(rows: Sequence[Row], name: str) -> int:
    return sum(row[name] or 0 for row in rows)
