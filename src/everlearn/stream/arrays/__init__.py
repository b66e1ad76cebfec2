"""Real data sets as streams: the same kind of task over arrays and files that the user has."""

from everlearn.stream.arrays.files import data_folder
from everlearn.stream.arrays.spec import ArrayStream

__all__ = ["ArrayStream", "data_folder"]
