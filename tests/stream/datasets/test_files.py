"""Readers of data sets: on tiny files made here, and on the real ones where they are at hand."""

from __future__ import annotations

import gzip
import math
import struct
import zipfile
from collections import Counter
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.nn.functional import affine_grid, grid_sample

from everlearn.factors import theta
from everlearn.stream.datasets.files import Arrays, data_folder
from everlearn.stream.datasets.sources import SOURCES, FileLists, load

from ...conftest import needs_data

pytestmark = pytest.mark.integration

IDX = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
IDX_TEST = ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
FULL_DSPRITES = "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"


def load_real(name: str, lists: FileLists | None = None) -> Arrays:
    with needs_data() as folder:
        return load(name, folder, lists)


def numbers(*shape: int, most: int = 256) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, most, shape).astype(np.uint8)


def idx(array: NDArray[np.uint8]) -> bytes:
    return struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def write_mnist(folder: Path, images: NDArray[np.uint8], labels: NDArray[np.uint8]) -> None:
    """Write the same images for training and testing, the latter not packed."""
    for names in (IDX, IDX_TEST):
        for name, array in zip(names, (images, labels), strict=True):
            path = folder / "MNIST" / "raw" / name
            if names is IDX:
                write(path.with_name(f"{name}.gz"), gzip.compress(idx(array)))
            else:
                write(path, idx(array))


def png(array: NDArray[np.uint8]) -> bytes:
    out = BytesIO()
    Image.fromarray(array).save(out, "PNG")
    return out.getvalue()


def write_zip(path: Path, files: dict[str, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as out:
        for name, data in files.items():
            out.writestr(name, data)


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        write(folder / name, data)


def core50_frames() -> dict[str, bytes]:
    """Two objects in sessions 1 and 3, one frame each, of one colour."""
    return {
        f"core50_128x128/s{s}/o{o}/C_{s:02d}_{o:02d}_000.png": png(
            np.full((128, 128, 3), (s, o, 7), np.uint8)
        )
        for s in (1, 3)
        for o in (1, 2)
    }


def core50_lists() -> dict[str, bytes]:
    """Lists of 79 tasks that all show the frame of object 2 in session 1."""
    names = [f"train_batch_{i:02d}_filelist.txt" for i in range(79)] + ["test_filelist.txt"]
    lines = ["s1/o2/C_01_02_000.png 1\n"] * 79 + ["s3/o1/C_03_01_000.png 0\n"]
    return {
        f"NIC_v2_79/run0/{name}": line.encode() for name, line in zip(names, lines, strict=True)
    }


def omniglot_set(name: str, alphabets: int) -> dict[str, bytes]:
    """Alphabets of two characters of two drawings, told apart by one pixel."""
    files = {}
    for i in range(alphabets * 4):
        image = np.full((105, 105), 255, np.uint8)
        image[0, i] = 0
        place = f"{name}/Alphabet{i // 4}/character{i // 2 % 2 + 1:02d}/{i}.png"
        files[place] = png(image)
    return files


def dsprites_values() -> NDArray[np.float64]:
    """Colour, shape, scale, orientation, x and y of eight images; the last two repeat others."""
    poses = [(1, 0, 0.5, 0.5), (0.5, 1, 0, 0), (1, 0, 1, 1)]
    rows = [(1, shape, *pose) for shape in (1, 2) for pose in poses]
    rows += [(1, shape, 1, 2 * math.pi, 0.5, 0.5) for shape in (1, 2)]
    return np.array(rows, float)


def test_data_folder_is_the_argument_before_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, named = tmp_path / "given", tmp_path / "named"
    given.mkdir()
    named.mkdir()
    monkeypatch.setenv("EVERLEARN_DATA", str(named))
    assert data_folder(given) == given.resolve()
    assert data_folder() == named.resolve()


def test_no_data_folder_says_how_to_give_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVERLEARN_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"--data FOLDER or set EVERLEARN_DATA"):
        data_folder()


def test_a_data_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        data_folder(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "file", "source", "place"),
    [
        ("mnist", "train-images-idx3-ubyte.gz", "yann.lecun.com", "MNIST/raw"),
        ("fashion-mnist", "t10k-labels-idx1-ubyte", "zalandoresearch", "FashionMNIST/raw"),
        ("omniglot", "images_background.zip", "brendenlake/omniglot", "omniglot-py"),
        ("dsprites", FULL_DSPRITES, "dsprites-dataset", "dsprites"),
        ("cifar10", "data_batch_1.bin", "cs.toronto.edu", "CIFAR10"),
        ("core50", "core50_128x128.zip", "vlomonaco.github.io/core50", "core50"),
    ],
)
def test_a_missing_file_is_named_with_its_source_and_place(
    tmp_path: Path, name: str, file: str, source: str, place: str
) -> None:
    with pytest.raises(FileNotFoundError) as error:
        load(name, tmp_path)
    text = str(error.value)
    assert file in text
    assert source in text
    assert str(tmp_path / place) in text


