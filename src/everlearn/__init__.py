"""Everlearn: endless continual-learning benchmarks and the learners that survive them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from everlearn.core.version import __version__ as __version__

if TYPE_CHECKING:
    from everlearn.evaluate import run
    from everlearn.evaluation import Plan
    from everlearn.factors import Factors, theta
    from everlearn.learner import Learner
    from everlearn.memory import Exemplars
    from everlearn.methods import METHODS, build
    from everlearn.render import render
    from everlearn.render.canvas import Canvas
    from everlearn.shapes import Outline, Outlines, ShapeStyle, outline, outlines
    from everlearn.stream import (
        ArrayStream,
        Batch,
        Environments,
        Gaussians,
        Latents,
        Split,
        Stream,
        Task,
        TaskStream,
    )

_HOMES = {
    "ArrayStream": "stream",
    "Batch": "stream",
    "Canvas": "render",
    "Environments": "stream",
    "Exemplars": "memory",
    "Factors": "factors",
    "Gaussians": "stream",
    "Latents": "stream",
    "Learner": "learner",
    "METHODS": "methods",
    "Outline": "shapes",
    "Outlines": "shapes",
    "Plan": "evaluation",
    "ShapeStyle": "shapes",
    "Split": "stream",
    "Stream": "stream",
    "Task": "stream",
    "TaskStream": "stream",
    "build": "methods",
    "outline": "shapes",
    "outlines": "shapes",
    "render": "render",
    "run": "evaluate",
    "theta": "factors",
}
__all__ = [
    "METHODS",
    "ArrayStream",
    "Batch",
    "Canvas",
    "Environments",
    "Exemplars",
    "Factors",
    "Gaussians",
    "Latents",
    "Learner",
    "Outline",
    "Outlines",
    "Plan",
    "ShapeStyle",
    "Split",
    "Stream",
    "Task",
    "TaskStream",
    "build",
    "outline",
    "outlines",
    "render",
    "run",
    "theta",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'everlearn' has no attribute {name!r}")
    home = import_module(f"everlearn.{_HOMES[name]}")
    return home if name == _HOMES[name] else getattr(home, name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
