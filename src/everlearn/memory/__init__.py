"""Memories of a learner: exemplars to search, buffers to replay, and class prototypes."""

from everlearn.memory.buffer import Buffer, draw_replay_rows
from everlearn.memory.class_balanced import ClassBalanced
from everlearn.memory.exemplars import Exemplars
from everlearn.memory.float_exemplars import FloatExemplars
from everlearn.memory.prototypes import Prototypes
from everlearn.memory.reservoir import Reservoir
from everlearn.memory.search import SearchResult

__all__ = [
    "Buffer",
    "ClassBalanced",
    "Exemplars",
    "FloatExemplars",
    "Prototypes",
    "Reservoir",
    "SearchResult",
    "draw_replay_rows",
]
