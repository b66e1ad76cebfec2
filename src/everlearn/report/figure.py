"""Figures of matplotlib as crisp SVG in light and dark, and as PNG."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

from everlearn.report.style import FAINT, FONT, FONTS, INK, PAPER, RULE, SHADES, SMALL, TEXT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LOOK: dict[Any, Any] = {
    "font.family": FONT, "font.size": TEXT, "text.color": INK, "axes.labelcolor": INK,
    "axes.edgecolor": RULE, "axes.facecolor": "none", "axes.grid": True, "axes.grid.axis": "y",
    "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False,
    "axes.spines.left": False, "axes.labelsize": TEXT, "grid.color": RULE, "grid.linewidth": 1,
    "xtick.color": RULE, "ytick.color": RULE, "xtick.labelcolor": FAINT, "ytick.labelcolor": FAINT,
    "xtick.labelsize": SMALL, "ytick.labelsize": SMALL, "ytick.major.size": 0,
    "legend.frameon": False, "legend.fontsize": SMALL, "figure.facecolor": PAPER,
    "figure.dpi": 72, "svg.fonttype": "none", "path.simplify": False, "text.parse_math": False,
}  # fmt: skip
_VARIABLES = {shade.light: f"var(--{name}, {shade.light})" for name, shade in SHADES.items()}


@contextmanager
def drawing(name: str) -> Iterator[None]:
    """Draw and save inside: matplotlib looks alike on every machine, and as before afterwards.

    Args:
        name: of the figure; figures on one page need different ones.
    """
    try:
        import matplotlib
    except ImportError:
        raise ImportError(
            "figures need matplotlib, which is missing; run: pip install 'everlearn[plot]'"
        ) from None
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_LOOK | {"svg.hashsalt": name})
        yield


def new_figure(width: int, height: int) -> Figure:
    """Take an empty figure; a point is a pixel of the SVG."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width / 72, height / 72))


def place(axes: Axes, left: float, bottom: float, width: float, height: float) -> None:
    """Put axes at pixels of the figure, from its lower left corner."""
    across, up = axes.figure.bbox.width, axes.figure.bbox.height
    axes.set_position((left / across, bottom / up, width / across, height / up))


def to_svg(figure: Figure, words: str) -> str:
    """Save as SVG whose colours follow the reader's choice of light or dark.

    Args:
        words: what is to be seen, for those who cannot see it.
    """
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    text = buffer.getvalue().partition("</defs>")[2]  # its first one styles the whole page
    text = re.sub(r'<g id="[^"]*"', "<g", text).replace(f"'{FONT}'", FONTS)
    for color, variable in _VARIABLES.items():
        text = text.replace(f": {color}", f": {variable}")
    return _head(figure, words) + text


def _head(figure: Figure, words: str) -> str:
    width, height = (round(side) for side in figure.bbox.size)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label={quoteattr(words)} style="stroke-linejoin: round">\n'
        f"<style>{shades()}</style>"
    )


def to_png(figure: Figure) -> bytes:
    """Save as PNG on white, two pixels a pixel of the SVG."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=144, metadata={"Software": None})
    return buffer.getvalue()


def shades() -> str:
    """CSS that sets every colour by its name, light and dark."""
    light = " ".join(f"--{name}: {shade.light};" for name, shade in SHADES.items())
    dark = " ".join(f"--{name}: {shade.dark};" for name, shade in SHADES.items())
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"
    )
