"""Metrics: pure functions from rows to numbers, on numpy and scipy alone."""

from everlearn.metrics.all_classes import AllClasses, all_classes
from everlearn.metrics.cost import Cost, cost
from everlearn.metrics.diagonal import (
    JustLearned,
    NextTasks,
    forward_transfer,
    just_learned,
    next_tasks,
)
from everlearn.metrics.gap import (
    Switches,
    first_step_share,
    mean_stability_gap,
    recovery,
    regained,
    stability_gap,
    switches,
    temporary_gap,
)
from everlearn.metrics.matrix import Curve, Table, curve, pooled, table
from everlearn.metrics.measured import NotMeasuredError
from everlearn.metrics.multiple_choice import Tally, tally
from everlearn.metrics.one_shot import one_shot
from everlearn.metrics.open_set import auroc, average_precision, fpr_at_tpr, oscr
from everlearn.metrics.paper_curve import PaperCurve, paper_area, paper_curve
from everlearn.metrics.probes import Series, ends_of_tasks, probes
from everlearn.metrics.proportion import Interval, share, wilson
from everlearn.metrics.seeds import (
    MIN_SEEDS,
    Comparison,
    Spread,
    aggregate,
    compare,
    compare_shared,
    half_width,
    mean_or_none,
)
from everlearn.metrics.stability import learning_curve_area, min_accuracy, worst_case_accuracy
from everlearn.metrics.summary import explain_missing, summarise
from everlearn.metrics.theta import ThetaErrors, theta_errors
from everlearn.metrics.transfer import (
    LEARNED,
    average_accuracy,
    backward_transfer,
    forgetting,
    last_learned,
    learned_its_tasks,
    learning_accuracy,
    stream_average,
)
from everlearn.metrics.windows import (
    largest_fall,
    largest_rise,
    windowed_forgetting,
    windowed_plasticity,
)

__all__ = [
    "LEARNED",
    "MIN_SEEDS",
    "AllClasses",
    "Comparison",
    "Cost",
    "Curve",
    "Interval",
    "JustLearned",
    "NextTasks",
    "NotMeasuredError",
    "PaperCurve",
    "Series",
    "Spread",
    "Switches",
    "Table",
    "Tally",
    "ThetaErrors",
    "aggregate",
    "all_classes",
    "auroc",
    "average_accuracy",
    "average_precision",
    "backward_transfer",
    "compare",
    "compare_shared",
    "cost",
    "curve",
    "ends_of_tasks",
    "explain_missing",
    "first_step_share",
    "forgetting",
    "forward_transfer",
    "fpr_at_tpr",
    "half_width",
    "just_learned",
    "largest_fall",
    "largest_rise",
    "last_learned",
    "learned_its_tasks",
    "learning_accuracy",
    "learning_curve_area",
    "mean_or_none",
    "mean_stability_gap",
    "min_accuracy",
    "next_tasks",
    "one_shot",
    "oscr",
    "paper_area",
    "paper_curve",
    "pooled",
    "probes",
    "recovery",
    "regained",
    "share",
    "stability_gap",
    "stream_average",
    "summarise",
    "switches",
    "table",
    "tally",
    "temporary_gap",
    "theta_errors",
    "wilson",
    "windowed_forgetting",
    "windowed_plasticity",
    "worst_case_accuracy",
]
