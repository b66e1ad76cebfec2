"""Render outlines and factors to images on the CPU or the GPU."""

import sys
from types import ModuleType

from everlearn.render.backends import Renderer, check_device, cpu_renderer, render
from everlearn.render.canvas import Canvas, parse_color

__all__ = ["Canvas", "Renderer", "check_device", "cpu_renderer", "parse_color", "render"]


class _CallableModule(ModuleType):
    """Make `everlearn.render`, the name of this package, callable as the function `render`."""

    __call__ = staticmethod(render)


sys.modules[__name__].__class__ = _CallableModule
