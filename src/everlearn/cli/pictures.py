"""Pictures of runs: the answers of several learners, what DCL matches, and what a stream shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from everlearn.core.files import write_file
from everlearn.evaluation.plan import spread
from everlearn.report.charts.gallery import gallery
from everlearn.runs import Run
from everlearn.runs.launch import load_learner
from everlearn.stream import Batch, Stream, preview, read_stream
from everlearn.stream.preview.page import (
    FAINT,
    GAP,
    LABEL,
    MARGIN,
    SMALL,
    TILE,
    Page,
    text_width,
    tiles,
)

COLORS = ("white", "red", "orange", "yellow", "lime", "cyan", "blue", "purple", "pink")
_IMAGES = 12
_RIGHT = (0, 128, 90)
_WRONG = (200, 60, 20)
_FRAME = 5  # pixels

Pictures = dict[str, tuple[str, bytes]]


def draw_answers(folders: Sequence[Path], out: Path) -> Pictures:
    """Draw one test image of each task and the exemplar of the class that each learner answers."""
    stream = _stream(folders[0])
    batch = _test_images(stream, len(stream))
    learners = [load_learner(folder, "cpu") for folder in folders]
    rows = {Run.open(folder).settings["method"]: learner.predict(batch.images).tolist()
            for folder, learner in zip(folders, learners, strict=True)}  # fmt: skip
    caption = (
        "After the last task: one test image of each task, and the class that each method answers, shown "
        "by its exemplar. A red frame is a wrong answer: the image was forgotten, or never learned."
    )
    picture = _save(_answer_sheet(stream, batch, rows), out / "answers.png")
    return {"What was forgotten": (caption, picture)}


def _answer_sheet(stream: Stream, batch: Batch, answers: dict[str, list[int]]) -> Image.Image:
    """Lay out a column a task: the image, and below it the answers, each in a frame."""
    labels = batch.labels.tolist()
    left = MARGIN + max(text_width(name, LABEL) for name in ("test image", *answers)) + 2 * GAP
    step = TILE + 2 * GAP
    page = Page(left + len(labels) * step + MARGIN, 2 * MARGIN + LABEL + (1 + len(answers)) * step)
    for column in range(len(labels)):
        middle = left + column * step + TILE / 2
        page.text(middle, MARGIN, f"task {column + 1}", SMALL, FAINT, "ma")
    shown = {"test image": tiles(batch.images)}
    shown |= {name: tiles(stream.exemplars(found).images) for name, found in answers.items()}
    for row, (name, images) in enumerate(shown.items()):
        y = MARGIN + LABEL + GAP + row * step
        page.text(left - 2 * GAP, y + TILE / 2, name, LABEL, anchor="rm")
        for column, image in enumerate(images):
            x = left + column * step
            if name in answers:
                right = answers[name][column] == labels[column]
                side = image.width + 2 * _FRAME
                page.box(x - _FRAME, y - _FRAME, side, side, _RIGHT if right else _WRONG)
            page.paste(image, x, y)
    return page.image


def draw_matches(folder: Path, out: Path) -> Pictures:
    """Draw test images of all tasks, the canonical form that a learner finds, and the nearest exemplars."""
    learner: Any = load_learner(folder, "cpu")
    batch = _test_images(_stream(folder), _IMAGES)
    found = learner.match(batch.images, learner.memory, 1).labels[:, 0].tolist()
    canonical = learner.canonicalize(batch.images)
    exemplars = learner.memory.images(found)
    picture = gallery(
        batch.images.numpy(), canonical.numpy(), exemplars.numpy(), batch.labels.tolist(), found
    )
    caption = (
        "Test images of all tasks, after the last was learned. DCL maps an image to its canonical pose "
        "and answers with the class of the nearest exemplar."
    )
    return {"What DCL sees": (caption, write_file(out / "matches.png", picture).read_bytes())}


def draw_stream(folder: Path, out: Path) -> Pictures:
    """Draw shapes, factors and a walk through the stream of a run."""
    stream = _stream(folder)
    colorful = stream.with_changes(canvas=replace(stream.canvas, channels=3, colors=COLORS))
    return {
        "Shapes": (
            "A class is a shape. Each is a function of the seed and its number; they never run out.",
            _save(preview.shape_sheet(stream, 96, 12), out / "shapes.png"),
        ),
        "A task": (
            "Training images of the first task. Every image comes with its class and its factors.",
            _save(preview.factor_sheet(stream[0]), out / "factors.png"),
        ),
        "Factors": (
            "One shape under one factor at a time, from its lowest value to its highest.",
            _save(preview.sweep_sheet(colorful), out / "sweep.png"),
        ),
        "The stream": (
            "New shapes come with every task. The line below holds those seen so far.",
            preview.save_gif(
                preview.stream_animation(stream), out / "stream.gif", 0.3
            ).read_bytes(),
        ),
    }


def _stream(folder: Path) -> Stream:
    stream = read_stream(Run.open(folder).stream)
    if not isinstance(stream, Stream):
        raise ValueError(f"the run in {folder} learned a data set, which has no shapes to draw")
    return stream


def _test_images(stream: Stream, count: int) -> Batch:
    """Return test images of the tasks, evenly spread."""
    per_task = -(-count // len(stream))
    parts = [task.test.batch(spread(len(task.test), per_task)) for task in stream]
    images = torch.cat([part.images for part in parts])[:count]
    labels = torch.cat([part.labels for part in parts])[:count]
    return Batch(images, labels, None, None)


def _save(picture: Image.Image, path: Path) -> bytes:
    return preview.save(picture, path).read_bytes()
