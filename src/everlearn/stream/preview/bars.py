"""Bar charts of the training images of each class in each task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everlearn.stream.preview.page import FAINT, GAP, NEW, OLD, RULE, SMALL, Page, text_width

WIDTH = 440
_MIN_HEIGHT = 4
Counts = Mapping[int, int]


def draw_bars(
    page: Page, tasks: Sequence[Counts], x: int, floors: Sequence[int], high: int
) -> None:
    """Draw the training images of each class, task by task.

    Args:
        tasks: for every task, the number of images by class.
        floors: the y of the bottom of each task's bars.
        high: the height of the highest bar.
    """
    classes = sorted({label for counts in tasks for label in counts})
    largest = max((count for counts in tasks for count in counts.values()), default=1)
    seen: set[int] = set()
    for counts, floor in zip(tasks, floors, strict=True):
        page.box(x, floor, WIDTH, 2, RULE)
        for column, label in enumerate(classes):
            left = x + column * WIDTH // len(classes)
            right = x + (column + 1) * WIDTH // len(classes)
            height = (
                max(_MIN_HEIGHT, round(high * counts[label] / largest)) if label in counts else 0
            )
            gap = min(4, (right - left) // 4)
            ink = OLD if label in seen else NEW
            page.box(left, floor - height, max(1, right - left - gap), height, ink)
        seen |= set(counts)
    classes_return = sum(len(counts) for counts in tasks) > len(classes)
    _draw_legend(page, x, floors[0] - high - 4 * GAP, classes_return)
    _draw_ids(page, classes, x, floors[-1] + 5)


def _draw_legend(page: Page, x: int, y: int, classes_return: bool) -> None:
    inks = {"images of a new class": NEW, "of one seen before": OLD}
    for label, ink in list(inks.items())[: 1 + classes_return]:
        page.box(x, y - SMALL + 4, 12, 12, ink)
        page.text(x + 20, y - SMALL, label, SMALL, FAINT)
        x += 20 + text_width(label, SMALL) + 3 * GAP


def _draw_ids(page: Page, classes: Sequence[int], x: int, y: int) -> None:
    """Write as many class ids under their columns as fit."""
    if not classes:
        return
    room = text_width(str(classes[-1]), SMALL) + GAP
    every = -(-room * len(classes) // WIDTH)
    for column in range(0, len(classes), every):
        middle = x + (column + 0.5) * WIDTH / len(classes)
        page.text(middle, y, str(classes[column]), SMALL, FAINT, "ma")
