"""Pictures show what the stream holds, and files are complete or absent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from everlearn import Canvas, Stream
from everlearn.core.files import write_file
from everlearn.factors import Interval, Mixture, Product
from everlearn.stream import Split, Task
from everlearn.stream.preview import (
    factor_sheet,
    save,
    save_gif,
    scenario_sheet,
    shape_sheet,
    stream_animation,
    sweep_sheet,
)
from everlearn.stream.preview.factor_plane import most_telling_axes
from everlearn.stream.preview.page import GAP, MARGIN, PAPER, TITLE, text_width, tile_side, tiles
from everlearn.stream.preview.scenario import DESCRIPTIONS, describe_stream, examples
from everlearn.stream.scenarios.incremental import (
    SCENARIOS,
    DomainIncremental,
    NewInstancesAndClasses,
)

SMALL = Stream(tasks=4, classes_per_task=3, values_per_factor=3, canvas=Canvas(size=32))
TOP = MARGIN + TITLE + 2 * GAP


@dataclass(frozen=True)
class Noise:
    """Images of a data set that has no factors."""

    def loader(self, device):
        return lambda rows: torch.rand(
            (len(rows), 3, 28, 28), generator=torch.Generator().manual_seed(0)
        )


def plain_task() -> Task:
    """A task of images without factors."""
    split = Split(np.repeat([5, 9], 10), Noise())
    canonical = Split(np.array([5, 9]), Noise())
    return Task(0, (5, 9), split, split, split, canonical, seed=0)


@pytest.mark.parametrize(("size", "side"), [(4, 128), (28, 112), (64, 128), (100, 100), (300, 128)])
def test_tiles_are_whole_multiples_or_reduced(size, side):
    assert tile_side(size) == side
    assert tiles(np.zeros((1, 1, size, size), np.uint8))[0].size == (side, side)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_tile_keeps_every_pixel(channels):
    levels = np.random.default_rng(0).integers(0, 256, (1, channels, 64, 64), np.uint8)
    shown = np.asarray(tiles(levels.astype(np.float32) / 255)[0])[::2, ::2]
    assert (shown == np.broadcast_to(levels[0].transpose(1, 2, 0), (64, 64, 3))).all()


def test_the_factor_sheet_shows_the_first_training_images():
    task = SMALL[1]
    sheet = np.asarray(factor_sheet(task, count=4))
    first = np.asarray(tiles(task.train.batch(task.order()[:1]).images)[0])
    assert (sheet[TOP : TOP + 128, MARGIN : MARGIN + 128] == first).all()


def test_a_shape_sheet_shows_every_shape():
    one, twenty = shape_sheet(SMALL, 10, 10), shape_sheet(SMALL, 20, 10)
    assert one.width == twenty.width
    assert twenty.height > one.height
    assert one.getpixel((0, 0)) == PAPER


def test_other_shapes_follow_from_another_seed():
    assert shape_sheet(SMALL, 5) != shape_sheet(SMALL.with_changes(seed=1), 5)
    assert shape_sheet(SMALL, 5) == shape_sheet(SMALL, 5)


def test_a_sweep_has_one_row_per_factor_and_the_colours_of_the_canvas():
    colors = ("white", "red", "blue")
    sheet = sweep_sheet(SMALL.with_changes(canvas=Canvas(32, 3, colors=colors)), steps=5)
    found = {color for _, color in sheet.getcolors(sheet.width * sheet.height)}
    assert {(255, 0, 0), (0, 0, 255)} <= found
    assert sheet.height > 5 * 128


@pytest.mark.parametrize("draw", [shape_sheet, sweep_sheet, stream_animation, scenario_sheet])
@pytest.mark.parametrize("count", [0, -1, 10_000])
def test_counts_that_do_not_fit_are_refused(draw, count):
    with pytest.raises(ValueError, match=rf"shows 1 \.\. \d+ .*, found {count}"):
        draw(
            SMALL,
            **{
                "steps"
                if draw is sweep_sheet
                else "count"
                if draw is shape_sheet
                else "tasks": count
            },
        )


def test_an_animation_shows_every_task_and_ends_with_the_stream():
    frames = stream_animation(SMALL, tasks=9, views=2)
    assert len(frames) == 4 * 2
    assert len({frame.size for frame in frames}) == 1
    assert frames == stream_animation(SMALL, tasks=9, views=2)


def test_an_animation_may_start_at_any_task():
    assert stream_animation(SMALL, 1, 2, start=2) != stream_animation(SMALL, 1, 2, start=0)
    with pytest.raises(ValueError, match="0 or more, found -1"):
        stream_animation(SMALL, start=-1)
    with pytest.raises(IndexError, match="task 4 is not in the stream"):
        stream_animation(SMALL, start=4)


def test_a_gif_loops(tmp_path):
    frames = stream_animation(SMALL, tasks=2, views=2)
    with Image.open(save_gif(frames, tmp_path / "a.gif", 0.5)) as film:
        assert (film.n_frames, film.info["loop"], film.info["duration"]) == (4, 0, 500)
        assert film.convert("RGB").getpixel((0, 0)) == PAPER


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), 100])
def test_frame_durations_out_of_range_are_refused(tmp_path, seconds):
    with pytest.raises(ValueError, match=r"0\.02 \.\. 60"):
        save_gif(stream_animation(SMALL, 1, 1), tmp_path / "a.gif", seconds)
    assert not list(tmp_path.iterdir())


def test_every_scenario_has_a_description_and_a_sheet():
    assert set(DESCRIPTIONS) == set(SCENARIOS)
    for name in SCENARIOS:
        stream = SMALL.with_changes(scenario=name)
        assert scenario_sheet(stream, tasks=3, images=4).width > 500
        assert "{" not in describe_stream(stream)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"online": True}, "every image is seen only once"),
        ({"imbalance": 10.0}, "class sizes differ by a factor of 10"),
        ({"test_factors": "continuous"}, "test images have factors of their own"),
    ],
)
def test_the_description_mentions_settings(changes, words):
    assert words in describe_stream(SMALL.with_changes(**changes))
    assert words not in describe_stream(SMALL)


def test_a_long_description_fits_on_its_page():
    stream = SMALL.with_changes(
        scenario="nic", online=True, imbalance=3.0, test_factors="continuous"
    )
    assert scenario_sheet(stream, 1, 1).width >= text_width(describe_stream(stream), TITLE)


def test_tasks_without_images_can_be_drawn():
    blurry = Stream(tasks=10, classes_per_task=1, values_per_factor=2, scenario="blurry")
    sizes = [len(task.train) for task in blurry]
    assert 0 in sizes, "this stream was chosen for its empty task"
    assert scenario_sheet(blurry, tasks=10).width > 500
    assert len(stream_animation(blurry, tasks=10, views=1)) == 10


def test_examples_represent_classes_in_proportion():
    task = Stream(tasks=1, classes_per_task=2, values_per_factor=3, imbalance=3.0)[0]
    labels, counts = np.unique(task.train.labels, return_counts=True)
    rows = examples(task, 8)
    shown = [int((task.train.labels[rows] == label).sum()) for label in labels]
    assert len(set(rows.tolist())) == 8
    assert sorted(shown) == [2, 6]
    assert (shown[0] > shown[1]) == (counts[0] > counts[1])


def test_examples_of_a_band_are_canonical_in_all_else():
    stream = SMALL.with_changes(scenario=DomainIncremental("orientation", 4))
    factors = stream[2].train.factors.take(examples(stream[2], 3, "orientation"))
    assert (factors.scale == 1).all()
    assert (factors.x == 0.5).all()
    assert (factors.y == 0.5).all()


def test_there_are_no_more_examples_than_images():
    task = Stream(tasks=1, classes_per_task=1, values_per_factor=1, split=(1.0, 0, 0))[0]
    assert examples(task, 8).tolist() == [0]


def box(**ranges: tuple[float, float]) -> Product:
    """A box of factors, all of the range where none is given."""
    whole = {"scale": (0.5, 1.01), "orientation": (0, 7), "x": (0, 1.01), "y": (0, 1.01)}
    return Product(**{name: Interval(*ends) for name, ends in (whole | ranges).items()})


@pytest.mark.parametrize(
    ("changes", "pair"),
    [
        ({"held_out": box(scale=(0.8, 1.01), x=(0.7, 1.01))}, {"scale", "x"}),
        ({"held_out": box(orientation=(4, 7), y=(0.7, 1.01))}, {"orientation", "y"}),
        (
            {
                "factors": Mixture(
                    (box(x=(0, 0.3), y=(0, 0.3)), box(x=(0.6, 1), y=(0.6, 1))), (1, 1)
                )
            },
            {"x", "y"},
        ),
    ],
)
def test_the_plane_shows_the_two_most_telling_factors(changes, pair):
    task = Stream(tasks=1, **changes)[0]
    assert {axis.name for axis in most_telling_axes(task.train.factors, task.test.factors)} == pair


def test_images_without_factors_are_drawn_with_their_class():
    assert factor_sheet(plain_task(), 4).width > 100
    assert examples(plain_task(), 4, "orientation").tolist() == [0, 1, 10, 11]


def test_the_sheet_names_the_band_of_a_nic_task():
    stream = Stream(tasks=4, values_per_factor=3, scenario=NewInstancesAndClasses(4, 2, 2, "scale"))
    assert "another band of scale" in describe_stream(stream)


def test_pictures_are_written_atomically(tmp_path, monkeypatch):
    path = write_file(tmp_path / "new" / "a.txt", b"old")

    def fail(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match=r"cannot write .*a\.txt: No space left"):
        write_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in path.parent.iterdir()] == ["a.txt"]


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="file is not a folder"):
        save(shape_sheet(SMALL, 1), tmp_path / "file" / "a.png")
