"""Environments: what is pasted where, against a slow hand; rows and classes that follow from a seed."""

from __future__ import annotations

import json
import pickle
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from everlearn import Canvas, Environments, Plan, build, outlines, render, run, theta
from everlearn.cli.options import STREAM_OPTIONS
from everlearn.cli.stream_options import build_stream
from everlearn.evaluation.conformance import CONFORMANCE
from everlearn.factors import FACTOR_NAMES, canonical_factors
from everlearn.learner import Learner
from everlearn.stream import Batch, Split, Task, read_stream
from everlearn.stream.environments.environment import parse_environment
from everlearn.stream.environments.items import downsample, levels_on
from everlearn.stream.export import export, read
from everlearn.stream.named import named
from everlearn.stream.preview.scenario import describe_stream, scenario_sheet

from ...conftest import needs_data

pytestmark = pytest.mark.integration

Levels = NDArray[np.uint8]
TRAIN, TEST = 40, 20
FARTHEST = {64: 35, 32: 18, 16: 9}
MIDDLE = {64: 18, 32: 9, 16: 4}
MOVING = ("moving-mnist", "mnist", "moving-mnist")
SPRITES = Environments(
    ("moving-sprites", "scaled-turned-sprites", "inverse-moving-sprites-2"),
    size=16,
    train=30,
    test=12,
    shapes=3,
)


class Files(NamedTuple):
    """A folder of tiny data sets, and what is in them: images and labels by (source, is it a test)."""

    folder: Path
    images: dict[tuple[str, bool], Levels]
    labels: dict[tuple[str, bool], Levels]


def write_idx(path: Path, array: Levels) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    header = struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    path.write_bytes(header + array.tobytes())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """MNIST and Fashion-MNIST of noise, 40 images to train on and 20 to test on each."""
    out = Files(tmp_path_factory.mktemp("data"), {}, {})
    draw = np.random.default_rng(0)
    for source, home in (("mnist", "MNIST"), ("fashion-mnist", "FashionMNIST")):
        for test, name, count in ((False, "train", TRAIN), (True, "t10k", TEST)):
            images = draw.integers(0, 256, (count, 28, 28)).astype(np.uint8)
            labels = draw.permutation(np.arange(count) % 10).astype(np.uint8)
            write_idx(out.folder / home / "raw" / f"{name}-images-idx3-ubyte", images)
            write_idx(out.folder / home / "raw" / f"{name}-labels-idx1-ubyte", labels)
            out.images[source, test], out.labels[source, test] = images, labels
    return out


def make(files: Files, *sequence: str, **settings: Any) -> Environments:
    usual = {"train": 100, "test": 12} | settings
    return Environments(sequence, files.folder, **usual)


def everything(split: Split) -> Batch:
    return split.batch(slice(None))


def to_levels(images: torch.Tensor) -> NDArray[np.int64]:
    """Images as levels; they are levels / 255 in every bit."""
    levels = np.rint(255 * images.numpy().astype(np.float64)).astype(np.int64)
    assert np.array_equal(levels.astype(np.float32) / np.float32(255), images.numpy())
    return levels


def same(one: Batch, two: Batch) -> bool:
    pairs = [(one.images, two.images), (one.labels, two.labels)]
    assert one.factors is not None
    assert two.factors is not None
    return all(torch.equal(a, b) for a, b in [*pairs, *zip(one.factors, two.factors, strict=True)])


def shrink(item: Levels, side: int) -> NDArray[np.int64]:
    """Means of squares of pixels, one at a time; a half is rounded up."""
    across = 28 // side
    out = np.zeros((side, side), np.int64)
    for y in range(side):
        for x in range(side):
            cut = item[y * across : (y + 1) * across, x * across : (x + 1) * across]
            out[y, x] = int(np.floor(sum(map(float, cut.flat)) / across**2 + 0.5))
    return out