def test_every_source_is_tested_for_missing_files() -> None:
    assert set(SOURCES) == {"mnist", "fashion-mnist", "omniglot", "dsprites", "cifar10", "core50"}


def test_only_the_files_that_are_missing_are_named(tmp_path: Path) -> None:
    write_mnist(tmp_path, numbers(4, 28, 28), np.arange(4, dtype=np.uint8))
    (tmp_path / "MNIST" / "raw" / IDX_TEST[1]).unlink()
    with pytest.raises(FileNotFoundError) as error:
        load("mnist", tmp_path)
    assert IDX_TEST[1] in str(error.value)
    assert IDX[0] not in str(error.value)


def test_idx_files_are_read_packed_or_not(tmp_path: Path) -> None:
    images = numbers(12, 28, 28)
    labels = np.arange(12, dtype=np.uint8) % 10
    write_mnist(tmp_path, images, labels)
    arrays = load("mnist", tmp_path)
    assert np.array_equal(arrays.images[np.arange(24)], np.concatenate((images, images))[:, None])
    assert arrays.labels.tolist() == [*labels, *labels]
    assert arrays.test is not None
    assert arrays.test.tolist() == [False] * 12 + [True] * 12


def break_gzip(data: bytes) -> bytes:
    return gzip.compress(data)[:-20]


def break_magic(data: bytes) -> bytes:
    return gzip.compress(b"\1" + data[1:])


def break_length(data: bytes) -> bytes:
    return gzip.compress(data[:-1])


def break_header(data: bytes) -> bytes:
    return gzip.compress(data[:6])


def break_sizes(data: bytes) -> bytes:
    return gzip.compress(data[:4] + b"\xff" * 12 + data[16:])


def not_gzip(data: bytes) -> bytes:
    return b"<html>not found</html>"


@pytest.mark.parametrize(
    "broken", [break_gzip, break_magic, break_length, break_header, break_sizes, not_gzip]
)
def test_a_broken_idx_file_is_named(tmp_path: Path, broken: Callable[[bytes], bytes]) -> None:
    images = numbers(4, 28, 28)
    write_mnist(tmp_path, images, np.arange(4, dtype=np.uint8))
    write(tmp_path / "MNIST" / "raw" / f"{IDX[0]}.gz", broken(idx(images)))
    with pytest.raises(ValueError, match=rf"{IDX[0]}.gz is corrupt or truncated"):
        load("mnist", tmp_path)


def test_impossible_labels_are_refused(tmp_path: Path) -> None:
    write_mnist(tmp_path, numbers(2, 28, 28), np.array([3, 10], np.uint8))
    with pytest.raises(ValueError, match=r"labels must lie in 0 .. 9, found 3 .. 10"):
        load("mnist", tmp_path)


