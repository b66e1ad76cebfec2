"""From the options of the command line to a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from everlearn.render.canvas import Canvas
    from everlearn.stream import Stream

Given = Mapping[str, Any]
_FIELDS = {
    "seed": "seed",
    "tasks": "tasks",
    "classes": "classes_per_task",
    "values": "values_per_factor",
    "online": "online",
    "imbalance": "imbalance",
    "orientation-grid": "orientation_grid",
    "first-class": "first_class",
}


def build_stream(given: Given) -> Stream:
    """Build the stream that options describe; an option that is None was not given."""
    from everlearn.stream import Stream

    base = Stream() if given["stream"] is None else read_stream(given["stream"])
    changes = {
        field: given[option] for option, field in _FIELDS.items() if given[option] is not None
    }
    changes["canvas"] = _canvas(base.canvas, given)
    if given["min-distance"] is not None:
        changes["style"] = replace(base.style, min_distance=given["min-distance"])
    if given["split"] is not None:
        changes["split"] = tuple(_number(part) for part in given["split"].split(","))
    if given["test"] is not None:
        changes["test_factors"] = None if given["test"] == "grid" else given["test"]
    if given["scenario"] is not None:
        changes["scenario"] = parse_scenario(given["scenario"])
        longest = getattr(changes["scenario"], "length", None)
        if longest is not None and given["tasks"] is None:
            changes["tasks"] = min(longest, base.tasks or longest)
    return base.with_changes(**changes)


def read_stream(path: Path) -> Stream:
    """Read a stream file, or say what is wrong with it."""
    from everlearn.stream import Stream

    try:
        return Stream.from_json(path.read_bytes().decode())
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is no stream file: {error}") from None


def parse_scenario(text: str) -> Any:
    """Read a scenario: "recurring", or with settings, "recurring:share=0.3"."""
    from everlearn.stream.scenarios import find_scenario

    name, _, rest = text.partition(":")
    pairs = [part.partition("=") for part in rest.split(",")] if rest else []
    if any(not (key and equals) for key, equals, _ in pairs):
        raise ValueError(f"a scenario must read name or name:setting=value,..., found {text!r}")
    return find_scenario(name, {key.strip(): _number(value) for key, _, value in pairs})


def _canvas(canvas: Canvas, given: Given) -> Canvas:
    names = ("size", "channels", "background", "mark", "parity")
    changes = {name: given[name] for name in names if given[name] is not None}
    if given["colors"] is not None:
        changes["colors"] = tuple(color.strip() for color in given["colors"].split(","))
    if given["no-mark"]:
        if given["mark"] is not None:
            raise ValueError("give --mark or --no-mark, not both")
        changes["mark"] = None
    return replace(canvas, **changes)


def _number(text: str) -> int | float | str:
    """A number where the text is one, the text otherwise."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip()
