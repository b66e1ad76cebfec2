"""From rows on disk to tables, figures and one HTML page, without loading torch or a learner."""

from everlearn.report.charts import Bar, Dot, draw_bars, draw_dots, draw_lines
from everlearn.report.charts.accuracy_lines import Line
from everlearn.report.charts.gallery import gallery
from everlearn.report.comparison import write_comparison
from everlearn.report.experiment import (
    ExperimentInfo,
    ExperimentResult,
    Figure,
    Picture,
    experiment_section,
)
from everlearn.report.loaded_run import LoadedRun
from everlearn.report.page import Finding, Lead, Page, Section, write_page
from everlearn.report.reproduction import Reproduction, write_report
from everlearn.report.tables.comparison_tables import make_tables
from everlearn.report.tables.formats import to_latex, to_markdown
from everlearn.report.tables.groups import Group, group_runs
from everlearn.report.tables.protocol import protocol_table, unlearned_table
from everlearn.report.tables.summary import summary_table
from everlearn.report.tables.table import Table
from everlearn.report.verdict import VERDICTS, Verdict, check_verdict

__all__ = [
    "VERDICTS",
    "Bar",
    "Dot",
    "ExperimentInfo",
    "ExperimentResult",
    "Figure",
    "Finding",
    "Group",
    "Lead",
    "Line",
    "LoadedRun",
    "Page",
    "Picture",
    "Reproduction",
    "Section",
    "Table",
    "Verdict",
    "check_verdict",
    "draw_bars",
    "draw_dots",
    "draw_lines",
    "experiment_section",
    "gallery",
    "group_runs",
    "make_tables",
    "protocol_table",
    "summary_table",
    "to_latex",
    "to_markdown",
    "unlearned_table",
    "write_comparison",
    "write_page",
    "write_report",
]