def paste(item: NDArray[np.int64], left: int, top: int, size: int, inverse: bool) -> Any:
    """The slow hand: one image, pixel by pixel, as levels (1, size, size)."""
    out = np.zeros((1, size, size), np.int64)
    for y, row in enumerate(item):
        for x, level in enumerate(row):
            out[0, top + y, left + x] = level
    return 255 - out if inverse else out


def offsets(batch: Batch, size: int) -> NDArray[np.int64]:
    """How far from the left and the top items are, by the factors; (B, 2) whole numbers."""
    assert batch.factors is not None
    centres = torch.stack((batch.factors.x, batch.factors.y), 1).double().numpy()
    found = centres * size - 28 * size / 64 / 2
    assert np.allclose(found, np.rint(found), atol=1e-4)
    return np.rint(found).astype(np.int64)


def find_items(batch: Batch, items: Levels, size: int, inverse: bool) -> list[int]:
    """The item that each image shows, pasted at the place that its factors tell."""
    found = []
    small = [shrink(item, 28 * size // 64) for item in items]
    places = offsets(batch, size).tolist()
    for image, (left, top) in zip(to_levels(batch.images), places, strict=True):
        alike = [
            n for n, i in enumerate(small) if (paste(i, left, top, size, inverse) == image).all()
        ]
        assert len(alike) == 1
        found += alike
    return found


@pytest.mark.parametrize("size", [16, 32, 64])
@pytest.mark.parametrize("name", ["moving-mnist", "mnist", "inverse-moving-fashion-mnist"])
@pytest.mark.parametrize("split", ["train", "test"])
def test_images_are_items_of_their_split_pasted_where_the_factors_say(
    files: Files, size: int, name: str, split: str
) -> None:
    source, inverse = name.split("moving-")[-1], name.startswith("inverse")
    batch = make(files, name, size=size, train=12)[0].split(split).batch(slice(0, 12))
    assert batch.images.shape == (12, 1, size, size)
    assert batch.images.dtype == torch.float32
    assert batch.theta is None
    items = find_items(batch, files.images[source, split == "test"], size, inverse)
    assert batch.labels.tolist() == files.labels[source, split == "test"][items].tolist()


def test_training_cycles_through_all_items_in_new_orders(files: Files) -> None:
    batch = everything(make(files, "mnist")[0].train)
    items = find_items(batch, files.images["mnist", False], 64, False)
    passes = [items[:40], items[40:80], items[80:]]
    assert sorted(passes[0]) == sorted(passes[1]) == list(range(40))
    assert len(set(passes[2])) == 20
    assert passes[0] != passes[1]
    assert passes[0][:20] != passes[2] != passes[1][:20]


def test_test_items_occur_at_most_once(files: Files) -> None:
    for asked, given in ((5, 5), (20, 20), (1000, 20)):
        batch = everything(make(files, "moving-mnist", test=asked)[0].test)
        items = find_items(batch, files.images["mnist", True], 64, False)
        assert len(set(items)) == len(items) == given


@pytest.mark.parametrize("size", [16, 32, 64])
def test_offsets_are_uniform_whole_numbers(files: Files, size: int) -> None:
    train = make(files, "moving-mnist", size=size, train=20_000)[0].train
    assert train.factors is not None
    places = np.stack((train.factors.x, train.factors.y)) * size - 28 * size / 64 / 2
    count = FARTHEST[size] + 1
    for along in places:
        seen = np.bincount(np.rint(along).astype(np.int64), minlength=count)
        assert len(seen) == count
        # Five standard deviations of a count.
        assert np.abs(seen - 20_000 / count).max() < 5 * np.sqrt(20_000 / count)
    assert abs(np.corrcoef(places)[0, 1]) < 0.04


@pytest.mark.parametrize("size", [16, 32, 64])
def test_items_that_do_not_move_are_centred(files: Files, size: int) -> None:
    task = make(files, "mnist", size=size)[0]
    for split in (task.train, task.test, task.canonical):
        assert (offsets(everything(split), size) == MIDDLE[size]).all()
    if size > 16:  # 7 pixels have no middle of 16
        assert (everything(task.train).factors.x == 0.5).all()  # type: ignore[union-attr]


def test_downsampling_is_a_mean_to_the_nearest_level() -> None:
    image = np.array([[0, 1, 255, 255], [2, 4, 255, 255], [0, 0, 9, 9], [1, 1, 9, 8]], np.uint8)
    # 7/4, 255, 2/4 (a half goes up), 35/4.
    assert downsample(image[None], 2).tolist() == [[[2, 255], [1, 9]]]
    assert downsample(image[None], 4).tolist() == [image.tolist()]
    full = np.full((1, 28, 28), 255, np.uint8)
    assert (downsample(full, 7) == 255).all()


def test_an_inverse_shows_the_test_images_of_its_original_as_one_minus_x(files: Files) -> None:
    data = make(files, "moving-mnist", "inverse-moving-mnist")
    for stream in (
        data,
        SPRITES.with_changes(sequence=("moving-sprites", "inverse-moving-sprites")),
    ):
        plain, inverse = stream
        for name in ("test", "canonical"):
            one, two = (everything(getattr(task, name)) for task in (plain, inverse))
            assert (to_levels(one.images) + to_levels(two.images) == 255).all()
            assert torch.equal(one.labels, two.labels)
        assert not torch.equal(everything(plain.train).images, 1 - everything(inverse.train).images)


def test_exemplars_are_the_first_training_images_of_their_classes_in_the_middle(
    files: Files,
) -> None:
    task = make(files, "mnist", "inverse-moving-fashion-mnist")[1]
    batch, labels = task.exemplars(), files.labels["fashion-mnist", False].tolist()
    assert batch.labels.tolist() == list(task.classes) == list(range(10, 20))
    items = find_items(batch, files.images["fashion-mnist", False], 64, True)
    assert items == [labels.index(label) for label in range(10)]


def test_an_environment_that_comes_back_has_new_training_rows_and_the_same_test_rows(
    files: Files,
) -> None:
    for stream in (
        make(files, *MOVING),
        SPRITES.with_changes(sequence=("moving-sprites", "turned-sprites", "moving-sprites")),
    ):
        first, _, again = stream
        assert same(everything(first.test), everything(again.test))
        assert not same(everything(first.train), everything(again.train))
        assert same(everything(first.canonical), everything(again.canonical))


def test_test_rows_do_not_depend_on_what_else_is_in_the_stream(files: Files) -> None:
    alone, late = make(files, "moving-mnist")[0], make(files, "mnist", "moving-mnist", train=7)[1]
    assert same(everything(alone.test), everything(late.test))


@pytest.mark.parametrize("kind", ["data", "sprites"])
def test_rows_are_a_pure_function_of_the_seed(files: Files, kind: str) -> None:
    stream = make(files, *MOVING) if kind == "data" else SPRITES
    later = stream[2]
    for one, two in zip(stream, stream, strict=True):
        assert same(everything(one.train), everything(two.train))
        assert same(everything(one.test), everything(two.test))
    rows = np.array([29, 3, 0, 17])
    assert same(later.train.batch(rows), stream[-1].train.batch(rows))
    assert torch.equal(later.train.batch([17]).images[0], everything(later.train).images[17])
    fewer = stream.with_changes(train=20)[2].train
    assert same(everything(fewer), later.train.batch(slice(0, 20)))
    other = stream.with_changes(seed=1)[2]
    assert not same(everything(other.train), everything(later.train))


def test_environments_have_no_validation_rows(files: Files) -> None:
    for stream in (make(files, "moving-mnist"), SPRITES):
        assert len(everything(stream[0].val).images) == len(stream[0].val) == 0


def test_classes_belong_to_sources_in_the_order_of_first_appearance(files: Files) -> None:
    stream = make(
        files, "moving-mnist", "fashion-mnist", "moving-sprites-3", "inverse-mnist", shapes=4
    )
    assert [task.classes[0] for task in stream] == [0, 10, 20, 0]
    assert [len(task.classes) for task in stream] == [10, 10, 4, 10]
    assert stream.class_ids == range(24)
    assert stream.with_changes(tasks=2).class_ids == range(20)
    for task in stream:
        assert set(task.train.labels) | set(task.test.labels) <= set(task.classes)


def test_tasks_of_one_source_share_its_items(files: Files) -> None:
    one, two = (task.train.image_source.items for task in make(files, "mnist", "moving-mnist"))  # type: ignore[attr-defined]
    assert levels_on(one, "cpu") is levels_on(two, "cpu")


def test_a_split_can_be_sent_to_another_process(files: Files) -> None:
    train = make(files, "moving-mnist")[0].train
    sent = pickle.dumps(train)
    assert len(sent) < 20_000  # rows, not items
    assert same(everything(pickle.loads(sent)), everything(train))


@pytest.mark.parametrize("number", [0, 1, 2])
def test_sprites_are_drawn_as_the_renderer_draws_them(number: int) -> None:
    task, ids = SPRITES[number], np.arange(3) + (6 if number == 2 else 0)
    curves = outlines(SPRITES.seed, ids)
    canvas = Canvas(16, background="black", colors=("white",), mark=None, dtype="uint8")
    for split in (task.train, task.test):
        batch = everything(split)
        which = batch.labels.numpy() - task.classes[0]
        levels = render(curves, split.factors, canvas, which=which)
        assert (to_levels(batch.images) == (255 - levels if number == 2 else levels)).all()
        assert np.array_equal(split.theta, theta(split.factors))
    levels = render(curves, canonical_factors(3), canvas)
    assert (to_levels(task.exemplars().images) == (255 - levels if number == 2 else levels)).all()


@pytest.mark.parametrize(
    ("name", "ranges"),
    [
        ("moving-sprites", {"x": (0, 1), "y": (0, 1)}),
        ("scaled-turned-sprites", {"scale": (0.5, 1), "orientation": (0, 2 * np.pi)}),
        ("moving-scaled-turned-sprites", {"x": (0, 1), "scale": (0.5, 1)}),
    ],
)
def test_factors_of_sprites_vary_as_the_name_says(name: str, ranges: Any) -> None:
    fixed = {"color": 0, "scale": 0.75, "orientation": 0, "x": 0.5, "y": 0.5}
    train = SPRITES.with_changes(sequence=(name,), train=3000)[0].train
    assert np.bincount(train.labels).tolist() == [1000, 1000, 1000]
    for factor, (low, high) in ranges.items():
        values = (getattr(train.factors, factor) - low) / (high - low)
        assert len(np.unique(values)) == 3000
        seen = np.histogram(values, 10, (0, 1))[0]
        assert np.abs(seen - 300).max() < 5 * np.sqrt(300)
        assert seen.sum() == 3000
    varies = {"x": "moving", "y": "moving", "scale": "scaled", "orientation": "turned"}
    for factor in FACTOR_NAMES:
        if varies.get(factor, "never") not in name:
            assert (getattr(train.factors, factor) == fixed[factor]).all()


def test_train_and_test_sprites_differ() -> None:
    task = SPRITES[0]
    assert task.train.factors is not None
    assert task.test.factors is not None
    assert not set(task.train.factors.x) & set(task.test.factors.x)


def test_json_round_trips_without_the_data_folder(files: Files, tmp_path: Path) -> None:
    stream = make(files, *MOVING, seed=3, tasks=2, size=32, shapes=7, online=True)
    text = stream.to_json()
    assert str(files.folder) not in text
    again = read_stream(text, files.folder)
    assert again == stream == Environments.from_json(text, tmp_path)
    assert hash(again) == hash(Environments.from_json(text))
    assert same(everything(again[1].train), everything(stream[1].train))
    assert again != stream.with_changes(seed=4)
    assert Environments.from_json('{"everlearn_environments": 1}') == Environments()
    with pytest.raises(ValueError, match=r"unknown settings .* of a stream of environments"):
        Environments.from_json('{"everlearn_environments": 1, "data": "/"}')
    with pytest.raises(ValueError, match="update everlearn"):
        Environments.from_json(json.dumps(json.loads(text) | {"everlearn_environments": 2}))


def test_a_stream_has_the_length_of_its_sequence_or_less() -> None:
    assert len(SPRITES) == SPRITES.tasks == 3
    assert len(SPRITES.with_changes(tasks=2)) == 2
    assert len(SPRITES.with_changes(sequence=("moving-sprites",))) == 1
    assert len(SPRITES.with_changes(sequence=("moving-sprites",) * 5, tasks=4)) == 4
    assert SPRITES.canvas.shape == (1, 16, 16)
    assert (SPRITES.canvas.dtype, SPRITES.canvas.bits) == ("float32", 8)
    with pytest.raises(IndexError, match=r"task 3 is not in the stream \(0 .. 2\)"):
        _ = SPRITES[3]


def test_environment_names_are_canonical() -> None:
    names = ("moving-sprites-00", "inverse-moving-sprites-007")
    assert Environments(names).sequence == ("moving-sprites", "inverse-moving-sprites-7")
    codes = {
        parse_environment(f"{words}{source}").code
        for words in ("moving-", "moving-scaled-", "scaled-turned-", "turned-", "scaled-")
        for source in ("sprites", "sprites-1", "sprites-2")
    }
    assert len(codes) == 15


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "kmnist",
            "'kmnist' is not a source; .* sources: mnist, fashion-mnist, sprites, sprites-K",
        ),
        ("moving-inverse-mnist", "'inverse-mnist' is not a source; .* modifiers in this order"),
        ("turned-scaled-sprites", "'scaled-sprites' is not a source; .* modifiers in this order"),
        ("moving-moving-mnist", "'moving-mnist' is not a source"),
        ("moving-", "'' is not a source"),
        ("mnist-0", "'mnist-0' is not a source"),
        ("moving-sprites--1", "'sprites--1' is not a source"),
        ("scaled-mnist", "scaled- and turned- are for sprites"),
        ("moving-turned-fashion-mnist", "scaled- and turned- are for sprites"),
        ("inverse-sprites-2", "the same few images .*; add moving-, scaled- or turned-"),
    ],
)
def test_a_wrong_name_is_refused_with_the_right_ones(name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Environments(("mnist", name))


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        ({"sequence": "mnist"}, TypeError, "sequence must be names"),
        ({"sequence": ()}, ValueError, "length of the sequence"),
        ({"sequence": (3,)}, TypeError, "an environment is a name, found 3"),
        ({"size": 28}, ValueError, "size of environments must be one of 16, 32, 64, found 28"),
        ({"train": 0}, ValueError, "train must lie in 1"),
        ({"test": 0}, ValueError, "test must lie in 1"),
        ({"shapes": 0}, ValueError, "shapes must lie in 1"),
        ({"tasks": 4}, ValueError, r"tasks must lie in 1 \.\. 3"),
        ({"online": 1}, TypeError, "online must be True or False"),
        ({"seed": -1}, ValueError, "seed must lie in"),
    ],
)
def test_a_wrong_setting_is_refused(settings: Any, kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        Environments(**settings)


def test_data_are_read_when_a_task_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Files
) -> None:
    monkeypatch.delenv("EVERLEARN_DATA", raising=False)
    stream = Environments()
    with pytest.raises(FileNotFoundError, match="pass --data FOLDER or set EVERLEARN_DATA"):
        _ = stream[0]
    with pytest.raises(FileNotFoundError, match="Fashion-MNIST is not complete: missing train"):
        _ = stream.with_changes(data=tmp_path)[0]
    monkeypatch.setenv("EVERLEARN_DATA", str(files.folder))
    assert len(stream[0].train) == 60_000


