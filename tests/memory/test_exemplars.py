"""Exemplars store what was added, edit by edit, and a failed edit changes nothing."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from everlearn.memory import Exemplars
from everlearn.memory.contact_sheet import GAP
from everlearn.memory.image_store import max_block_size

SHAPE = (1, 4, 5)


def constant_images(*values):
    """Return one image of constant level per value."""
    return torch.tensor(values, dtype=torch.uint8).reshape(-1, 1, 1, 1).repeat(1, *SHAPE)


def memory_of(pairs):
    memory = Exemplars(SHAPE)
    memory.add(list(pairs), constant_images(*pairs.values()))
    return memory


def content(memory):
    values = memory.images()[:, 0, 0, 0].tolist()
    return dict(zip(memory.labels, values, strict=True))


edits = st.lists(
    st.tuples(st.sampled_from(["add", "replace", "remove"]), st.integers(0, 9), st.integers(0, 255))
)


@given(edits)
def test_edits_behave_like_a_dict(steps):
    memory = Exemplars(SHAPE)
    model = {}
    for method, label, value in steps:
        allowed = (label in model) == (method != "add")
        images = () if method == "remove" else (constant_images(value),)
        if allowed:
            getattr(memory, method)(label, *images)
            model = {k: v for k, v in model.items() if k != label}
            model |= {} if method == "remove" else {label: value}
        else:
            with pytest.raises(ValueError, match=f"{label}"):
                getattr(memory, method)(label, *images)
        assert content(memory) == model
        assert (label in memory) == (label in model)
        assert len(memory) == len(model)


def test_labels_of_any_integer_type_up_to_2_to_the_62():
    memory = Exemplars(SHAPE)
    memory.add(2**62, constant_images(1))
    memory.add(np.array([7, 3], np.uint16), constant_images(2, 3))
    memory.add(torch.tensor([5]), constant_images(4))
    memory.add(range(8, 10), constant_images(5, 6))
    memory.add([], constant_images())
    assert memory.labels == [3, 5, 7, 8, 9, 2**62]
    assert all(type(label) is int for label in memory.labels)
    assert memory.search(constant_images(1).float() / 255, 1).labels.tolist() == [[2**62]]


def test_images_are_returned_in_the_requested_order():
    memory = memory_of({5: 50, 1: 10, 3: 30})
    assert memory.images()[:, 0, 0, 0].tolist() == [10, 30, 50]
    assert memory.images([5, 1, 5])[:, 0, 0, 0].tolist() == [50, 10, 50]
    assert memory.images([]).shape == (0, *SHAPE)
    assert memory.images().dtype == torch.uint8


def test_gather_returns_images_of_labels_and_zeros_for_minus_one():
    memory = memory_of({label: label % 256 for label in range(0, 1200, 2)})
    memory.remove([4, 700])
    requested = torch.tensor([1198, 0, -1, 600, 0, 2])
    found = memory.gather(requested)
    assert torch.equal(found[requested >= 0], memory.images(requested[requested >= 0]))
    assert not found[2].any()
    assert memory.gather(requested[:0]).shape == (0, *SHAPE)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_float_images_are_rounded_to_uint8(dtype):
    levels = torch.arange(256, dtype=torch.float64).reshape(-1, 1, 1, 1) / 255
    memory = Exemplars((1, 1, 1))
    memory.add(range(256), levels.to(dtype))
    assert memory.images().flatten().tolist() == list(range(256))


def test_arrays_and_tensors_are_stored_alike():
    images = np.random.default_rng(0).random((3, *SHAPE))
    one, two = Exemplars(SHAPE), Exemplars(SHAPE)
    one.add([0, 1, 2], images)
    two.add([0, 1, 2], torch.from_numpy(images))
    assert torch.equal(one.images(), two.images())


def test_images_are_copied_in_and_out():
    images = constant_images(1, 2)
    memory = Exemplars(SHAPE)
    memory.add([0, 1], images)
    images.fill_(9)
    memory.images().fill_(9)
    assert content(memory) == {0: 1, 1: 2}


INVALID_CALLS = [
    ("add", ([4, 2], constant_images(1, 1)), ValueError, "already stored: 2; use replace"),
    ("add", ([4, 4], constant_images(1, 1)), ValueError, "must be unique, found repeated: 4"),
    ("add", ([4, -1], constant_images(1, 1)), ValueError, r"0 .. 2\*\*62, found -1"),
    ("add", ([2**62 + 1], constant_images(1)), ValueError, r"0 .. 2\*\*62"),
    ("add", ([2**70], constant_images(1)), TypeError, "whole numbers"),
    ("add", ([1.5], constant_images(1)), TypeError, "whole numbers"),
    ("add", ([True], constant_images(1)), TypeError, "whole numbers"),
    ("add", ([[4]], constant_images(1)), TypeError, "1-D array"),
    (
        "add",
        ([4, 5], constant_images(1)),
        ValueError,
        r"2 labels must be \(2, 1, 4, 5\), found \(1, 1, 4, 5\)",
    ),
    (
        "add",
        ([4], constant_images(1).int()),
        TypeError,
        "uint8 or float in 0 .. 1, found torch.int32",
    ),
    ("add", ([4], constant_images(2).float()), ValueError, "0 .. 1, found 2.0 .. 2.0"),
    ("add", ([4], constant_images(1).float() * torch.nan), ValueError, "found nan"),
    ("replace", ([1, 4], constant_images(8, 8)), ValueError, "not stored: 4"),
    ("replace", ([1, 1], constant_images(8, 8)), ValueError, "must be unique, found repeated: 1"),
    ("remove", ([1, 4],), ValueError, "not stored: 4"),
    ("remove", ([1, 1],), ValueError, "must be unique, found repeated: 1"),
    ("images", ([1, 4],), ValueError, "not stored: 4"),
]


@pytest.mark.parametrize(("method", "arguments", "error", "message"), INVALID_CALLS)
def test_an_invalid_edit_changes_nothing(method, arguments, error, message):
    memory = memory_of({1: 10, 2: 20})
    with pytest.raises(error, match=message):
        getattr(memory, method)(*arguments)
    assert content(memory) == {1: 10, 2: 20}


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"shape": (4, 5)}, ValueError),
        ({"shape": (1, 0, 5)}, ValueError),
        ({"shape": (1, 4.0, 5)}, TypeError),
        ({"shape": SHAPE, "crop": 0}, ValueError),
        ({"shape": SHAPE, "crop": 0.6}, ValueError),
    ],
)
def test_invalid_settings_are_rejected(settings, error):
    with pytest.raises(error):
        Exemplars(**settings)


def test_bytes_count_one_image_and_label_per_class():
    memory = Exemplars((1, 64, 64))
    for task in range(5):
        memory.add(range(10 * task, 10 * task + 10), torch.zeros(10, 1, 64, 64))
    assert memory.bytes == 50 * (64 * 64 + 8)
    memory.remove(range(10))
    assert memory.bytes == 40 * (64 * 64 + 8)


def test_removed_images_are_zeroed():
    memory = memory_of(dict.fromkeys(range(300), 255))
    memory.remove(range(300))
    assert not any(block.images.any() for block in memory._store.blocks)


def test_freed_slots_are_reused():
    memory = Exemplars(SHAPE)
    for label in range(1000):
        memory.add(label, constant_images(label % 256))
        if label >= 100:
            memory.remove(label - 100)
    assert sum(len(block.labels) for block in memory._store.blocks) == 256


def test_growing_copies_no_image_and_at_most_doubles_the_memory():
    memory = Exemplars(SHAPE)
    addresses = []
    for start in range(0, 3000, 10):
        memory.add(range(start, start + 10), constant_images(*[7] * 10))
        now = [block.images.data_ptr() for block in memory._store.blocks]
        assert now[: len(addresses)] == addresses
        addresses = now
        slots = sum(len(block.labels) for block in memory._store.blocks)
        assert slots <= max(256, 2 * len(memory))


@pytest.mark.parametrize(
    ("shape", "limit"), [((1, 32, 32), 8192), ((3, 224, 224), 128), ((4, 5000, 5000), 1)]
)
def test_a_float32_block_fits_in_128_mib(shape, limit):
    assert max_block_size(shape) == limit
    assert limit == 1 or 4 * limit * np.prod(shape) <= 2**27


def test_removing_a_class_takes_under_10_ms():
    memory = Exemplars((1, 32, 32))
    memory.add(range(5000), torch.zeros(5000, 1, 32, 32, dtype=torch.uint8))
    times = []
    for label in range(20):
        start = time.perf_counter()
        memory.remove([label])
        times.append(time.perf_counter() - start)
    assert min(times) < 0.01


def test_merge_gives_the_union():
    one, two = memory_of({1: 10, 2: 20}), memory_of({2: 20, 3: 30})
    one.merge(two)
    assert content(one) == {1: 10, 2: 20, 3: 30}
    assert content(two) == {2: 20, 3: 30}


@pytest.mark.parametrize(("conflict", "winner"), [("keep", 20), ("replace", 99)])
def test_merge_resolves_conflicts_as_requested(conflict, winner):
    one, two = memory_of({1: 10, 2: 20}), memory_of({2: 99, 3: 30})
    one.merge(two, conflict)
    assert content(one) == {1: 10, 2: winner, 3: 30}


def test_an_invalid_merge_changes_nothing():
    one, two = memory_of({1: 10, 2: 20}), memory_of({2: 99, 3: 30})
    with pytest.raises(ValueError, match="different images of labels 2; choose"):
        one.merge(two)
    with pytest.raises(ValueError, match="unknown conflict 'both'; known: error, keep, replace"):
        one.merge(two, "both")
    with pytest.raises(ValueError, match=r"\(1, 4, 5\) here and \(1, 5, 4\)"):
        one.merge(Exemplars((1, 5, 4)))
    assert content(one) == {1: 10, 2: 20}


def test_a_copy_is_independent():
    one = memory_of({1: 10, 2: 20})
    two = one.copy()
    two.replace(1, constant_images(11))
    two.remove(2)
    two.add(3, constant_images(30))
    assert content(one) == {1: 10, 2: 20}
    assert content(two) == {1: 11, 3: 30}


def test_a_subset_is_independent():
    one = memory_of({1: 10, 2: 20, 3: 30})
    two = one.subset([3, 1])
    two.remove(3)
    assert content(one) == {1: 10, 2: 20, 3: 30}
    assert content(two) == {1: 10}
    assert content(one.subset([])) == {}
    with pytest.raises(ValueError, match="not stored: 7"):
        one.subset([7])


@pytest.mark.parametrize("channels", [1, 3])
def test_thumbnails_show_every_image_in_its_cell(channels):
    shape = (channels, 4, 5)
    images = torch.randint(0, 256, (7, *shape), dtype=torch.uint8)
    memory = Exemplars(shape)
    memory.add(range(7), images)
    sheet = memory.thumbnails(columns=3)
    assert sheet.shape[:2] == (3 * 4 + 2 * GAP, 3 * 5 + 2 * GAP)
    for index, image in enumerate(images.permute(0, 2, 3, 1).squeeze(-1).numpy()):
        top = index // 3 * (4 + GAP)
        left = index % 3 * (5 + GAP)
        assert (sheet[top : top + 4, left : left + 5] == image).all()
    assert memory.thumbnails(labels=[6, 2]).shape[:2] == (4, 10 + GAP)


def test_thumbnails_need_images_of_1_or_3_channels():
    with pytest.raises(ValueError, match="no image to show"):
        Exemplars(SHAPE).thumbnails()
    with pytest.raises(ValueError, match="images of 1 or 3 channels, found 2"):
        Exemplars((2, 4, 5)).thumbnails()
