"""How a player did: a table of right answers, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence

from everlearn.cli.messages import print_message
from everlearn.rows import ChoiceRow

_COLUMNS = ("choices", "right", "of", "accuracy", "95 % interval", "chance", "unread")
_MILLION = 1e6


def print_answers(rows: Sequence[ChoiceRow]) -> None:
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


def mark(rows: Sequence[ChoiceRow]) -> list[tuple[str, ...]]:
    """The lines of the table; an answer that cannot be read is wrong."""
    from everlearn.metrics import tally, wilson
    from everlearn.questions import NO_ANSWER

    lines: list[tuple[str, ...]] = []
    for n, found in tally(rows).items():
        low, high = wilson(found.correct, found.total)
        unread = sum(row["n"] == n and row["chosen"] == NO_ANSWER for row in rows)
        counts = (str(n), str(found.correct), str(found.total))
        shares = (f"{found.accuracy:.3f}", f"{low:.3f} – {high:.3f}", f"{1 / n:.3f}")
        lines.append((*counts, *shares, str(unread)))
    return lines


def print_cost(rows: Sequence[ChoiceRow], price_in: float | None, price_out: float | None) -> None:
    """Say how many tokens were used, and what they cost where prices are known.

    Args:
        price_in: of a million tokens that a model reads.
        price_out: of a million tokens that it writes.
    """
    replies = [row for row in rows if "prompt_tokens" in row]
    if not replies:
        return
    read = sum(row["prompt_tokens"] or 0 for row in replies)
    written = sum(row["completion_tokens"] or 0 for row in replies)
    message = f"{read:,} tokens read and {written:,} written"
    silent = sum(
        row["prompt_tokens"] is None or row["completion_tokens"] is None for row in replies
    )
    if silent:
        message += f" ({silent} of {len(replies)} replies did not say)"
    if price_in is not None or price_out is not None:
        cost = (read * (price_in or 0.0) + written * (price_out or 0.0)) / _MILLION
        message += f"; they cost {cost:.4f} at {price_in or 0:g} and {price_out or 0:g} a million"
    print_message(message)
