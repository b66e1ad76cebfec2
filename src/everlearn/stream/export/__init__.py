"""Write a stream to disk as npz, PNG + CSV or WebDataset shards, and read it back unchanged."""

from everlearn.stream.export.formats import FORMATS
from everlearn.stream.export.stream import ExportedStream, read
from everlearn.stream.export.write import export

__all__ = ["FORMATS", "ExportedStream", "export", "read"]
