"""Which classes are present in which task: a column a class, a bar as high as it has images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everlearn.sheets.page import FAINT, GAP, NEW, OLD, RULE, SMALL, Page, text_width

WIDTH = 440
_LOWEST = 4
Counts = Mapping[int, int]


def draw_bars(
    page: Page, tasks: Sequence[Counts], x: int, floors: Sequence[int], high: int
) -> None:
    """Draw the training images of each class, task by task.

    Args:
        tasks: images of each class that is present.
        floors: where the bars of each task stand.
        high: height of the highest bar.
    """
    classes = sorted({label for counts in tasks for label in counts})
    most = max((count for counts in tasks for count in counts.values()), default=1)
    met: set[int] = set()
    for counts, floor in zip(tasks, floors, strict=True):
        page.box(x, floor, WIDTH, 2, RULE)
        for column, label in enumerate(classes):
            left = x + column * WIDTH // len(classes)
            right = x + (column + 1) * WIDTH // len(classes)
            height = max(_LOWEST, round(high * counts[label] / most)) if label in counts else 0
            gap = min(4, (right - left) // 4)
            ink = OLD if label in met else NEW
            page.box(left, floor - height, max(1, right - left - gap), height, ink)
        met |= set(counts)
    again = sum(len(counts) for counts in tasks) > len(classes)
    _draw_legend(page, x, floors[0] - high - 4 * GAP, again)
    _draw_ids(page, classes, x, floors[-1] + 5)


def _draw_legend(page: Page, x: int, y: int, again: bool) -> None:
    inks = {"images of a new class": NEW, "of one seen before": OLD}
    for words, ink in list(inks.items())[: 1 + again]:
        page.box(x, y - SMALL + 4, 12, 12, ink)
        page.text(x + 20, y - SMALL, words, SMALL, FAINT)
        x += 20 + text_width(words, SMALL) + 3 * GAP


def _draw_ids(page: Page, classes: Sequence[int], x: int, y: int) -> None:
    """Write class ids under their columns, as many as have room."""
    if not classes:
        return
    room = text_width(str(classes[-1]), SMALL) + GAP
    every = -(-room * len(classes) // WIDTH)
    for column in range(0, len(classes), every):
        middle = x + (column + 0.5) * WIDTH / len(classes)
        page.text(middle, y, str(classes[column]), SMALL, FAINT, "ma")
