"""Environments: one task each, of items that move or stay; their order is the stream."""

from everlearn.stream.environments.stream import Environments

__all__ = ["Environments"]
