"""Pictures as rows: PNG files as text, so that a page is redrawn without a learner."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from everlearn.report.experiment import Picture
from everlearn.rows import MeasurementRow, PictureRow, of_kind


def picture_row(caption: str, content: bytes) -> PictureRow:
    """Return a row that holds a PNG file."""
    return {"kind": "picture", "caption": caption, "png": base64.b64encode(content).decode()}


def pictures(rows: Iterable[MeasurementRow]) -> list[Picture]:
    """Return all pictures among the rows."""
    found = of_kind(rows, PictureRow)
    return [Picture(base64.b64decode(row["png"]), row["caption"]) for row in found]
