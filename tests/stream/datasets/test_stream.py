"""Streams over real images: on tiny files made here, and on real ones where they are at hand."""

from __future__ import annotations

import json
import struct
import zipfile
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.utils.data import DataLoader

from everlearn import ArrayStream, Canvas
from everlearn.stream.datasets.images import DatasetImages
from everlearn.stream.datasets.sources.nicv2 import FileLists
from everlearn.stream.scenarios.blurry import Blurry
from everlearn.stream.scenarios.incremental import (
    DomainIncremental,
    NewInstancesAndClasses,
    Recurring,
)
from everlearn.stream.task import Task
from everlearn.stream.torch_datasets import BatchDataset

from ...conftest import needs_data
from ..conftest import class_sets, is_nc, is_ni, is_nic

pytestmark = pytest.mark.integration

SIZES = (12, 9, 15, 10, 11, 14, 8, 13, 10, 7)  # training images of each class
TRAIN_SESSIONS = (1, 2, 4, 5)


def real_stream(name: str, **settings: Any) -> ArrayStream:
    with needs_data() as folder:
        return ArrayStream(name, folder, **settings)


def write_idx(path: Path, array: NDArray[np.uint8]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    header = struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    path.write_bytes(header + array.tobytes())


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MNIST with unequal classes; a training image's first pixel is its row, a test image's 200."""
    folder = tmp_path_factory.mktemp("digits")
    labels = np.random.default_rng(1).permutation(np.repeat(np.arange(10), SIZES)).astype(np.uint8)
    images = np.random.default_rng(0).integers(0, 256, (len(labels), 28, 28)).astype(np.uint8)
    images[:, 0, 0] = np.arange(len(labels))
    tests = np.full((20, 28, 28), 200, np.uint8)
    place = folder / "MNIST" / "raw"
    write_idx(place / "train-images-idx3-ubyte", images)
    write_idx(place / "train-labels-idx1-ubyte", labels)
    write_idx(place / "t10k-images-idx3-ubyte", tests)
    write_idx(place / "t10k-labels-idx1-ubyte", (np.arange(20) % 10).astype(np.uint8))
    return folder


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CORe50 of 12 objects in sessions 1 to 5, two frames each; colours are session and object."""
    folder = tmp_path_factory.mktemp("objects")
    (folder / "core50").mkdir()
    with zipfile.ZipFile(folder / "core50" / "core50_128x128.zip", "w") as out:
        for s, o, frame in np.ndindex(5, 12, 2):
            data = BytesIO()
            Image.new("RGB", (128, 128), (s + 1, o, frame)).save(data, "PNG")
            name = f"core50_128x128/s{s + 1}/o{o + 1}/C_{s + 1:02d}_{o + 1:02d}_{frame:03d}.png"
            out.writestr(name, data.getvalue())
    return folder


def raw(folder: Path, **settings: Any) -> ArrayStream:
    """A stream of the tiny digits as bytes."""
    return ArrayStream("mnist", folder, dtype="uint8", **settings)


def rows_of(task: Task, *splits: str) -> list[int]:
    """The training rows that the first pixels of a task's digits tell."""
    found = [task.split(name).batch(slice(None)).images[:, 0, 0, 0] for name in splits]
    return torch.cat(found).tolist()


def colors_of(task: Task, split: str = "train") -> NDArray[np.uint8]:
    """Session, class and frame (N, 3) that the colours of a task's objects tell."""
    images = task.split(split).batch(slice(None)).images
    return images[:, :, 64, 64].numpy()


def same(a: Task, b: Task) -> bool:
    """Whether two tasks are equal in every byte."""
    if a.classes != b.classes or a.order(1).tolist() != b.order(1).tolist():
        return False
    pairs = [(a.exemplars(), b.exemplars())]
    for name in ("train", "val", "test"):
        pairs.append((a.split(name).batch(slice(None)), b.split(name).batch(slice(None))))
    return all(
        torch.equal(one.images, two.images) and torch.equal(one.labels, two.labels)
        for one, two in pairs
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("each", [1, 2, 3, 4, 10])
def test_class_incremental_shows_every_class_in_one_task(
    digits: Path, seed: int, each: int
) -> None:
    stream = raw(digits, seed=seed, classes_per_task=each)
    sets = class_sets(stream)
    assert len(stream) == -(-10 // each)
    assert is_nc(sets)
    assert set().union(*sets) == set(range(10))
    assert [tuple(sorted(s)) for s in sets] == [tuple(sorted(t.classes)) for t in stream]


def test_train_and_val_are_the_official_training_images(digits: Path) -> None:
    stream = raw(digits)
    rows = [row for task in stream for row in rows_of(task, "train", "val")]
    assert sorted(rows) == list(range(sum(SIZES)))
    assert sum(len(task.val) for task in stream) == sum(round(0.1 * size) for size in SIZES)


def test_labels_are_those_of_the_images(digits: Path) -> None:
    labels = np.random.default_rng(1).permutation(np.repeat(np.arange(10), SIZES))
    for task in raw(digits):
        batch = task.train.batch(slice(None))
        assert np.array_equal(batch.labels, labels[batch.images[:, 0, 0, 0].numpy()])


def test_tests_are_the_official_images_of_the_tasks_classes(digits: Path) -> None:
    for task in raw(digits):
        test = task.test.batch(slice(None))
        assert sorted(test.labels.tolist()) == sorted(2 * list(task.classes))
        assert (test.images == 200).all()


def test_the_validation_split_may_be_empty(digits: Path) -> None:
    assert sum(len(task.train) for task in raw(digits, val_share=0.0)) == sum(SIZES)


def test_exemplars_are_the_first_training_images(digits: Path) -> None:
    task = raw(digits, scenario="nc")[1]
    exemplars = task.exemplars()
    assert exemplars.labels.tolist() == list(task.classes)
    batch = task.train.batch(slice(None))
    for image, label in zip(exemplars.images, exemplars.labels, strict=True):
        assert image[0, 0, 0] == batch.images[batch.labels == label][:, 0, 0, 0].min()


def test_class_order_is_random_by_seed_or_natural(digits: Path) -> None:
    orders = [[c for t in raw(digits, seed=seed) for c in t.classes] for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    natural = raw(digits, class_order="natural")
    assert [task.classes for task in natural] == [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]


def test_the_first_task_may_have_more_classes(digits: Path) -> None:
    sets = class_sets(raw(digits, first_classes=4, classes_per_task=3))
    assert [len(s) for s in sets] == [4, 3, 3]
    assert is_nc(sets)


def test_only_task_incremental_gives_the_task_id(digits: Path) -> None:
    assert raw(digits, scenario="task")[0].task_id_given
    assert not raw(digits)[0].task_id_given


def test_recurring_brings_old_classes_beside_new_ones(digits: Path) -> None:
    sets = class_sets(raw(digits, scenario="recurring", classes_per_task=4))
    seen: set[int] = set()
    for s in sets:
        assert len(s - seen) == (4 if not seen else 2)
        seen |= s
    assert seen == set(range(10))


@pytest.mark.parametrize("seed", range(20))
def test_blurry_conserves_samples_of_unequal_classes(digits: Path, seed: int) -> None:
    stream = raw(digits, seed=seed, scenario="blurry", val_share=0.0)
    rows = [row for task in stream for row in rows_of(task, "train")]
    assert sorted(rows) == list(range(sum(SIZES)))


@pytest.mark.parametrize("seed", range(10))
def test_blurry_keeps_disjoint_classes_in_one_task(digits: Path, seed: int) -> None:
    stream = raw(digits, seed=seed, scenario=Blurry(disjoint=50, blurred=100))
    sets = class_sets(stream)
    alone = [c for c in range(10) if sum(c in s for s in sets) == 1]
    assert len(alone) >= 5
    assert is_nc(class_sets(raw(digits, seed=seed, scenario=Blurry(disjoint=100, blurred=10))))


def test_an_empty_blurry_task_is_a_task(digits: Path) -> None:
    stream = raw(digits, scenario="blurry", classes_per_task=1, size=32, channels=3)
    empty = next(task for task in stream if not task.classes)
    assert empty.exemplars().images.shape == (0, 3, 32, 32)
    assert empty.train.batch(slice(None)).images.shape == (0, 3, 32, 32)


def test_imbalance_shrinks_classes_geometrically(digits: Path) -> None:
    for task in raw(digits, imbalance=4, tasks=3, classes_per_task=3, val_share=0.0):
        _, counts = np.unique(task.train.labels, return_counts=True)
        shares = np.sort(counts / np.array([SIZES[c] for c in sorted(task.classes)]))
        assert shares == pytest.approx([0.25, 0.5, 1.0], abs=0.08)


@pytest.mark.parametrize("scenario", ["class", "blurry", "recurring"])
def test_two_passes_agree_in_every_byte(digits: Path, scenario: str) -> None:
    stream, again = (raw(digits, seed=3, scenario=scenario) for _ in range(2))
    assert all(same(a, b) for a, b in zip(stream, again, strict=True))
    assert same(stream[len(stream) - 1], stream[-1])


def test_another_seed_gives_another_split(digits: Path) -> None:
    val = [
        {row for task in raw(digits, seed=seed) for row in rows_of(task, "val")} for seed in (0, 1)
    ]
    assert val[0] != val[1]


@pytest.mark.parametrize("size", [20, 28, 40])
def test_an_image_does_not_depend_on_its_batch(digits: Path, size: int) -> None:
    split = ArrayStream("mnist", digits, size=size, channels=3)[0].train
    whole = split.batch(slice(None)).images
    assert whole.shape[1:] == (3, size, size)
    assert torch.equal(split.batch([7, 2, 7]).images, whole[[7, 2, 7]])
    assert torch.equal(split.batch([5]).images, whole[5:6])


def test_resizing_keeps_a_flat_image_flat(objects: Path) -> None:
    settings = {"size": 50, "dtype": "uint8"}
    stream = ArrayStream("core50", objects, scenario="class", **settings)  # type: ignore[arg-type]
    images = stream[0].train.batch(slice(None)).images
    assert (images == images[:, :, :1, :1]).all()


def test_floats_are_bytes_by_255_and_grey_is_the_mean(objects: Path) -> None:
    colors = ArrayStream("core50", objects, dtype="uint8")[0].train.batch([0]).images
    floats = ArrayStream("core50", objects)[0].train.batch([0]).images
    grey = ArrayStream("core50", objects, channels=1, dtype="uint8")[0].train.batch([0]).images
    assert torch.equal(floats, colors.float() / 255)
    assert grey.shape == (1, 1, 128, 128)
    assert grey[0, 0, 0, 0] == round(float(colors[0, :, 0, 0].float().mean()))


def test_domain_shows_all_classes_in_one_session_each(objects: Path) -> None:
    stream = ArrayStream("core50", objects, scenario="ni", dtype="uint8")
    assert is_ni(class_sets(stream))
    assert [set(colors_of(task)[:, 0].tolist()) for task in stream] == [{1}, {2}, {4}, {5}]
    assert all(len(task.classes) == 12 for task in stream)
    assert all(set(colors_of(task, "test")[:, 0].tolist()) == {3} for task in stream)


@pytest.mark.parametrize("seed", range(5))
def test_nic_repeats_classes_in_new_sessions(objects: Path, seed: int) -> None:
    stream = ArrayStream("core50", objects, seed=seed, scenario="nic", val_share=0, dtype="uint8")
    sets = class_sets(stream)
    assert len(stream) == 1 + 12 * 4 - 10
    assert [len(s) for s in sets] == [10] + [1] * 38
    assert is_nic(sets)
    shown = [tuple(row) for task in stream for row in colors_of(task).tolist()]
    assert sorted(shown) == [(s, o, f) for s in TRAIN_SESSIONS for o in range(12) for f in range(2)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("val", [0.0, 0.4])
def test_nic_assigns_images_without_sessions_to_some(digits: Path, seed: int, val: float) -> None:
    stream = raw(digits, seed=seed, scenario=NewInstancesAndClasses(10, 4, 3), val_share=val)
    sets = class_sets(stream)
    assert [len(s) for s in sets] == [3] + [1] * 37
    assert is_nic(sets)
    held = {row for task in stream for row in rows_of(task, "val")}
    shown = [row for task in stream for row in rows_of(task, "train")]
    assert sorted([*shown, *held]) == list(range(sum(SIZES)))
    assert all((task.test.batch(slice(None)).images == 200).all() for task in stream)


def test_assigned_sessions_have_equal_sizes_and_depend_on_the_seed(digits: Path) -> None:
    stream = raw(digits, scenario=NewInstancesAndClasses(10, 4, 9), val_share=0.0)
    parts: dict[int, list[int]] = {label: [] for label in range(10)}
    for task in stream:
        for label in task.classes:
            parts[label].append(int((task.train.labels == label).sum()))
    for label, sizes in parts.items():
        assert sorted(sizes) == sorted(len(range(i, SIZES[label], 4)) for i in range(4))
    others = [rows_of(task, "train") for task in stream.with_changes(seed=1)]
    assert sorted(others) != sorted(rows_of(task, "train") for task in stream)


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Omniglot of 6 characters by 10 drawers; dark pixels tell the character and the drawer."""
    folder = tmp_path_factory.mktemp("letters")
    for place, (name, first) in enumerate((("images_background", 0), ("images_evaluation", 4))):
        path = folder / "omniglot-py" / f"{name}.zip"
        path.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(path, "w") as out:
            for letter, drawer in np.ndindex(4 - 2 * place, 10):
                image, data = np.full((105, 105), 255, np.uint8), BytesIO()
                image[0, first + letter] = image[1, drawer + 1] = 0
                Image.fromarray(image).save(data, "PNG")
                file = f"{name}/Greek/character{letter:02d}/{letter:04d}_{drawer + 1:02d}.png"
                out.writestr(file, data.getvalue())
    return folder


def drawers_of(task: Task, split: str) -> list[tuple[int, int]]:
    """Character and drawer that the dark pixels of a task's letters tell."""
    images = task.split(split).batch(slice(None)).images[:, 0]
    return list(zip(images[:, 0].argmin(1).tolist(), images[:, 1].argmin(1).tolist(), strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_omniglot_sessions_are_people_and_some_are_only_tested(letters: Path, seed: int) -> None:
    stream = ArrayStream("omniglot", letters, seed=seed, scenario="nic", dtype="uint8")
    assert is_nic(class_sets(stream))
    assert len(stream) == 1 + 6 * 8 - 5
    shown = [pair for task in stream for pair in drawers_of(task, "train")]
    tested = {drawer for task in stream for _, drawer in drawers_of(task, "test")}
    assert len(tested) == 2
    kept = [drawer for drawer in range(1, 11) if drawer not in tested]
    assert sorted(shown) == [(c, drawer) for c in range(6) for drawer in kept]
    for task in stream:
        wanted = [(c, drawer) for c in task.classes for drawer in tested]
        assert sorted(drawers_of(task, "test")) == sorted(wanted)
    assert ArrayStream.from_json(stream.to_json(), letters) == stream


def test_omniglot_is_split_by_fractions_in_other_scenarios(letters: Path) -> None:
    stream = ArrayStream("omniglot", letters, classes_per_task=3, dtype="uint8")
    tests = [pair for task in stream for pair in drawers_of(task, "test")]
    assert len(tests) == 6 * 2
    assert len({drawer for _, drawer in tests}) > 2


@pytest.mark.parametrize("seed", range(3))
def test_every_object_keeps_a_training_frame_in_every_session(objects: Path, seed: int) -> None:
    stream = ArrayStream("core50", objects, seed=seed, scenario="nic", val_share=0.5)
    assert min(len(task.train) for task in stream) > 0
    assert sum(len(task.val) for task in stream) == 12 * 4


def test_classes_of_objects_are_disjoint_in_nc(objects: Path) -> None:
    stream = ArrayStream("core50", objects, first_classes=6, classes_per_task=2)
    assert [len(s) for s in class_sets(stream)] == [6, 2, 2, 2]
    assert is_nc(class_sets(stream))


def test_workers_read_the_same_frames_from_a_zip(objects: Path) -> None:
    stream = ArrayStream("core50", objects, dtype="uint8")
    alone = list(BatchDataset(stream, 7))
    together = list(DataLoader(BatchDataset(stream, 7), batch_size=None, num_workers=2))
    assert len(alone) == len(together)
    assert all(torch.equal(a.images, b.images) for a, b in zip(alone, together, strict=True))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"scenario": "blurry", "seed": 2**63, "size": 32},
        {"scenario": Recurring(0.25), "tasks": 2, "classes_per_task": 4, "online": True},
        {"class_order": "natural", "val_share": 0, "imbalance": 3.0, "channels": 3},
    ],
)
def test_a_stream_is_equal_after_json_on_any_folder(
    digits: Path, tmp_path: Path, settings: dict[str, Any]
) -> None:
    stream = raw(digits, **settings)
    (tmp_path / "MNIST").symlink_to(digits / "MNIST")
    again = ArrayStream.from_json(stream.to_json(), tmp_path)
    assert again == stream
    assert hash(again) == hash(stream)
    assert again.folder != stream.folder
    assert str(digits) not in stream.to_json()
    assert same(again[0], stream[0])


def test_a_stream_is_refused_on_data_of_another_size(digits: Path) -> None:
    text = raw(digits).to_json().replace(f'"rows": {sum(SIZES) + 20}', '"rows": 70000')
    with pytest.raises(ValueError, match=r"made of 70000 images, but mnist in .* has 129"):
        ArrayStream.from_json(text, digits)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"everlearn_arrays": 2}, "everlearn_arrays 2; this version of everlearn reads up to 1"),
        ({"color": 1}, r"unknown settings \['color'\]"),
        ({"scenario": "class"}, "scenario must be a JSON object with a name"),
        ({"scenario": {"name": "nicv2-79", "tasks": 391}}, "the two must agree"),
        ({"scenario": {"name": "nicv2-79", "color": 1}}, "allows tasks and run"),
        ({"data": "elsewhere"}, r"unknown settings \['data'\]"),
    ],
)
def test_malformed_stream_files_are_refused(
    digits: Path, change: dict[str, Any], message: str
) -> None:
    text = json.dumps(json.loads(raw(digits).to_json()) | change)
    with pytest.raises(ValueError, match=message):
        ArrayStream.from_json(text, digits)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"everlearn_stream": 1}', '{"a'])
def test_text_that_is_not_a_stream_file_is_refused(digits: Path, text: str) -> None:
    with pytest.raises(ValueError, match="stream"):
        ArrayStream.from_json(text, digits)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scenario": "cl"}, r"unknown scenario 'cl'; known: class, .*nicv2-391"),
        ({"scenario": "nicv2-80"}, r"unknown scenario 'nicv2-80'"),
        ({"scenario": "nicv2-79"}, r"is made of CORe50, found data set 'mnist'"),
        ({"scenario": "domain"}, r"needs sessions or factors, and mnist has neither"),
        ({"scenario": "nic"}, r"into 8 sessions, but class 9 has 7; ask for fewer"),
        ({"scenario": NewInstancesAndClasses(11, 7, 2)}, r"has 10 classes, found 11 requested"),
        ({"tasks": 6}, r"10 classes, enough for 5 tasks .* found tasks=6"),
        ({"tasks": 0}, r"tasks must lie in 1 .*found 0"),
        ({"classes_per_task": 11}, r"mnist has 10 classes, found 11 requested"),
        ({"first_classes": 11}, r"mnist has 10 classes, found 11 requested"),
        (
            {"first_classes": 4, "scenario": "blurry"},
            r"first_classes is for the scenarios class and task",
        ),
        ({"scenario": Recurring(1.0)}, r"has no end; give tasks"),
        ({"class_order": "sorted"}, r"one of random, natural, found 'sorted'"),
        ({"test_share": 0.2}, r"mnist has an official test set; leave test_share out"),
        ({"val_share": 0.95}, r"val_share must lie in 0 .. 0.9"),
        ({"imbalance": 0.5}, r"imbalance must lie in 1"),
        ({"channels": 2}, r"channels must be 1 \(grey\) or 3"),
        ({"size": 2}, r"size must lie in 4 .. 1024"),
        ({"dtype": "float16"}, r"dtype must be one of float32, uint8"),
    ],
)
def test_impossible_settings_are_refused(
    digits: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ArrayStream("mnist", digits, **settings)


@pytest.mark.parametrize(
    "settings", [{"scenario": 3}, {"tasks": 2.0}, {"online": 1}, {"val_share": "0.1"}]
)
def test_settings_of_the_wrong_type_are_refused(digits: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=f"{next(iter(settings))} must be"):
        ArrayStream("mnist", digits, **settings)


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        (DomainIncremental(bands=3), r"asks for 3 sessions, but core50 has 4"),
        (NewInstancesAndClasses(classes=12, sessions=8), r"asks for 8 sessions"),
        (NewInstancesAndClasses(classes=13, sessions=4), r"12 classes, found 13 requested"),
        (FileLists(391), None),
    ],
)
def test_scenarios_that_the_data_lack_are_refused(
    objects: Path, scenario: Any, message: str | None
) -> None:
    kind = ValueError if message else FileNotFoundError
    with pytest.raises(kind, match=message or r"NIC_v2_391/run0/test_filelist.txt"):
        ArrayStream("core50", objects, scenario=scenario)