def test_other_images_are_refused(tmp_path: Path) -> None:
    for name, count in (("train", 3), ("t10k", 2)):
        home = tmp_path / "MNIST" / "raw"
        write_idx(home / f"{name}-images-idx3-ubyte", np.zeros((count, 32, 32), np.uint8))
        write_idx(home / f"{name}-labels-idx1-ubyte", np.zeros(count, np.uint8))
    with pytest.raises(ValueError, match=r"grey images of 28 x 28, found \(1, 32, 32\) of mnist"):
        _ = Environments(("mnist",), tmp_path)[0]


def test_an_export_is_read_back_equal(files: Files, tmp_path: Path) -> None:
    stream = make(files, "moving-mnist", "inverse-moving-sprites", train=9, shapes=3)
    export(stream, tmp_path / "out")
    for one, two in zip(stream, read(tmp_path / "out"), strict=True):
        assert same(everything(one.train), everything(two.train))
        assert same(one.exemplars(), two.exemplars())


def learner(stream: Any) -> Learner:
    return build("fine-tuning", stream, "cpu", net="convnet-pooled", batch_size=16, epochs=1)


@pytest.mark.parametrize("check", CONFORMANCE)
def test_a_method_passes_the_conformance_checks_on_environments(check: str) -> None:
    CONFORMANCE[check](learner, SPRITES)


