"""Saved exemplars load unchanged, leave no trace of edits, and damaged files are rejected."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest
import torch

from everlearn.memory import Exemplars

SHAPE = (1, 6, 6)


def make_images(labels):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (100, *SHAPE), dtype=np.uint8)
    return torch.from_numpy(images[list(labels)])


def memory_of(labels, crop=None):
    memory = Exemplars(SHAPE, crop=crop)
    memory.add(list(labels), make_images(labels))
    return memory


def equal(one, two):
    a, b = one.state(), two.state()
    same = all(torch.equal(a[part], b[part]) for part in ("labels", "pictures"))
    return same and (a["shape"], a["crop"]) == (b["shape"], b["crop"])


@pytest.mark.parametrize("crop", [None, 0.36])
@pytest.mark.parametrize("labels", [[], [3], [9, 2, 50, 7]])
def test_a_saved_memory_loads_unchanged(tmp_path, labels, crop):
    memory = memory_of(labels, crop)
    path = memory.save(tmp_path / "new" / "memory.npz")
    assert path == tmp_path / "new" / "memory.npz"
    assert equal(Exemplars.load(str(path)), memory)
    assert [file.name for file in path.parent.iterdir()] == ["memory.npz"]


def test_file_bytes_do_not_depend_on_the_edit_history(tmp_path):
    unedited = memory_of([1, 2, 3])
    edited = memory_of([8, 3, 9])
    edited.add([1], make_images([50]))
    edited.remove([8, 9])
    edited.add([2], make_images([2]))
    edited.replace([1], make_images([1]))
    files = [m.save(tmp_path / str(n)).read_bytes() for n, m in enumerate([unedited, edited])]
    assert files[0] == files[1]


def test_the_file_has_no_timestamp(tmp_path):
    path = memory_of([1]).save(tmp_path / "memory.npz")
    dates = {entry.date_time for entry in zipfile.ZipFile(path).infolist()}
    assert dates == {(1980, 1, 1, 0, 0, 0)}


def test_numpy_can_read_the_file(tmp_path):
    path = memory_of([9, 2]).save(tmp_path / "memory.npz")
    with np.load(path, allow_pickle=False) as arrays:
        assert arrays["labels"].tolist() == [2, 9]
        assert (arrays["pictures"] == make_images([2, 9]).numpy()).all()


def test_a_truncated_file_is_rejected(tmp_path):
    path = memory_of(range(20)).save(tmp_path / "memory.npz")
    content = path.read_bytes()
    for length in [0, 1, 3, 10, 100, *range(200, len(content), 97), len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"memory\.npz is truncated, damaged"):
            Exemplars.load(path)


def test_a_flipped_byte_is_rejected_or_harmless(tmp_path):
    memory = memory_of(range(5))
    path = memory.save(tmp_path / "memory.npz")
    content = path.read_bytes()
    assert equal(Exemplars.load(path), memory)
    for place in range(0, len(content), 3):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        assert equal(load_or(path, memory), memory)


def test_a_changed_pixel_fails_the_checksum(tmp_path):
    path = memory_of(range(5)).save(tmp_path / "memory.npz")
    pixels = make_images(range(5)).numpy().tobytes()
    content = path.read_bytes()
    assert content.count(pixels) == 1
    path.write_bytes(content.replace(pixels, bytes([pixels[0] ^ 1]) + pixels[1:]))
    with pytest.raises(ValueError, match=r"the checksum of pictures\.npy does not match"):
        Exemplars.load(path)


def load_or(path, memory):
    """Load the file, or return the memory if the file is rejected with a message that names it."""
    try:
        return Exemplars.load(path)
    except ValueError as error:
        return memory if str(path) in str(error) else None


def good_arrays():
    return {
        "kind": np.array("everlearn exemplars 1"),
        "labels": np.array([2, 5]),
        "pictures": np.zeros((2, *SHAPE), np.uint8),
        "crop": np.array([0.36]),
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": np.array("everlearn exemplars 2")},
        {"kind": None},
        {"pictures": None},
        {"labels": np.array([2.0, 5.0])},
        {"labels": np.array([2, 2])},
        {"labels": np.array([2, -5])},
        {"labels": np.array([2])},
        {"labels": np.array([2, None])},
        {"labels": np.array(["2", "5"])},
        {"pictures": np.zeros((2, 6, 6), np.uint8)},
        {"pictures": np.array(7, np.uint8)},
        {"pictures": np.zeros((2, *SHAPE), np.float32)},
        {"pictures": np.zeros((2, *SHAPE), np.uint16)},
        {"crop": np.array([0.7])},
        {"crop": np.array(["a"])},
        {"crop": np.array(0.36)},
    ],
)
def test_npz_files_of_another_layout_are_rejected(tmp_path, changes):
    path = tmp_path / "memory.npz"
    np.savez(path, **good_arrays())
    assert Exemplars.load(path).labels == [2, 5]
    arrays = {name: a for name, a in (good_arrays() | changes).items() if a is not None}
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=r"memory\.npz"):
        Exemplars.load(path)


def test_files_of_other_formats_are_rejected(tmp_path):
    path = tmp_path / "memory.npz"
    path.write_text("label,picture\n")
    with pytest.raises(ValueError, match=r"memory\.npz is truncated, damaged or not a memory"):
        Exemplars.load(path)
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match=r"memory\.npz is truncated, damaged or not a memory"):
        Exemplars.load(path)
    with pytest.raises(FileNotFoundError, match="missing"):
        Exemplars.load(tmp_path / "missing.npz")


def test_load_state_replaces_the_content():
    source, target = memory_of([4, 1]), memory_of([1, 2, 3])
    target.load_state(source.state())
    assert equal(target, source)
    target.remove(4)
    assert source.labels == [1, 4]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": [1, 3, 3]}, r"\(shape, crop\) \(\(1, 3, 3\), None\)"),
        ({"crop": 0.3}, r"\(\(1, 6, 6\), 0.3\), this memory "),
        ({"labels": torch.tensor([1, 1])}, "must be unique, found repeated: 1"),
        ({"pictures": torch.zeros(1, *SHAPE)}, "2 labels"),
    ],
)
def test_an_invalid_state_changes_nothing(change, message):
    memory = memory_of([1, 2, 3])
    with pytest.raises(ValueError, match=message):
        memory.load_state(memory_of([4, 1]).state() | change)
    with pytest.raises(ValueError, match=r"lacks \['crop', 'shape'\]"):
        memory.load_state({"labels": [], "pictures": []})
    assert equal(memory, memory_of([1, 2, 3]))