def test_a_session_without_some_class_is_refused(objects: Path, tmp_path: Path) -> None:
    (tmp_path / "core50").mkdir()
    with (
        zipfile.ZipFile(objects / "core50" / "core50_128x128.zip") as whole,
        zipfile.ZipFile(tmp_path / "core50" / "core50_128x128.zip", "w") as part,
    ):
        for name in whole.namelist():
            if "/s2/o5/" not in name:
                part.writestr(name, whole.read(name))
    with pytest.raises(ValueError, match=r"lacks 1 of 48 pairs .* the first class 4"):
        ArrayStream("core50", tmp_path, scenario="domain")


def test_online_tasks_allow_one_pass(digits: Path) -> None:
    task = raw(digits, online=True)[0]
    assert sum(len(batch.labels) for batch in task.batches(4)) == len(task.train)
    with pytest.raises(ValueError, match="one pass"):
        task.batches(4, epochs=2)


@pytest.mark.parametrize("index", [5, -6, 2**40])
def test_tasks_past_the_end_are_refused(digits: Path, index: int) -> None:
    with pytest.raises(IndexError, match=r"0 .. 4"):
        raw(digits)[index]


def test_images_put_on_a_device_once_are_those_taken_by_batch() -> None:
    images = np.random.default_rng(0).integers(0, 256, (9, 3, 16, 16)).astype(np.uint8)
    photos = DatasetImages(images, np.array([8, 3, 5]), Canvas(size=12, channels=1, dtype="uint8"))
    rows = torch.tensor([2, 0, 2])
    once, by_batch = photos.loader("cpu:0"), photos.loader("cpu")
    assert torch.equal(once(rows), by_batch(rows))


