"""What a learner keeps: pictures to compare with, images to see again, or one mean vector a class."""

from everlearn.memory.balanced import Balanced
from everlearn.memory.buffer import Buffer, draw_rows
from everlearn.memory.exemplars import Exemplars
from everlearn.memory.points import Points
from everlearn.memory.prototypes import Prototypes
from everlearn.memory.reservoir import Reservoir
from everlearn.memory.search import Found

__all__ = [
    "Balanced",
    "Buffer",
    "Exemplars",
    "Found",
    "Points",
    "Prototypes",
    "Reservoir",
    "draw_rows",
]