def test_as_many_labels_as_images_are_needed(tmp_path: Path) -> None:
    write_mnist(tmp_path, numbers(3, 28, 28), np.array([1, 2], np.uint8))
    with pytest.raises(ValueError, match="2 labels for 3 images"):
        load("mnist", tmp_path)


def test_cifar_is_read_from_the_binary_version(tmp_path: Path) -> None:
    records = numbers(12, 3073)
    records[:, 0] = np.arange(12) % 10
    names = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
    for i, name in enumerate(names):
        write(
            tmp_path / "CIFAR10" / "cifar-10-batches-bin" / name,
            records[2 * i : 2 * i + 2].tobytes(),
        )
    arrays = load("cifar10", tmp_path)
    assert arrays.labels.tolist() == records[:, 0].tolist()
    assert arrays.images.shape == (12, 3, 32, 32)
    assert arrays.images[np.array([5])][0, 2, 31, 30] == records[5, 1 + 2 * 1024 + 31 * 32 + 30]
    assert arrays.test is not None
    assert np.flatnonzero(arrays.test).tolist() == [10, 11]


def test_a_truncated_cifar_file_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-bin"
    for i in range(1, 6):
        write(folder / f"data_batch_{i}.bin", b"\0" * 3073)
    write(folder / "test_batch.bin", b"\0" * 3000)
    with pytest.raises(ValueError, match=r"test_batch.bin is corrupt or truncated"):
        load("cifar10", tmp_path)


def test_the_pickled_version_of_cifar_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "CIFAR10" / "cifar-10-batches-py" / "data_batch_1", b"\x80\x04.")
    with pytest.raises(FileNotFoundError, match="the binary version"):
        load("cifar10", tmp_path)


def test_the_cifar_subset_is_turned_to_channels_first(tmp_path: Path) -> None:
    images, labels = numbers(4, 32, 32, 3), np.arange(4, dtype=np.uint8)
    path = tmp_path / "CIFAR10" / "cifar10_subset_500x10.npz"
    path.parent.mkdir()
    np.savez(path, x_train=images, y_train=labels, x_test=images[:1], y_test=labels[:1])
    arrays = load("cifar10", tmp_path)
    assert np.array_equal(arrays.images[np.array([1])][0], images[1].transpose(2, 0, 1))
    assert len(arrays) == 5


def test_arrays_of_objects_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "CIFAR10" / "cifar10_subset_500x10.npz"
    path.parent.mkdir()
    np.savez(path, x_train=np.array([{}], object), y_train=0, x_test=0, y_test=0)
    with pytest.raises(ValueError, match=r"cifar10_subset_500x10.npz is corrupt .* allow_pickle"):
        load("cifar10", tmp_path)


@pytest.mark.parametrize("keep", [0, 10, 300])
def test_a_truncated_npz_is_named(tmp_path: Path, keep: int) -> None:
    out = BytesIO()
    np.savez_compressed(out, imgs=numbers(8, 64, 64, most=2), latents_values=dsprites_values())
    write(tmp_path / "dsprites" / FULL_DSPRITES, out.getvalue()[:keep])
    with pytest.raises(ValueError, match=f"{FULL_DSPRITES} is corrupt or truncated"):
        load("dsprites", tmp_path)


def test_an_npz_without_its_arrays_is_named(tmp_path: Path) -> None:
    out = BytesIO()
    np.savez(out, pictures=numbers(8, 64, 64))
    write(tmp_path / "dsprites" / FULL_DSPRITES, out.getvalue())
    with pytest.raises(ValueError, match=f"{FULL_DSPRITES} is not the expected file: imgs"):
        load("dsprites", tmp_path)


def test_dsprites_factors_are_converted(tmp_path: Path) -> None:
    images = numbers(8, 64, 64, most=2)
    out = BytesIO()
    np.savez(out, imgs=images, latents_values=dsprites_values())
    write(tmp_path / "dsprites" / FULL_DSPRITES, out.getvalue())
    arrays = load("dsprites", tmp_path)
    assert arrays.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert np.array_equal(arrays.images[np.arange(6)], images[:6, None] * 255)
    assert arrays.factors is not None
    assert arrays.factors.orientation[1] == pytest.approx(2 * math.pi - 1)
    assert arrays.exemplars == {0: 0, 1: 3}