@pytest.mark.gpu
def test_a_gpu_shows_the_same_bytes(digits: Path, objects: Path) -> None:
    settings: dict[str, Any] = {"size": 40, "channels": 3, "dtype": "uint8"}
    for stream in (
        ArrayStream("mnist", digits, **settings),
        ArrayStream("core50", objects, **settings),
    ):
        cpu = stream[1].train.batch([3, 1, 2])
        gpu = stream[1].train.batch([3, 1, 2], device="cuda")
        assert torch.equal(cpu.images, gpu.images.cpu())
        assert torch.equal(cpu.labels, gpu.labels.cpu())


def test_real_frames_come_with_ten_classes_first_and_then_five() -> None:
    stream = real_stream("core50", first_classes=10, classes_per_task=5, val_share=0.0)
    sets = class_sets(stream)
    assert is_nc(sets)
    assert len(sets[0]) == 10
    assert {len(s) for s in sets[1:-1]} == {5}
    batch = stream[1].train.batch([0])
    assert batch.images.shape == (1, 3, 128, 128)
    trained = np.concatenate([task.train.labels for task in stream])
    tested = np.concatenate([task.test.labels for task in stream])
    assert set(tested.tolist()) <= set(trained.tolist())


def test_real_fashion_mnist_is_divided_into_eight_sessions() -> None:
    stream = real_stream("fashion-mnist", scenario="nic", val_share=0.0)
    assert (len(stream), stream.scenario.sessions) == (1 + 10 * 8 - 9, 8)
    assert [len(task.train) for task in stream] == [9 * 750] + [750] * 71


