"""Update the published numbers from rows: python docs/published.py.

Tables on other pages: see page_tables.py. A number of README.md and docs/results.md stands in
a block such as `<!-- learning -->` to `<!-- end of learning -->`, which is written anew, or in a gap of
a sentence, which is filled, or it is no result. `published_rows.py` lists blocks, sentences and other
numbers, and says how each result is computed.
"""

from __future__ import annotations

import re
from pathlib import Path

import page_tables
from published_rows import BLOCKS, NOT_RESULTS, SENTENCES, Committed, summary

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/results.md")
TABLE_PAGES = [
    *sorted((ROOT / "docs/methods").glob("*.md")),
    ROOT / "docs/reference/experiments.md",
    ROOT / "docs/decisions/0010-fitting.md",
]
_GAP = r"([-+−]?\d[\d,]*(?:\.\d+)?)"
_SUMMARY = re.compile(r"(<!-- summary: from \S+ -->\n)(.*?)(<!-- end of summary -->)", re.DOTALL)
_CODE = re.compile(r"^ *```.*?^ *```|`[^`]+`", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<=\])\([^)]*\)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def update(page: str, text: str, rows: Committed) -> str:
    """Return the text of a page with all its numbers as the rows have them."""
    text = _SUMMARY.sub(lambda found: _fill_summary(found, rows), text)
    for name, table in BLOCKS.items():
        block = _block(name)
        if block.search(text):
            content = table(rows)
            text = block.sub(lambda found, new=content: f"{found[1]}\n{new}\n\n{found[3]}", text)
    for sentence in SENTENCES:
        if sentence.page == page:
            text = _fill_sentence(sentence.text, sentence.values(rows), page, text)
    return text


def unexplained(page: str, text: str) -> list[str]:
    """Return the lines with a number that is neither computed from rows nor listed as no result."""
    for sentence in SENTENCES:
        if sentence.page == page:
            text = _pattern(sentence.text).sub(_blank_gaps, text)
    no_results = [_phrase(phrase) for phrase in NOT_RESULTS[page]]
    for pattern in (_SUMMARY, *map(_block, BLOCKS), *no_results, _CODE, _LINK, _COMMENT):
        text = pattern.sub(_blank, text)
    return [line.strip() for line in text.splitlines() if re.search(r"\d", line)]


def _fill_summary(found: re.Match[str], rows: Committed) -> str:
    """Fill the table of the report's summary: its head names the columns."""
    head = found[2].strip().splitlines()[0]
    columns = [cell.strip() for cell in head.strip("|").split("|")]
    return f"{found[1]}\n{summary(rows, columns)}\n\n{found[3]}"


def _fill_sentence(sentence: str, values: list[str], page: str, text: str) -> str:
    matches = list(_pattern(sentence).finditer(text))
    if len(matches) != 1:
        raise ValueError(
            f"{page} must hold this once, found {len(matches)} times: {sentence!r}; "
            "change the page or docs/published_rows.py"
        )
    match = matches[0]
    if len(values) != len(match.groups()):
        raise ValueError(f"{sentence!r} has {len(match.groups())} gaps and {len(values)} values")
    for number, value in reversed(list(enumerate(values, 1))):
        text = text[: match.start(number)] + value + text[match.end(number) :]
    return text


def _block(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name} -->\n)(.*?)(<!-- end of {name} -->)", re.DOTALL)


def _pattern(sentence: str) -> re.Pattern[str]:
    """Return the pattern of a sentence with {} for numbers; lines may break at any space."""
    return re.compile(re.escape(sentence).replace(r"\{\}", _GAP).replace(r"\ ", r"\s+"))


def _phrase(text: str) -> re.Pattern[str]:
    """Return the pattern of a phrase that is no part of a longer number; lines may break at any space."""
    words = re.escape(text).replace(r"\ ", r"\s+")
    return re.compile(rf"(?<![\d,.]){words}(?!,?\d|\.\d)")


def _blank_gaps(match: re.Match[str]) -> str:
    text = match[0]
    for number in range(1, len(match.groups()) + 1):
        start, end = (place - match.start() for place in match.span(number))
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


if __name__ == "__main__":
    rows = Committed(ROOT / "results")
    for page in PAGES:
        path = ROOT / page
        path.write_text(update(page, path.read_text(), rows))
        for line in unexplained(page, path.read_text()):
            print(f"{page}: no rows are named for: {line}")
    for path in TABLE_PAGES:
        path.write_text(page_tables.fill(path.read_text(), rows))
