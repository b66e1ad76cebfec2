"""From rows on disk to tables, figures and one page; nothing here loads a learner or torch."""

from everlearn.report.book import write_book
from everlearn.report.chapter import Chapter, Figure, Heading, Picture, chapter_section
from everlearn.report.chart import Bar, Dot, draw_bars, draw_dots, draw_lines
from everlearn.report.comparison import report
from everlearn.report.formats import to_html, to_latex, to_markdown
from everlearn.report.gallery import gallery
from everlearn.report.groups import Group, group_runs
from everlearn.report.lines import Line
from everlearn.report.load import Finished, load_run, load_runs
from everlearn.report.milestones import summary_table
from everlearn.report.page import Section, write_page
from everlearn.report.table import Table
from everlearn.report.tables import make_tables
from everlearn.report.verdict import VERDICTS, Verdict, check_verdict

__all__ = [
    "VERDICTS",
    "Bar",
    "Chapter",
    "Dot",
    "Figure",
    "Finished",
    "Group",
    "Heading",
    "Line",
    "Picture",
    "Section",
    "Table",
    "Verdict",
    "chapter_section",
    "check_verdict",
    "draw_bars",
    "draw_dots",
    "draw_lines",
    "gallery",
    "group_runs",
    "load_run",
    "load_runs",
    "make_tables",
    "report",
    "summary_table",
    "to_html",
    "to_latex",
    "to_markdown",
    "write_book",
    "write_page",
]
