"""One self-contained HTML page, rendered from the Jinja2 templates in `templates/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from everlearn.core.files import write_file
from everlearn.report.charts.figure import theme_css

if TYPE_CHECKING:
    from jinja2 import Environment


class Section(NamedTuple):
    """A section of the page.

    Attributes:
        anchor: id that links lead to; unique on the page.
        text: a paragraph below the title.
        html: trusted HTML, made by `render`.
        command: command line that reproduces the section, with a button to copy it.
        group: heading of the section's entry in the contents.
    """

    title: str
    anchor: str
    text: str = ""
    html: str = ""
    command: str = ""
    group: str = ""


class Finding(NamedTuple):
    """A result in plain words, with its number shown large."""

    number: str
    text: str


class Lead(NamedTuple):
    """What the page opens with: one large figure, drawn for wide and for narrow screens."""

    wide: str
    narrow: str
    caption: str
    findings: Sequence[Finding] = ()


class Page(NamedTuple):
    """A page: its title, the introduction, the opening figure, the sections."""

    title: str
    intro: str
    command: str
    lead: Lead | None
    sections: Sequence[Section]


def write_page(path: Path, page: Page) -> Path:
    """Write the page to a file."""
    html = render("page.html.jinja", {"page": page, "theme": theme_css()})
    return write_file(path, html.encode())


def render(template: str, values: Mapping[str, object]) -> str:
    """Render a template; all values are escaped unless the template marks them as safe."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise ImportError(
            "pages need jinja2, which is missing; run: pip install 'everlearn[plot]'"
        ) from None
    return Environment(
        loader=PackageLoader("everlearn.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
