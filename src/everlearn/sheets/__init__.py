"""Pictures of shapes, factors and streams, as Pillow images."""

from everlearn.sheets.contact import factor_sheet, shape_sheet
from everlearn.sheets.files import save, save_film
from everlearn.sheets.film import stream_film
from everlearn.sheets.plan import scenario_sheet
from everlearn.sheets.sweep import sweep_sheet

__all__ = [
    "factor_sheet",
    "save",
    "save_film",
    "scenario_sheet",
    "shape_sheet",
    "stream_film",
    "sweep_sheet",
]