@pytest.mark.parametrize("tasks", [79, 196, 391])
def test_real_nicv2_streams_follow_the_official_lists(tasks: int) -> None:
    stream = real_stream("core50", scenario=f"nicv2-{tasks}", val_share=0.0)
    assert len(stream) == tasks
    sets = class_sets(stream)
    assert len(sets[0]) == 10
    assert is_nic(sets)
    assert sum(len(task.train) for task in stream) == 119_894
    assert set().union(*sets) == set(range(50))
    if tasks == 391:
        assert {len(s) for s in sets[1:]} == {1}


def test_real_nicv2_tests_are_the_official_frames() -> None:
    stream = real_stream("core50", scenario="nicv2-391")
    tests = {task.classes[0]: len(task.test) for task in stream if len(task.classes) == 1}
    assert len(tests) == 50
    assert sum(tests.values()) == 44_972


def test_real_mnist_conserves_samples_when_blurry() -> None:
    stream = real_stream("mnist", scenario="blurry", val_share=0.0, seed=1)
    labels = np.concatenate([task.train.labels for task in stream])
    known = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(labels).tolist() == known
    table = np.stack([np.bincount(task.train.labels, minlength=10) for task in stream])
    blurry = (table > 0).sum(axis=0) > 1
    foreign = 1 - table[:, blurry].max(axis=0).sum() / table[:, blurry].sum()
    assert foreign < 0.11


