"""Evaluation of a learner: on the tasks seen, on all classes, while training, one-shot, open-set, codes."""

from everlearn.evaluation.evaluator import Evaluator, check_plan
from everlearn.evaluation.one_shot import one_shot
from everlearn.evaluation.open_set import open_set
from everlearn.evaluation.plan import Plan, read_plan
from everlearn.evaluation.scoring import score

__all__ = ["Evaluator", "Plan", "check_plan", "one_shot", "open_set", "read_plan", "score"]
