"""One page of pictures that needs nothing but itself."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import NamedTuple

_TYPES = {".png": "image/png", ".gif": "image/gif"}
_PAGE = Template(
    """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
:root { color-scheme: light dark; --ink: #1f2328; --faint: #59636e; --paper: #fff; --rule: #d1d9e0; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --faint: #9198a1; --paper: #0d1117; --rule: #3d444d; }
}
body { max-width: 60rem; margin: 3rem auto; padding: 0 1.25rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.6 system-ui, sans-serif; }
h1 { margin: 0; font-size: 2.2rem; }
h2 { margin: 3rem 0 0; font-size: 1.3rem; }
p { margin: .3rem 0 1rem; color: var(--faint); }
table { border-collapse: collapse; margin-top: 1.5rem; }
td { border-top: 1px solid var(--rule); padding: .4rem 2rem .4rem 0; }
td + td { text-align: right; padding-right: 0; font-variant-numeric: tabular-nums; }
img { max-width: 100%; border: 1px solid var(--rule); border-radius: 8px; background: #fff; }
</style>
<h1>$title</h1>
<p>$lead</p>
<table>
$numbers
</table>
$figures
</html>
"""
)


class Figure(NamedTuple):
    """A picture with its title and a sentence about it."""

    title: str
    words: str
    path: Path


def picture_page(
    title: str, lead: str, numbers: Mapping[str, str], figures: Sequence[Figure]
) -> str:
    """Write HTML with the pictures inside it."""
    rows = [f"<tr><td>{escape(k)}</td><td>{escape(v)}</td></tr>" for k, v in numbers.items()]
    return _PAGE.substitute(
        title=escape(title),
        lead=escape(lead),
        numbers="\n".join(rows),
        figures="\n".join(_figure(figure) for figure in figures),
    )


def _figure(figure: Figure) -> str:
    data = base64.b64encode(figure.path.read_bytes()).decode()
    source = f"data:{_TYPES[figure.path.suffix]};base64,{data}"
    title, words = escape(figure.title), escape(figure.words)
    return f'<h2>{title}</h2>\n<p>{words}</p>\n<img alt="{title}" src="{source}">'
