"""What a learner keeps: one picture a class to compare with, or one mean vector a class."""

from everlearn.memory.exemplars import Exemplars
from everlearn.memory.prototypes import Prototypes
from everlearn.memory.search import Found

__all__ = ["Exemplars", "Found", "Prototypes"]
