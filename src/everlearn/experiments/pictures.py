"""Pictures as rows: a PNG as text, so that a page is drawn again without a learner."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from everlearn.report.chapter import Picture
from everlearn.results import Row

PICTURE = "picture"


def picture_row(caption: str, content: bytes) -> Row:
    """Keep a picture."""
    return {"kind": PICTURE, "caption": caption, "png": base64.b64encode(content).decode()}


def pictures(rows: Iterable[Row]) -> list[Picture]:
    """All pictures among some rows."""
    found = [row for row in rows if row["kind"] == PICTURE]
    return [Picture(base64.b64decode(row["png"]), row["caption"]) for row in found]
