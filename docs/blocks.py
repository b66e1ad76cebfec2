"""Tables in blocks of the documentation, from committed rows.

A page names a table, and what it is of, in a comment: `<!-- costs -->`, `<!-- paper: er-5k er-20k -->`.
What stands below it, down to a comment such as `<!-- end of paper -->`, is written anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import benchmark_tables
import result_tables
import trial_tables
from committed import Committed

Write = Callable[[Committed, Sequence[str]], str]


def _without_words(table: Callable[[Committed], str]) -> Write:
    return lambda rows, _: table(rows)


# Functions of the rows and of the words after the colon.
BLOCKS: dict[str, Write] = {
    "summary": result_tables.summary,
    "tuning": _without_words(result_tables.tuning),
    "edges": _without_words(result_tables.edges),
    "comparison": _without_words(result_tables.comparison),
    "learning": _without_words(result_tables.learning),
    "costs": _without_words(result_tables.costs),
    "rendering": _without_words(result_tables.rendering),
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
}
_BLOCK = re.compile(
    rf"(<!-- ({'|'.join(BLOCKS)})(?:: ([^>]*?))? -->\n)(.*?)(<!-- end of \2 -->)", re.DOTALL
)


def fill(text: str, rows: Committed) -> str:
    """Return the text of a page with its tables as the rows have them."""

    def replace(found: re.Match[str]) -> str:
        content = BLOCKS[found[2]](rows, (found[3] or "").split())
        return f"{found[1]}\n{content}\n\n{found[5]}"

    return _BLOCK.sub(replace, text)


def blank(text: str) -> str:
    """Return the text of a page without its tables, with as many lines."""
    return _BLOCK.sub(lambda found: "\n" * found[0].count("\n"), text)