def test_a_run_tests_every_environment_seen() -> None:
    rows = list(run(SPRITES, learner(SPRITES), Plan(within_task=True, all_classes_every=1)))
    tests = [(row["learned"], row["tested"]) for row in rows if row["kind"] == "test"]
    assert tests == [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]
    assert {row["total"] for row in rows if row["kind"] == "test"} == {12}
    whole = [row for row in rows if row["kind"] == "all_classes"]
    assert [(row["total"], row["seen_total"]) for row in whole] == [(24, 12), (24, 12), (24, 24)]


def test_named_sequences_are_those_of_the_paper() -> None:
    assert named("vase-a") == Environments()
    assert named("vase-a").sequence == ("moving-fashion-mnist", "mnist", "moving-mnist")
    assert named("vase-b").sequence == (
        "moving-mnist",
        "fashion-mnist",
        "inverse-fashion-mnist",
        "mnist",
        "moving-fashion-mnist",
    )
    assert [len(named(name).class_ids) for name in ("vase-a", "vase-b", "vase-sprites")] == [20] * 3


def test_options_change_a_named_sequence(files: Files) -> None:
    nothing = dict.fromkeys(STREAM_OPTIONS)
    given = {"stream": Path("vase-a"), "data": files.folder, "seed": 4, "tasks": 2, "size": 16}
    stream = build_stream(nothing | given)
    assert stream == Environments(seed=4, tasks=2, size=16)
    assert stream[1].train.batch([0]).images.shape == (1, 1, 16, 16)
    with pytest.raises(ValueError, match="--classes does not go with environments, which allow: "):
        build_stream(nothing | {"stream": Path("vase-sprites"), "classes": 3})


