"""Redraw every picture of the documentation from seeds: python docs/pictures.py [folder]."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path

from flow import flow

from everlearn import Canvas, Stream
from everlearn.core.files import write_file
from everlearn.factors import Interval, Mixture, Product
from everlearn.stream.preview import (
    factor_sheet,
    save,
    save_gif,
    scenario_sheet,
    shape_sheet,
    stream_animation,
    sweep_sheet,
)
from everlearn.stream.scenarios.blurry import Blurry
from everlearn.stream.scenarios.incremental import DomainIncremental, NewInstancesAndClasses

PICTURES = Path(__file__).parent / "pictures"
COLORS = ("white", "red", "orange", "yellow", "lime", "cyan", "blue", "purple", "pink")
FULL_TURN = 2 * math.pi
LARGE_AND_RIGHT = Product(
    scale=Interval(0.8, 1.01),
    orientation=Interval(0, FULL_TURN),
    x=Interval(0.7, 1.01),
    y=Interval(0, 1.01),
)
GROWING_TO_THE_RIGHT = Mixture(
    components=tuple(
        Product(
            scale=Interval(0.5 + 0.1 * i, 0.6 + 0.1 * i),
            orientation=Interval(0, FULL_TURN),
            x=Interval(0.2 * i, 0.2 * i + 0.2),
            y=Interval(0, 1),
        )
        for i in range(5)
    ),
    weights=(1, 1, 1, 1, 1),
)
SCENARIOS = {
    "class": Stream(tasks=6, classes_per_task=4),
    "task": Stream(tasks=6, classes_per_task=4, scenario="task"),
    "domain": Stream(tasks=6, classes_per_task=8, scenario=DomainIncremental(bands=6)),
    "nic": Stream(tasks=8, scenario=NewInstancesAndClasses(classes=8, sessions=4, first=4)),
    "blurry": Stream(tasks=5, classes_per_task=6, scenario=Blurry(blurred=30)),
    "recurring": Stream(tasks=6, classes_per_task=6, scenario="recurring"),
    "online": Stream(tasks=6, classes_per_task=4, online=True),
    "imbalance": Stream(tasks=6, classes_per_task=8, imbalance=50),
    "correlated": Stream(tasks=4, classes_per_task=4, factors=GROWING_TO_THE_RIGHT),
    "held_out": Stream(tasks=4, classes_per_task=4, held_out=LARGE_AND_RIGHT),
    "continuous": Stream(tasks=4, classes_per_task=4, test_factors="continuous"),
}


def draw_scenario(stream: Stream, path: Path) -> None:
    """Draw all tasks of a small stream; fewer images where a plot of factors is beside them."""
    images = 8 if stream.factors is stream.test_factors is stream.held_out is None else 4
    save(scenario_sheet(stream, len(stream), images), path)


def pictures() -> dict[str, Callable[[Path], object]]:
    """Return the function that draws each file, by name."""
    stream = Stream()
    colorful = stream.with_changes(canvas=Canvas(channels=3, colors=COLORS))
    return {
        "flow.svg": lambda path: write_file(path, flow().encode()),
        "shapes.png": lambda path: save(shape_sheet(stream, 60, 12), path),
        "factors.png": lambda path: save(factor_sheet(stream[0], 16), path),
        "sweep.png": lambda path: save(sweep_sheet(colorful), path),
        "stream.gif": lambda path: save_gif(stream_animation(stream, views=5), path, 0.35),
    } | {
        f"scenario_{name}.png": lambda path, chosen=chosen: draw_scenario(chosen, path)
        for name, chosen in SCENARIOS.items()
    }


def main(out: Path = PICTURES) -> None:
    """Draw all pictures and print their sizes."""
    for name, draw in pictures().items():
        draw(out / name)
        print(f"{name:28}{(out / name).stat().st_size / 1000:6.0f} kB")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
