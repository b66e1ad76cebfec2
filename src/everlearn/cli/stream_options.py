"""From the options of the command line to a stream: of sprites, of a data set, of environments."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from everlearn.render.canvas import Canvas
    from everlearn.stream import Stream, TaskStream
    from everlearn.stream.datasets import ArrayStream

StreamOptions = Mapping[str, Any]
_BOTH = {
    "seed": "seed",
    "tasks": "tasks",
    "classes": "classes_per_task",
    "online": "online",
    "imbalance": "imbalance",
}
_SPRITES = {
    "values": "values_per_factor",
    "orientation-grid": "orientation_grid",
    "first-class": "first_class",
}
_ARRAYS = {"size": "size", "channels": "channels", "first-classes": "first_classes"}
_POINTS = {name: field for name, field in _BOTH.items() if name != "imbalance"}
_LATENTS = _POINTS | {"scenario": "scenario"}
_ENVIRONMENTS = {name: name for name in ("data", "seed", "tasks", "size", "online")}
_OF_BOTH = {"stream", "name", "data", "scenario", *_BOTH}


def build_stream(options: StreamOptions, default: TaskStream | None = None) -> TaskStream:
    """Build the stream that options describe; an option that is None was not options.

    Args:
        default: the stream that options change when none is named.
    """
    from everlearn.stream import Environments, Gaussians, Latents, Stream

    if options["name"] is not None and options["stream"] is not None:
        raise ValueError("give --name or --stream, not both: the file says which data it is of")
    if options["name"] is not None:
        return _build_arrays(options)
    base: TaskStream = default or Stream()
    if options["stream"] is not None:
        base = read_stream(options["stream"], options["data"])
    if isinstance(base, Gaussians):
        return base.with_changes(**_point_changes(options, _POINTS))
    if isinstance(base, Latents):
        return base.with_changes(**_latent_changes(options))
    if isinstance(base, Environments):
        return base.with_changes(**_environment_changes(options))
    if not isinstance(base, Stream):
        return base.with_changes(**_array_changes(options))
    for name in ("data", "first-classes"):
        if options[name] is not None:
            raise ValueError(f"--{name} goes with a data set: give --name too, or leave it out")
    return base.with_changes(**_sprite_changes(base, options))


def read_stream(path: Path, data: Path | None = None) -> TaskStream:
    """Read a stream file or find a stream by its name, or say what is wrong."""
    from everlearn import stream
    from everlearn.stream.named import STREAMS

    if str(path) in STREAMS:
        return STREAMS[str(path)]
    if not path.exists():
        raise ValueError(f"no stream file {str(path)!r}, nor a name; names: {', '.join(STREAMS)}")
    try:
        return stream.read_stream(path.read_bytes().decode(), data)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is no stream file: {error}") from None


def _build_arrays(options: StreamOptions) -> ArrayStream:
    from everlearn.stream.datasets import ArrayStream

    return ArrayStream(options["name"], options["data"], **_array_changes(options))


def _point_changes(options: StreamOptions, fields: Mapping[str, str]) -> dict[str, Any]:
    wrong = _wrong(options, {"stream", *fields})
    if wrong:
        known = ", ".join(sorted(fields))
        raise ValueError(f"--{wrong[0]} is for images; a stream of points allows: {known}")
    return _chosen(options, fields)


def _environment_changes(options: StreamOptions) -> dict[str, Any]:
    wrong = _wrong(options, {"stream", *_ENVIRONMENTS})
    if wrong:
        known = ", ".join(sorted(_ENVIRONMENTS))
        raise ValueError(f"--{wrong[0]} does not go with environments, which allow: {known}")
    return _chosen(options, _ENVIRONMENTS)


def _wrong(options: StreamOptions, allowed: Collection[str]) -> list[str]:
    """Options that were options and are not allowed."""
    return [name for name, value in options.items() if value is not None and name not in allowed]


def _latent_changes(options: StreamOptions) -> dict[str, Any]:
    changes = _point_changes(options, _LATENTS)
    # How many tasks show everything depends on both.
    anew = changes.keys() & {"scenario", "classes_per_task"}
    return {"tasks": None, **changes} if anew else changes


def _array_changes(options: StreamOptions) -> dict[str, Any]:
    allowed = _OF_BOTH | set(_ARRAYS)
    wrong = _wrong(options, allowed)
    if wrong:
        raise ValueError(
            f"--{wrong[0]} is for shapes; a data set allows: {', '.join(sorted(allowed))}"
        )
    changes = _chosen(options, _BOTH | _ARRAYS)
    if options["scenario"] is not None:
        plain = ":" not in options["scenario"]
        changes["scenario"] = options["scenario"] if plain else parse_scenario(options["scenario"])
    return changes


def _sprite_changes(base: Stream, options: StreamOptions) -> dict[str, Any]:
    changes = _chosen(options, _BOTH | _SPRITES) | {"canvas": _canvas(base.canvas, options)}
    if options["min-distance"] is not None:
        changes["style"] = replace(base.style, min_distance=options["min-distance"])
    if options["split"] is not None:
        changes["split"] = tuple(_number(part) for part in options["split"].split(","))
    if options["test"] is not None:
        changes["test_factors"] = None if options["test"] == "grid" else options["test"]
    if options["scenario"] is not None:
        changes["scenario"] = parse_scenario(options["scenario"])
        longest = getattr(changes["scenario"], "length", None)
        if longest is not None and options["tasks"] is None:
            changes["tasks"] = min(longest, base.tasks or longest)
    return changes


def _chosen(options: StreamOptions, fields: Mapping[str, str]) -> dict[str, Any]:
    return {field: options[name] for name, field in fields.items() if options[name] is not None}


def parse_scenario(text: str) -> Any:
    """Read a scenario: "recurring", or with settings, "recurring:share=0.3"."""
    from everlearn.stream.scenarios.incremental import find_scenario

    name, _, rest = text.partition(":")
    pairs = [part.partition("=") for part in rest.split(",")] if rest else []
    if any(not (key and equals) for key, equals, _ in pairs):
        raise ValueError(f"a scenario must read name or name:setting=value,..., found {text!r}")
    return find_scenario(name, {key.strip(): _number(value) for key, _, value in pairs})


def _canvas(canvas: Canvas, options: StreamOptions) -> Canvas:
    names = ("size", "channels", "background", "mark", "parity")
    changes = {name: options[name] for name in names if options[name] is not None}
    if options["colors"] is not None:
        changes["colors"] = tuple(color.strip() for color in options["colors"].split(","))
    if options["no-mark"]:
        if options["mark"] is not None:
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
