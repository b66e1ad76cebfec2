"""Every figure and table of the papers, and ours; torch is loaded only to run one."""

from everlearn.experiments.registry import EXPERIMENTS, Experiment, find_experiment, result_names

__all__ = ["EXPERIMENTS", "Experiment", "find_experiment", "result_names"]
