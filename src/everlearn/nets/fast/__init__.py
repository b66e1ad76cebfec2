"""Any training step, fast: eager on a CPU; on a GPU in bfloat16 and as one captured CUDA graph.

A step is a function of tensors that computes a loss, goes backward, moves an optimiser and returns the
loss. A method writes it once, plainly; `Step` runs it.
"""

from everlearn.nets.fast.optimizers import (
    adam,
    changed,
    descend,
    forget,
    load_moments,
    moments,
    set_rate,
    sgd,
)
from everlearn.nets.fast.passes import (
    Narrow,
    evaluating,
    forward,
    keeping_moments,
    place,
    steady,
)
from everlearn.nets.fast.step import Step, beside, both_ways

__all__ = [
    "Narrow",
    "Step",
    "adam",
    "beside",
    "both_ways",
    "changed",
    "descend",
    "evaluating",
    "forget",
    "forward",
    "keeping_moments",
    "load_moments",
    "moments",
    "place",
    "set_rate",
    "sgd",
    "steady",
]