def test_environments_have_a_sheet() -> None:
    assert describe_stream(SPRITES.with_changes(online=True)).startswith(
        "Every task is an environment; every"
    )
    assert scenario_sheet(SPRITES, tasks=3, images=4).width > 500


def real_task(number: int) -> Task:
    """Make a task of the VASE paper's second sequence on real data, or skip the test."""
    with needs_data() as folder:
        return named("vase-b").with_changes(data=folder, train=300_000)[number]


def test_real_items_are_bright_in_the_middle_and_dark_around() -> None:
    for number, sign in ((1, 1), (2, -1)):
        task = real_task(number)
        assert (len(task.train), len(task.test)) == (300_000, 10_000)
        assert np.bincount(task.train.labels - 10).tolist() == [30_000] * 10
        images = task.train.batch(slice(0, 64)).images
        edge, middle = images[:, :, :18].mean(), images[:, :, 18:46, 18:46].mean()
        assert edge == (0 if sign > 0 else 1)
        assert sign * (middle - edge) > 0.1


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["moving-mnist", "inverse-moving-fashion-mnist"])
def test_items_are_the_same_in_every_bit_on_a_gpu(files: Files, name: str) -> None:
    train = make(files, name)[0].train
    here, there = everything(train).images, train.batch(slice(None), "cuda").images
    assert torch.equal(here, there.cpu())
