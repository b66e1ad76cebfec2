"""Pictures of a run: what its learner saw and matched, and what its stream is made of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from everlearn import sheets
from everlearn.disk import write_file
from everlearn.exam.plan import spread
from everlearn.report import gallery
from everlearn.results import Run
from everlearn.runs import load_learner
from everlearn.stream import Batch, Stream, read_stream

COLORS = ("white", "red", "orange", "yellow", "lime", "cyan", "blue", "purple", "pink")
_SHOWN = 12

Pictures = dict[str, tuple[str, bytes]]


def draw_matches(folder: Path, out: Path) -> Pictures:
    """Draw test images of all tasks, normalised by the learner of a run, and the exemplars found."""
    learner: Any = load_learner(folder, "cpu")
    shown = _some_images(_stream(folder))
    found = learner.match(shown.images, learner.memory, 1).labels[:, 0].tolist()
    seen, exemplars = learner.normalise(shown.images), learner.memory.images(found)
    labels = shown.labels.tolist()
    picture = gallery(shown.images.numpy(), seen.numpy(), exemplars.numpy(), labels, found)
    words = (
        "Test images of all tasks, after the last was learned. DCL brings an image to canonical form "
        "and names the class of the exemplar that it finds."
    )
    return {"What DCL sees": (words, write_file(out / "matches.png", picture).read_bytes())}


def draw_stream(folder: Path, out: Path) -> Pictures:
    """Draw shapes, factors and a walk through the stream of a run."""
    stream = _stream(folder)
    colorful = stream.with_changes(canvas=replace(stream.canvas, channels=3, colors=COLORS))
    return {
        "Shapes": (
            "A class is a shape. Each follows from the seed and its number; they never run out.",
            _save(sheets.shape_sheet(stream, 96, 12), out / "shapes.png"),
        ),
        "A task": (
            "Training images of the first task. Every image comes with its class and its factors.",
            _save(sheets.factor_sheet(stream[0]), out / "factors.png"),
        ),
        "Factors": (
            "One shape under one factor at a time, from its lowest value to its highest.",
            _save(sheets.sweep_sheet(colorful), out / "sweep.png"),
        ),
        "The stream": (
            "New shapes come with every task. The line below holds those met so far.",
            sheets.save_film(sheets.stream_film(stream), out / "stream.gif", 0.3).read_bytes(),
        ),
    }


def _stream(folder: Path) -> Stream:
    stream = read_stream(Run.open(folder).stream)
    if not isinstance(stream, Stream):
        raise ValueError(f"the run in {folder} learned a data set, which has no shapes to draw")
    return stream


def _some_images(stream: Stream) -> Batch:
    """Test images of the tasks, evenly spread."""
    a_task = -(-_SHOWN // len(stream))
    parts = [task.test.batch(spread(len(task.test), a_task)) for task in stream]
    images = torch.cat([part.images for part in parts])[:_SHOWN]
    labels = torch.cat([part.labels for part in parts])[:_SHOWN]
    return Batch(images, labels, None, None)


def _save(picture: Image.Image, path: Path) -> bytes:
    return sheets.save(picture, path).read_bytes()
