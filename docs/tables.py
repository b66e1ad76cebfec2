"""Update the generated tables of the documentation: python docs/tables.py.

These are the tables of methods and of rows, between comments such as `<!-- methods -->` and
`<!-- end of methods -->`, and the number of methods.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from everlearn.methods.registry import METHODS, describe_methods
from everlearn.rows import MeasurementRow, Row, describe_rows

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_COUNT = re.compile(r"(?<!of )\b\d+(?= methods\b)")


def update(page: Path) -> str:
    """Return the text of a page with its tables and its number of methods as they are now."""
    text = page.read_text()
    pages = os.path.relpath(ROOT / "docs/methods", page.parent)
    tables = {
        "methods": describe_methods(pages) + "\n",
        "rows": describe_rows(Row),
        "measurement rows": describe_rows(MeasurementRow),
    }
    for name, table in tables.items():
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        if start in text:
            before, _, rest = text.partition(start)
            text = before + start + table + end + rest.partition(end)[2]
    if page.name in ("README.md", "methods.md"):
        text = _COUNT.sub(str(len(METHODS)), text)
    return text


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(update(page))
