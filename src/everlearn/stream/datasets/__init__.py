"""Streams over data sets: arrays and image files in the user's data folder."""

from everlearn.stream.datasets.files import data_folder
from everlearn.stream.datasets.stream import ArrayStream

__all__ = ["ArrayStream", "data_folder"]
