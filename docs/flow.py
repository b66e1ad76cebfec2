"""Draw the flow of data as SVG: shapes → images → stream → learner → rows → report."""

from __future__ import annotations

from itertools import pairwise

from everlearn import outline

WIDTH = 150
HEIGHT = 168
STEP = 186
MARGIN = 8
# The cards have a background of their own, so that they look the same on light and dark pages.
CARD = """<g transform="translate({x} {y})">
<rect width="150" height="168" rx="10" fill="#f6f8fa" stroke="#8b949e"/>
<text class="title" x="75" y="28">{title}</text>
{icon}
<text class="caption" x="75" y="136">{first}</text>
<text class="caption" x="75" y="154">{second}</text>
</g>"""
ARROW = '<path d="M{x} {y}h20m-7 -7l8 7l-8 7" fill="none" stroke="#8b949e" stroke-width="2.5"/>'
PAGE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>shapes, images, stream, learner, rows, report</title>
<style>
text {{ font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; text-anchor: middle; }}
.title {{ font-size: 18px; font-weight: 600; fill: #1f2328; }}
.caption {{ font-size: 12.5px; fill: #59636e; }}
.small {{ font-size: 11px; fill: #1f2328; }}
</style>
{content}
</svg>
"""
CAPTIONS = {
    "shapes": ("a closed curve for", "every seed and id"),
    "images": ("a curve under factors,", "rendered on demand"),
    "stream": ("tasks of classes, each", "created by its index"),
    "learner": ("learns task by task,", "predicts class ids"),
    "rows": ("counts of correct", "predictions, on disk"),
    "report": ("curves and tables,", "drawn from rows"),
}
BARS = (0.86, 0.72, 0.5, 0.64)


def flow() -> str:
    """Return the SVG text."""
    icons = (_shapes(), _images(), _stream(), _learner(), _rows(), _report())
    cards = [
        CARD.format(x=MARGIN + STEP * i, y=MARGIN, title=title, icon=icon, first=a, second=b)
        for i, ((title, (a, b)), icon) in enumerate(zip(CAPTIONS.items(), icons, strict=True))
    ]
    arrows = [
        ARROW.format(x=MARGIN + WIDTH + 8 + STEP * i, y=MARGIN + HEIGHT // 2) for i in range(5)
    ]
    width = 2 * MARGIN + 5 * STEP + WIDTH
    return PAGE.format(width=width, height=HEIGHT + 2 * MARGIN, content="\n".join(cards + arrows))


def _path(shape: int, x: float, y: float, size: float) -> str:
    """Return the path of a shape's outline, centred at (x, y)."""
    points = outline(0, shape).points[::10] * size + (x, y)
    return "M" + "L".join(f"{u:.1f} {v:.1f}" for u, v in points) + "Z"


def _shapes() -> str:
    curves = [_path(shape, x, 76, 34) for shape, x in ((12, 33), (34, 75), (90, 117))]
    return f'<path d="{"".join(curves)}" fill="none" stroke="#0969da" stroke-width="2"/>'


def _images() -> str:
    """Draw two sprites: a small rotated one and a large upright one."""
    out = []
    for place, (shape, turn, size) in enumerate(((34, 75, 20), (34, 0, 34))):
        x = 45 + 60 * place
        half = f'<clipPath id="half{place}"><rect x="0" y="-40" width="40" height="80"/></clipPath>'
        curve = _path(shape, 0, 0, size)
        out.append(
            f'<rect x="{x - 26}" y="50" width="52" height="52" fill="#a9a9a9"/>{half}'
            f'<g transform="translate({x} 76) rotate({turn})"><path d="{curve}" fill="#fff"/>'
            f'<path d="{curve}" fill="#000" clip-path="url(#half{place})"/></g>'
        )
    return "\n".join(out)


def _stream() -> str:
    out = []
    for place in range(3):
        x = 20 + 38 * place
        out.append(f'<rect x="{x}" y="54" width="34" height="44" rx="3" fill="#a9a9a9"/>')
        curves = "".join(
            _path(4 * place + 20 + k, x + 9 + 16 * (k % 2), 66 + 20 * (k // 2), 12)
            for k in range(4)
        )
        out.append(f'<path d="{curves}" fill="#fff"/>')
        out.append(f'<text class="small" x="{x + 17}" y="112">{place}</text>')
    return "\n".join([*out, '<text class="small" x="137" y="80">…</text>'])


def _learner() -> str:
    """Draw three connected layers of nodes."""
    layers = [[(40, 58 + 18 * k) for k in range(3)], [(75, 49 + 18 * k) for k in range(4)]]
    layers.append([(110, 67), (110, 85)])
    lines = "".join(
        f"M{a} {b}L{c} {d}" for left, right in pairwise(layers) for a, b in left for c, d in right
    )
    dots = "".join(f'<circle cx="{x}" cy="{y}" r="5"/>' for layer in layers for x, y in layer)
    return f'<path d="{lines}" stroke="#afb8c1" fill="none"/><g fill="#0969da">{dots}</g>'


def _rows() -> str:
    out = []
    for place, share in enumerate(BARS):
        y = 52 + 14 * place
        out.append(f'<rect x="25" y="{y}" width="100" height="9" rx="2" fill="#d1d9e0"/>')
        out.append(
            f'<rect x="25" y="{y}" width="{100 * share:.0f}" height="9" rx="2" fill="#0969da"/>'
        )
    return "\n".join(out)


def _report() -> str:
    return (
        '<path d="M28 48v58h98" fill="none" stroke="#59636e" stroke-width="1.5"/>'
        '<path d="M30 58l18 -4l18 3l18 -3l18 2l18 -2" fill="none" stroke="#0969da" stroke-width="2.5"/>'
        '<path d="M30 60l18 14l18 12l18 7l18 4l18 2" fill="none" stroke="#da780a" stroke-width="2.5"/>'
    )
