"""Charts as SVG: lines with bands, labelled dots, bars with intervals."""

from everlearn.report.charts.bars import Bar, draw_bars
from everlearn.report.charts.dots import Dot, draw_dots
from everlearn.report.charts.lines import draw_lines

__all__ = ["Bar", "Dot", "draw_bars", "draw_dots", "draw_lines"]
