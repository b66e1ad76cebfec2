"""matplotlib figures as SVG with light and dark colours, and as PNG."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

from everlearn.report.charts.style import (
    BACKGROUND,
    COLORS,
    FONT,
    FONTS,
    GRID,
    MUTED,
    SMALL,
    TEXT,
    TEXT_COLOR,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_RC_PARAMS: dict[Any, Any] = {
    "font.family": FONT, "font.size": TEXT, "text.color": TEXT_COLOR, "axes.labelcolor": TEXT_COLOR,
    "axes.edgecolor": GRID, "axes.facecolor": "none", "axes.grid": True, "axes.grid.axis": "y",
    "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False,
    "axes.spines.left": False, "axes.labelsize": TEXT, "grid.color": GRID, "grid.linewidth": 1,
    "xtick.color": GRID, "ytick.color": GRID, "xtick.labelcolor": MUTED, "ytick.labelcolor": MUTED,
    "xtick.labelsize": SMALL, "ytick.labelsize": SMALL, "ytick.major.size": 0,
    "legend.frameon": False, "legend.fontsize": SMALL, "figure.facecolor": BACKGROUND,
    "figure.dpi": 72, "svg.fonttype": "none", "path.simplify": False, "text.parse_math": False,
}  # fmt: skip
_VARIABLES = {shade.light: f"var(--{name}, {shade.light})" for name, shade in COLORS.items()}


@contextmanager
def drawing(name: str) -> Iterator[None]:
    """Create and save figures inside with our settings, whatever the user's matplotlib settings are.

    Args:
        name: of the figure, unique on the page; ids inside the SVG follow from it.
    """
    try:
        import matplotlib
    except ImportError:
        raise ImportError(
            "figures need matplotlib, which is missing; run: pip install 'everlearn[plot]'"
        ) from None
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC_PARAMS | {"svg.hashsalt": name})
        yield


def new_figure(width: int, height: int) -> Figure:
    """Create an empty figure of this size in pixels of the SVG."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width / 72, height / 72))


def place(axes: Axes, left: float, bottom: float, width: float, height: float) -> None:
    """Place axes in pixels from the lower left corner of the figure."""
    total_width, total_height = axes.figure.bbox.size
    axes.set_position(
        (left / total_width, bottom / total_height, width / total_width, height / total_height)
    )


def to_svg(figure: Figure, description: str) -> str:
    """Return the figure as SVG, in colours that follow the light or dark theme.

    Args:
        description: text for readers who cannot see the figure.
    """
    buffer = io.StringIO()
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=no_metadata)
    # The first <defs> of matplotlib would style the whole page.
    text = buffer.getvalue().partition("</defs>")[2]
    text = re.sub(r'<g id="[^"]*"', "<g", text).replace(f"'{FONT}'", FONTS)
    for color, variable in _VARIABLES.items():
        text = text.replace(f": {color}", f": {variable}")
    return _svg_start(figure, description) + text


def _svg_start(figure: Figure, description: str) -> str:
    width, height = (round(side) for side in figure.bbox.size)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label={quoteattr(description)} style="stroke-linejoin: round">\n'
        f"<style>{theme_css()}</style>"
    )


def to_png(figure: Figure) -> bytes:
    """Return the figure as PNG on white, in twice the resolution of the SVG."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=144, metadata={"Software": None})
    return buffer.getvalue()


def theme_css() -> str:
    """Return CSS variables of all colours, for light and dark pages."""
    light = " ".join(f"--{name}: {shade.light};" for name, shade in COLORS.items())
    dark = " ".join(f"--{name}: {shade.dark};" for name, shade in COLORS.items())
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"
    )