@pytest.mark.slow
def test_real_dsprites_have_factors_and_maps() -> None:
    stream = real_stream("dsprites")
    for task in stream:
        batch = task.train.batch([0, 5])
        assert batch.factors is not None
        assert batch.theta is not None
        exemplar = task.exemplars()
        assert exemplar.theta is not None
        assert torch.allclose(exemplar.theta[0, :, :2], torch.eye(2))
        assert exemplar.theta[0, :, 2].abs().max() < 0.02


@pytest.mark.integration
def test_real_dsprites_are_split_without_overlap() -> None:
    stream = real_stream("dsprites")
    poses = [
        {
            (label, *(round(float(v), 6) for v in row))
            for task in stream
            for label, row in zip(
                task.split(name).labels,
                np.stack(task.split(name).factors or (), axis=1),
                strict=True,
            )
        }
        for name in ("train", "val", "test")
    ]
    assert not poses[0] & poses[1]
    assert not poses[0] & poses[2]
    assert not poses[1] & poses[2]
    assert sum(map(len, poses)) == stream.rows


@pytest.mark.integration
def test_real_dsprites_may_come_in_bands_of_a_factor() -> None:
    stream = real_stream("dsprites", scenario=DomainIncremental("scale", 3))
    assert is_ni(class_sets(stream))
    scales = [np.asarray(task.train.factors.scale) for task in stream if task.train.factors]
    assert all(a.max() < b.min() for a, b in pairwise(scales))
    nic = real_stream("dsprites", scenario="nic")
    assert is_nic(class_sets(nic))


@pytest.mark.slow
def test_real_omniglot_is_split_by_fractions() -> None:
    stream = real_stream("omniglot", classes_per_task=100, test_share=0.25, size=28)
    assert len(stream) == 17
    assert is_nc(class_sets(stream))
    task = stream[3]
    assert [len(task.train), len(task.val), len(task.test)] == [1300, 200, 500]
    assert set(np.bincount(task.test.labels).tolist()) == {0, 5}
    assert task.train.batch(range(10)).images.shape == (10, 1, 28, 28)
