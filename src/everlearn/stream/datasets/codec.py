"""An ArrayStream as JSON and back. The data folder is left out: it differs between machines."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from everlearn.stream.codec import decode, encode
from everlearn.stream.datasets.sources.nicv2 import NAMES, FileLists
from everlearn.stream.scenarios.incremental import find_scenario

if TYPE_CHECKING:
    from everlearn.stream.datasets.stream import ArrayStream

KEY = "everlearn_arrays"


def encode_stream(stream: ArrayStream) -> str:
    """Write a stream as JSON."""
    settings = {item.name: getattr(stream, item.name) for item in fields(stream) if item.compare}
    settings["scenario"] = {"name": stream.scenario.name, **asdict(stream.scenario)}
    return encode(KEY, settings)


def decode_stream(text: str, allowed: set[str]) -> dict[str, Any]:
    """Read the settings of a stream from JSON, or say what is wrong with it."""
    settings = decode(text, KEY, allowed, "an array stream")
    if "name" not in settings:
        raise ValueError("a file of an array stream must have the name of a data set")
    if "scenario" in settings:
        settings["scenario"] = _decode_scenario(settings["scenario"])
    return settings


def _decode_scenario(value: Any) -> Any:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise ValueError(f"scenario must be a JSON object with a name, found {value!r}")
    settings = {key: item for key, item in value.items() if key != "name"}
    if value["name"] not in NAMES:
        return find_scenario(value["name"], settings)
    if set(settings) - {"tasks", "run"}:
        raise ValueError(
            f"scenario {value['name']!r} allows tasks and run, found {sorted(settings)}"
        )
    lists = FileLists(**settings)
    if lists.name != value["name"]:
        raise ValueError(f"scenario {value['name']!r} has {lists.tasks} tasks; the two must agree")
    return lists
