"""Tables in blocks of the documentation, from committed rows and from the code.

A page names a table, and what it is of, in a comment: `<!-- costs -->`, `<!-- paper: er-5k er-20k -->`.
What stands below it, down to a comment such as `<!-- end of paper -->`, is written anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import benchmark_tables
import result_tables
import speed_tables
import trial_tables
from committed import Committed

from everlearn.methods.registry import describe_methods
from everlearn.rows import MeasurementRow, Row, describe_rows

Write = Callable[[Committed, Sequence[str]], str]


def _kinds(row_types: Any) -> Write:
    return lambda _, words: describe_rows(row_types)


def _methods(_: Committed, words: Sequence[str]) -> str:
    """Return the table of methods; the word is the path to their pages."""
    (pages,) = words
    return describe_methods(pages)


def _without_words(table: Callable[[Committed], str]) -> Write:
    return lambda rows, _: table(rows)


# Those that a change of the code changes.
FROM_CODE: dict[str, Write] = {
    "methods": _methods,
    "rows": _kinds(Row),
    "measurement-rows": _kinds(MeasurementRow),
}
# Functions of the rows and of the words after the colon.
BLOCKS: dict[str, Write] = {
    **FROM_CODE,
    "summary": result_tables.summary,
    "tuning": _without_words(result_tables.tuning),
    "edges": _without_words(result_tables.edges),
    "comparison": _without_words(result_tables.comparison),
    "learning": _without_words(speed_tables.learning),
    "costs": _without_words(speed_tables.costs),
    "rendering": _without_words(speed_tables.rendering),
    "toy": trial_tables.toy,
    "paper": trial_tables.paper,
    "new-shapes": trial_tables.new_shapes,
    "small": trial_tables.small,
    "findings": trial_tables.findings,
    "report": trial_tables.report,
    "avalanche": benchmark_tables.avalanche,
    "avalanche-ar1": _without_words(benchmark_tables.avalanche_ar1),
    "fit": _without_words(benchmark_tables.fit),
    "fit-tuning": _without_words(benchmark_tables.fit_tuning),
    "edges-by-learner": benchmark_tables.edges_by_learner,
}
_MARK = re.compile(r"^<!-- (end of )?([^:>]*?)(?:: (.*))? -->$", re.MULTILINE)


class _Block(NamedTuple):
    """A table on a page: its name, the words after the colon, and its two marks."""

    name: str
    words: list[str]
    start: re.Match[str]
    end: re.Match[str]


def fill(text: str, rows: Committed, names: Collection[str] = BLOCKS) -> str:
    """Return the text of a page with its tables, or those of some names, as they are now."""
    for block in reversed([*_find(text)]):
        if block.name in names:
            content = BLOCKS[block.name](rows, block.words).strip("\n")
            before, after = text[: block.start.end()], text[block.end.start() :]
            text = f"{before}\n\n{content}\n\n{after}"
    return text


def blank(text: str) -> str:
    """Return the text of a page without its tables, with as many lines."""
    for block in reversed([*_find(text)]):
        start, end = block.start.start(), block.end.end()
        text = text[:start] + "\n" * text.count("\n", start, end) + text[end:]
    return text


def _find(text: str) -> Iterator[_Block]:
    """Yield the blocks of a page; a mark without its partner or of an unknown name raises."""
    marks = [*_MARK.finditer(text)]
    for start, end in zip_longest(marks[::2], marks[1::2]):
        name = start[2]
        if start[1] or name not in BLOCKS:
            raise ValueError(f"{start[0]} begins no block; blocks are {', '.join(sorted(BLOCKS))}")
        if end is None or not end[1] or end[2] != name:
            found = end[0] if end else "the end of the page"
            raise ValueError(
                f"{start[0]} must be followed by <!-- end of {name} -->, found {found}"
            )
        yield _Block(name, (start[3] or "").split(), start, end)
