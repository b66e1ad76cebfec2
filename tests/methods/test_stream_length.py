"""What a learner does in its first tasks does not depend on how many follow: the same rows, bit for bit."""

from __future__ import annotations

from typing import Any

import pytest

from everlearn import Canvas, Stream
from everlearn.evaluate import run
from everlearn.evaluation import Plan
from everlearn.methods import METHODS, build
from everlearn.runs.presets import PRESETS
from everlearn.stream import Gaussians, TaskStream

# Times differ from run to run; bytes and parameters are those of a head for all classes.
COSTS = {"seconds", "evaluation_seconds", "host_memory", "memory", "peak_memory"}
COSTS |= {"bytes", "parameters"}
# `include_unseen` asks for a softmax over all classes of the stream: it depends on their number.
SMALL = {"batch_size": 32, "epochs": 2, "buffer_size": 40, "include_unseen": False}
# Of single methods, for speed.
OF_METHOD = {
    "bir": {"hidden_units": 64},
    "dcl-plus": {"fit_candidates": 2},
    "l2p": {"weights": "random"},
    "l2p-lite": {"weights": "random"},
    "vase": {"net": "vase-flat"},
    "cci-vae": {"net": "vase-flat"},
    "beta-vae": {"net": "vase-flat"},
}


def first_rows(
    name: str, tasks: int, length: int, classes: int = 2, train: int = 30, images: bool = False
) -> list[Any]:
    """Learn the first tasks of a stream of `length` tasks; return all rows, without costs."""
    images |= METHODS[name].needs_images
    preset = PRESETS["pictures" if images else "toy"]._replace(overrides=SMALL)
    stream: TaskStream = Gaussians(tasks=length, classes_per_task=classes, train=train)
    if images:
        canvas = Canvas(size=16 if name.startswith("dcl") else 32)
        stream = Stream(tasks=length, classes_per_task=2, values_per_factor=3, canvas=canvas)
    settings = preset.settings_of(name) | OF_METHOD.get(name, {})
    learner = build(name, stream, "cpu", **settings)
    rows: Any = run(stream, learner, Plan(every=tasks // 3, within_task=True), tasks)
    # DCL is also tested on a task that is never learned: the one after the last.
    kept = (row for row in rows if row.get("tested", 0) < tasks)
    return [{key: value for key, value in row.items() if key not in COSTS} for row in kept]


@pytest.mark.integration
@pytest.mark.parametrize("name", METHODS)
def test_three_tasks_are_the_same_with_three_more_to_come(name: str) -> None:
    short, long = (first_rows(name, 3, length, classes=4, train=60) for length in (3, 6))
    assert short == long


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_twenty_tasks_are_the_same_with_thousands_to_come(name: str) -> None:
    short, long = (first_rows(name, 20, length) for length in (20, 2000))
    assert short == long


@pytest.mark.slow
@pytest.mark.parametrize("name", ["er", "lwf", "gnr"])
def test_the_same_holds_for_images_and_adam(name: str) -> None:
    short, long = (first_rows(name, 3, length, images=True) for length in (3, 40))
    assert short == long
