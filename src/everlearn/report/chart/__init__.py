"""Charts as SVG: lines with bands, labelled dots, bars with intervals."""

from everlearn.report.chart.bars import Bar, draw_bars
from everlearn.report.chart.dots import Dot, draw_dots
from everlearn.report.chart.lines import draw_lines

__all__ = ["Bar", "Dot", "draw_bars", "draw_dots", "draw_lines"]
