"""Pictures of shapes, factors and streams, as Pillow images."""

from everlearn.stream.preview.animation import stream_animation
from everlearn.stream.preview.contact import factor_sheet, shape_sheet
from everlearn.stream.preview.files import save, save_gif
from everlearn.stream.preview.scenario import scenario_sheet
from everlearn.stream.preview.sweep import sweep_sheet

__all__ = [
    "factor_sheet",
    "save",
    "save_gif",
    "scenario_sheet",
    "shape_sheet",
    "stream_animation",
    "sweep_sheet",
]
