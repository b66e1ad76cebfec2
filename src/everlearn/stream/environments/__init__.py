"""Environments: one task each, of items that move or stay; their order is the stream."""

from everlearn.stream.environments.spec import Environments

__all__ = ["Environments"]