def test_parts_of_dsprites_are_joined_without_repeats(tmp_path: Path) -> None:
    images, values = numbers(8, 64, 64, most=2), dsprites_values()[:, 1:]
    for name, rows in (("downsampled", [0, 1, 3, 5]), ("subset", [2, 1, 5])):
        out = BytesIO()
        np.savez(
            out,
            imgs=images[rows],
            latents_values=values[rows],
            original_dataset_indices=np.array(rows),
        )
        write(tmp_path / "dsprites" / f"dsprites_{name}.npz", out.getvalue())
    arrays = load("dsprites", tmp_path)
    assert np.array_equal(arrays.images[np.arange(5)][:, 0], images[[0, 1, 2, 3, 5]] * 255)


@pytest.mark.parametrize("unpacked", [False, True])
def test_omniglot_is_read_from_zips_or_folders(tmp_path: Path, unpacked: bool) -> None:
    place = tmp_path / "omniglot-py"
    for name, alphabets in (("images_background", 2), ("images_evaluation", 1)):
        files = omniglot_set(name, alphabets)
        if unpacked:
            write_files(place, files)
        else:
            write_zip(place / f"{name}.zip", files)
    arrays = load("omniglot", tmp_path)
    assert arrays.labels.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert arrays.images.shape == (12, 1, 105, 105)
    assert arrays.sessions is not None
    assert arrays.sessions.tolist() == [*range(8), *range(4)]
    dark = arrays.images[np.arange(12)][:, 0, 0].argmin(axis=1)
    assert dark.tolist() == [*range(8), *range(4)]


def test_a_broken_png_is_named(tmp_path: Path) -> None:
    place = tmp_path / "omniglot-py"
    files = omniglot_set("images_background", 1)
    broken = "images_background/Alphabet0/character02/2.png"
    files[broken] = files[broken][:60]
    write_zip(place / "images_background.zip", files)
    write_zip(place / "images_evaluation.zip", omniglot_set("images_evaluation", 1))
    with pytest.raises(ValueError, match=r"character02/2.png is corrupt or truncated"):
        load("omniglot", tmp_path)


def test_a_png_of_another_size_is_named(tmp_path: Path) -> None:
    place = tmp_path / "omniglot-py"
    write_zip(place / "images_background.zip", {"a/b/c/d.png": png(numbers(9, 9))})
    write_zip(place / "images_evaluation.zip", omniglot_set("images_evaluation", 1))
    with pytest.raises(ValueError, match=r"expected 105 x 105 pixels, found 9 x 9"):
        load("omniglot", tmp_path)


def test_a_drawing_without_the_number_of_its_person_is_named(tmp_path: Path) -> None:
    place = tmp_path / "omniglot-py"
    write_zip(place / "images_background.zip", {"a/b/c/x.png": png(numbers(105, 105))})
    write_zip(place / "images_evaluation.zip", omniglot_set("images_evaluation", 1))
    with pytest.raises(ValueError, match=r"x.png is corrupt.* does not end in the number"):
        load("omniglot", tmp_path)


def test_a_truncated_zip_is_named(tmp_path: Path) -> None:
    place = tmp_path / "omniglot-py"
    write_zip(place / "images_background.zip", omniglot_set("images_background", 1))
    write_zip(place / "images_evaluation.zip", omniglot_set("images_evaluation", 1))
    whole = (place / "images_evaluation.zip").read_bytes()
    write(place / "images_evaluation.zip", whole[:-30])
    with pytest.raises(ValueError, match=r"images_evaluation.zip is corrupt or truncated"):
        load("omniglot", tmp_path)


