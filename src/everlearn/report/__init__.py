"""From rows on disk to tables, figures and one page; nothing here loads a learner or torch."""

from everlearn.report.book import report
from everlearn.report.formats import to_html, to_latex, to_markdown
from everlearn.report.gallery import gallery
from everlearn.report.groups import Group, group_runs
from everlearn.report.load import Finished, load_runs
from everlearn.report.page import Section, write_page
from everlearn.report.table import Table, make_tables

__all__ = [
    "Finished",
    "Group",
    "Section",
    "Table",
    "gallery",
    "group_runs",
    "load_runs",
    "make_tables",
    "report",
    "to_html",
    "to_latex",
    "to_markdown",
    "write_page",
]
