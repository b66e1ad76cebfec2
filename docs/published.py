"""Update the published numbers from rows: python docs/published.py.

Tables stand in blocks (blocks.py). Every other number of README.md and docs/results.md stands in a gap
of a sentence, which is filled, or is listed as no result (sentences.py).
"""

from __future__ import annotations

import re
from pathlib import Path

import blocks
from committed import Committed
from sentences import NOT_RESULTS, SENTENCES

ROOT = Path(__file__).parents[1]
# Pages with no number but those of rows, and those listed as no result.
PAGES = ("README.md", "docs/results.md")
# All but those of the report, which `everlearn report` writes.
ALL_PAGES = (
    "README.md",
    *(
        str(page.relative_to(ROOT))
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if page.parent.name != "report"
    ),
)
_GAP = r"([-+−]?\d[\d,]*(?:\.\d+)?)"
_CODE = re.compile(r"^ *```.*?^ *```|`[^`]+`", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<=\])\([^)]*\)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def update(page: str, text: str, rows: Committed) -> str:
    """Return the text of a page with all its numbers as the rows have them."""
    text = blocks.fill(text, rows)
    for sentence in SENTENCES:
        if sentence.page == page:
            text = _fill_sentence(sentence.text, sentence.values(rows), page, text)
    return text


def unexplained(page: str, text: str) -> list[str]:
    """Return the lines with a number that is neither computed from rows nor listed as no result."""
    for sentence in SENTENCES:
        if sentence.page == page:
            text = _pattern(sentence.text).sub(_blank_gaps, text)
    text = blocks.blank(text)
    no_results = [_phrase(phrase) for phrase in NOT_RESULTS[page]]
    for pattern in (*no_results, _CODE, _LINK, _COMMENT):
        text = pattern.sub(_blank, text)
    return [line.strip() for line in text.splitlines() if re.search(r"\d", line)]


def _fill_sentence(sentence: str, values: list[str], page: str, text: str) -> str:
    matches = list(_pattern(sentence).finditer(text))
    if len(matches) != 1:
        raise ValueError(
            f"{page} must hold this once, found {len(matches)} times: {sentence!r}; "
            "change the page or docs/sentences.py"
        )
    match = matches[0]
    if len(values) != len(match.groups()):
        raise ValueError(f"{sentence!r} has {len(match.groups())} gaps and {len(values)} values")
    for number, value in reversed(list(enumerate(values, 1))):
        text = text[: match.start(number)] + value + text[match.end(number) :]
    return text


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
    for page in ALL_PAGES:
        path = ROOT / page
        path.write_text(update(page, path.read_text(), rows))
    for page in PAGES:
        for line in unexplained(page, (ROOT / page).read_text()):
            print(f"{page}: no rows are named for: {line}")