@pytest.mark.parametrize("unpacked", [False, True])
def test_core50_is_read_from_a_zip_or_a_folder(tmp_path: Path, unpacked: bool) -> None:
    if unpacked:
        write_files(tmp_path / "core50", core50_frames())
    else:
        write_zip(tmp_path / "core50" / "core50_128x128.zip", core50_frames())
    arrays = load("core50", tmp_path)
    assert arrays.labels.tolist() == [0, 1, 0, 1]
    assert arrays.sessions is not None
    assert arrays.sessions.tolist() == [1, 1, 3, 3]
    assert arrays.test is not None
    assert arrays.test.tolist() == [False, False, True, True]
    assert arrays.images[np.array([3, 0])][:, :, 5, 5].tolist() == [[3, 2, 7], [1, 1, 7]]


@pytest.mark.parametrize("unpacked", [False, True])
def test_nicv2_follows_its_lists(tmp_path: Path, unpacked: bool) -> None:
    write_zip(tmp_path / "core50" / "core50_128x128.zip", core50_frames())
    if unpacked:
        write_files(tmp_path / "core50", core50_lists())
    else:
        lists = {f"batches_filelists/{name}": data for name, data in core50_lists().items()}
        write_zip(tmp_path / "core50" / "batches_filelists_NICv2.zip", lists)
    arrays = load("core50", tmp_path, FileLists(79))
    assert arrays.labels.tolist() == [1] * 79 + [0]
    assert arrays.experiences is not None
    assert arrays.experiences.tolist() == [*range(79), -1]
    assert arrays.images[np.array([79, 4])][:, :, 0, 0].tolist() == [[3, 1, 7], [1, 2, 7]]


def test_a_missing_list_is_named(tmp_path: Path) -> None:
    write_zip(tmp_path / "core50" / "core50_128x128.zip", core50_frames())
    lists = core50_lists()
    del lists["NIC_v2_79/run0/train_batch_33_filelist.txt"]
    write_files(tmp_path / "core50", lists)
    with pytest.raises(
        FileNotFoundError, match=r"train_batch_33_filelist.txt; get it from vlomonaco"
    ):
        load("core50", tmp_path, FileLists(79))
    with pytest.raises(
        FileNotFoundError, match=r"NIC_v2_391/run0/test_filelist.txt; get it from vlom"
    ):
        load("core50", tmp_path, FileLists(391))


@pytest.mark.parametrize("line", [b"", b"../s1/o2/a.png 0\n", b"s1/o2/a.png\n", b"s1/o2/a.png x"])
def test_a_malformed_file_list_is_named(tmp_path: Path, line: bytes) -> None:
    write_zip(tmp_path / "core50" / "core50_128x128.zip", core50_frames())
    lists = core50_lists() | {"NIC_v2_79/run0/train_batch_05_filelist.txt": line}
    write_files(tmp_path / "core50", lists)
    with pytest.raises(ValueError, match=r"train_batch_05_filelist.txt is corrupt"):
        load("core50", tmp_path, FileLists(79))


def test_a_frame_that_is_missing_is_named_when_it_is_read(tmp_path: Path) -> None:
    frames = core50_frames()
    del frames["core50_128x128/s1/o2/C_01_02_000.png"]
    write_files(tmp_path / "core50", frames | core50_lists())
    arrays = load("core50", tmp_path, FileLists(79))
    with pytest.raises(FileNotFoundError, match=r"missing s1/o2/C_01_02_000.png .* put it into"):
        arrays.images[np.array([0])]


def test_unknown_data_sets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"unknown data set 'svhn'; known: mnist, fashion-mnist"):
        load("svhn", tmp_path)


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_real_idx_files_have_their_known_counts(name: str) -> None:
    arrays = load_real(name)
    assert arrays.test is not None
    train = np.bincount(arrays.labels[~arrays.test]).tolist()
    # Table of LeCun et al.; Fashion-MNIST is balanced by design.
    known = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert train == (known if name == "mnist" else [6000] * 10)
    assert arrays.test.sum() == 10_000


