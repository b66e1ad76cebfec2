"""One HTML page that needs nothing but itself; what comes from files is escaped."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import NamedTuple

from everlearn.disk import write_file
from everlearn.report.figure import shades
from everlearn.report.skeleton import PAGE, SCRIPT, STYLE

_TYPES = {b"\x89PNG\r\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


class Section(NamedTuple):
    """A part of the page.

    Attributes:
        title: text; without one the section has no heading.
        words: text.
        body: HTML, as the functions of this package make it.
        command: what makes it again, to be copied; none where it is empty.
        name: what links lead to; none where it is empty.
    """

    title: str
    words: str
    body: str
    command: str = ""
    name: str = ""


def write_page(path: Path, title: str, sections: Iterable[Section]) -> Path:
    """Write the page."""
    body = "\n".join(_section(section) for section in sections)
    page = PAGE.substitute(
        title=escape(title), shades=shades(), style=STYLE, sections=body, script=SCRIPT
    )
    return write_file(path, page.encode())


def embed_svg(svg: str, caption: str = "") -> str:
    """Put an SVG text into a figure."""
    return _figure(f'<div class="box" tabindex="0">{svg}</div>', caption)


def embed_picture(content: bytes, caption: str) -> str:
    """Put the bytes of a PNG, JPEG or GIF into a figure."""
    kinds = [kind for start, kind in _TYPES.items() if content.startswith(start)]
    if not kinds:
        found = bytes(content[:8])
        raise ValueError(
            f"pictures must be PNG, JPEG or GIF, found bytes that begin with {found!r}"
        )
    data = base64.b64encode(content).decode()
    return _figure(f'<img alt="{escape(caption)}" src="data:{kinds[0]};base64,{data}">', caption)


def command_box(command: str) -> str:
    """Show a command with a button to copy it."""
    return f'<div class="copy"><code>{escape(command)}</code></div>' if command else ""


def _figure(content: str, caption: str) -> str:
    words = f"\n<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure>\n{content}{words}\n</figure>"


def _section(section: Section) -> str:
    mark = f' id="{escape(section.name)}"' if section.name else ""
    parts = [
        f"<h2{mark}>{escape(section.title)}</h2>" if section.title else "",
        f"<p>{escape(section.words)}</p>" if section.words else "",
        section.body,
        command_box(section.command),
    ]
    return "\n".join(part for part in parts if part)