def test_real_cifar_subset_is_balanced() -> None:
    arrays = load_real("cifar10")
    assert arrays.test is not None
    per_class = 1 if len(arrays) == 6000 else 10
    assert np.bincount(arrays.labels[~arrays.test]).tolist() == [500 * per_class] * 10
    assert np.bincount(arrays.labels[arrays.test]).tolist() == [100 * per_class] * 10


@pytest.mark.slow
def test_real_omniglot_has_1623_characters_by_20_people() -> None:
    arrays = load_real("omniglot")
    assert Counter(np.bincount(arrays.labels).tolist()) == {20: 1623}
    assert arrays.sessions is not None
    assert np.bincount(arrays.sessions).tolist() == [0] + [1623] * 20
    assert set(np.unique(arrays.images[np.arange(200)]).tolist()) == {0, 255}


@pytest.mark.slow
def test_real_dsprites_lie_where_their_factors_say() -> None:
    arrays = load_real("dsprites")
    assert arrays.factors is not None
    rows = np.flatnonzero(arrays.labels < 2)[::20]  # a heart's centroid is not its centre
    images = arrays.images[rows][:, 0].astype(float)
    middle = np.arange(64) + 0.5
    mass = images.sum(axis=(1, 2))
    right = (images * middle).sum(axis=(1, 2)) / mass - (16 + 32 * arrays.factors.x[rows])
    down = (images * middle[:, None]).sum(axis=(1, 2)) / mass - (16 + 32 * arrays.factors.y[rows])
    assert abs(right.mean()) < 0.01
    assert abs(down.mean()) < 0.01
    assert max(np.abs(right).max(), np.abs(down).max()) < 0.5


@pytest.mark.integration
@pytest.mark.parametrize("label", [0, 1, 2])
def test_theta_maps_real_dsprites_to_their_exemplar(label: int) -> None:
    arrays = load_real("dsprites")
    assert arrays.factors is not None
    assert arrays.exemplars is not None
    rows = np.append(arrays.exemplars[label], np.flatnonzero(arrays.labels == label)[::20])
    images = torch.from_numpy(arrays.images[rows]).float() / 255
    maps = torch.from_numpy(theta(arrays.factors.take(rows))).float()
    grid = affine_grid(maps, list(images.shape), align_corners=False)
    warped = grid_sample(images, grid, align_corners=False)
    exemplar = warped[:1]
    both = torch.minimum(warped, exemplar).sum((1, 2, 3))
    either = torch.maximum(warped, exemplar).sum((1, 2, 3))
    # Hard pixels limit the overlap; with the sign of the angle turned it is 0.79 at best.
    assert (both / either).mean() > 0.9
    assert (both / either).min() > 0.84


def test_real_core50_frames_are_those_of_the_zip() -> None:
    arrays = load_real("core50")
    assert arrays.sessions is not None
    assert len(np.unique(arrays.labels)) >= 44
    assert set(arrays.sessions.tolist()) <= set(range(1, 12))
    batch = arrays.images[np.arange(3)]
    assert batch.shape == (3, 3, 128, 128)
    assert batch.std() > 20


@pytest.mark.parametrize("tasks", [79, 196, 391])
def test_real_nicv2_lists_show_every_object_and_session_once(tasks: int) -> None:
    arrays = load_real("core50", FileLists(tasks))
    assert arrays.experiences is not None
    assert arrays.sessions is not None
    train = arrays.experiences >= 0
    columns = (arrays.labels, arrays.sessions, arrays.experiences)
    triples = np.unique(np.stack([column[train] for column in columns]), axis=1)
    assert triples.shape[1] == 50 * 8
    assert set(arrays.sessions[~train].tolist()) == {3, 7, 10}
    assert len(set(arrays.images.names)) == len(arrays)  # type: ignore[attr-defined]
