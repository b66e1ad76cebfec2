"""Export: three formats that read back equal; kills, full disks and damage leave nothing half-written."""

from __future__ import annotations

import csv
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from io import BytesIO
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from everlearn import Canvas, Split, Stream, Task
from everlearn.stream.export import FORMATS, export, read, tar
from everlearn.stream.export.task_arrays import StoredImages, TaskArrays, draw_task
from everlearn.stream.torch_datasets import BatchDataset

pytestmark = pytest.mark.integration

SMALL = Stream(
    seed=5,
    tasks=2,
    classes_per_task=2,
    values_per_factor=2,
    canvas=Canvas(size=16),
    split=(8, 4, 2),
)
RGB = Canvas(size=16, channels=3, colors=("red", "#12ab9f"), dtype="uint8")
STREAMS = {
    "grey float": SMALL,
    "rgb bytes, told the task": SMALL.with_changes(canvas=RGB, scenario="task", seed=2**64 - 1),
    "drawn factors, online": SMALL.with_changes(
        test_factors="continuous", online=True, imbalance=4.0
    ),
    "no val or test rows": SMALL.with_changes(split=(8, 0, 0)),
}


@dataclass(frozen=True)
class Plain:
    """A stream of arrays without factors, as real data sets are."""

    channels: int = 3
    dtype: str = "uint8"

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Task:
        if index >= 2:
            raise IndexError(index)
        train, val, test, canonical = (self._split(index, rows) for rows in (5, 2, 0, 3))
        return Task(index, (7, 2**40, 3), train, val, test, canonical, seed=9)

    def _split(self, index: int, rows: int) -> Split:
        generator = np.random.default_rng([index, rows])
        levels = generator.integers(0, 256, (rows, self.channels, 9, 13), np.uint8)
        return Split(generator.integers(0, 2**62, rows), StoredImages(levels, self.dtype))

    def to_json(self) -> str:
        return json.dumps({"plain": self.channels})


def assert_same(a: Task, b: Task) -> None:
    """Compare every bit of two tasks, a whole split at a time."""
    for name in ("index", "classes", "seed", "online", "task_id_given"):
        assert getattr(a, name) == getattr(b, name), name
    assert np.array_equal(a.order(1), b.order(1))
    for name in ("train", "val", "test", "canonical"):
        x, y = getattr(a, name), getattr(b, name)
        assert_same_arrays(x, y)
        assert_same_batch(x.batch(slice(None)), y.batch(slice(None)))
    assert_same_batches(a, b, len(b.train))
    assert_same_batches(a, b, 3)
    assert_same_batch(a.exemplars(), b.exemplars())


def assert_same_batches(a: Task, b: Task, size: int) -> None:
    """Compare the training batches of a size."""
    for x, y in zip(a.batches(size), b.batches(size), strict=True):
        assert_same_batch(x, y)


def assert_same_arrays(a: Split, b: Split) -> None:
    """Compare the tables of two splits, types included."""
    for x, y in ((a.factors, b.factors), (a.theta, b.theta)):
        assert (x is None) == (y is None)
    pairs = [(a.labels, b.labels), *zip(a.factors or (), b.factors or (), strict=True)]
    pairs += [] if a.theta is None else [(a.theta, b.theta)]
    assert all(x.dtype == y.dtype and x.tobytes() == y.tobytes() for x, y in pairs)


def assert_same_batch(a, b) -> None:
    """Compare two batches, types included."""
    assert a.images.dtype == b.images.dtype
    assert torch.equal(a.images, b.images)
    assert torch.equal(a.labels, b.labels)
    assert (a.theta is None) == (b.theta is None)
    assert a.theta is None or torch.equal(a.theta, b.theta)
    assert all(torch.equal(x, y) for x, y in zip(a.factors or (), b.factors or (), strict=True))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder with its bytes, hidden ones too."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module", params=list(FORMATS))
def format(request) -> str:
    """Each format."""
    return request.param


@pytest.fixture(scope="module")
def whole(format, tmp_path_factory) -> Path:
    """An uninterrupted export of SMALL; not to be changed."""
    return export(SMALL, tmp_path_factory.mktemp("whole") / "a" / "b", format)


@pytest.fixture
def copy(whole, tmp_path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(whole, tmp_path / "copy"))


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_tasks_read_back_equal(stream, format, tmp_path):
    exported = read(export(stream, tmp_path, format))
    assert len(exported) == len(stream)
    for task, original in zip(exported, stream, strict=True):
        assert_same(task, original)
        assert_same(exported[original.index], original)


@pytest.mark.parametrize("plain", [Plain(1), Plain(3), Plain(3, "float32")])
def test_data_without_factors_read_back_equal(plain, format, tmp_path):
    for task, original in zip(read(export(plain, tmp_path, format)), plain, strict=True):
        assert_same(task, original)
        assert_same_batches(task, original, 2)
        rows = [4, 0, 4]
        assert_same_batch(task.split("train").batch(rows), original.split("train").batch(rows))


@given(
    seed=st.integers(0, 2**64 - 1),
    classes=st.integers(2, 3),
    scenario=st.sampled_from(["class", "task", "recurring", "domain"]),
    channels=st.sampled_from([1, 3]),
    index=st.integers(0, 10**9),
)
@settings(max_examples=6)
def test_any_task_of_an_endless_stream_reads_back_equal(
    tmp_path_factory, format, seed, classes, scenario, channels, index
):
    canvas = Canvas(size=8, channels=channels)
    split = (2 * classes, classes, classes)
    stream = Stream(seed, None, classes, 2, canvas, scenario, split=split)
    exported = read(export(stream, tmp_path_factory.mktemp("any"), format, tasks=[index]))
    assert exported.indices == (index,)
    assert_same(exported[index], stream[index])


def test_the_stream_is_kept_with_its_export(whole):
    assert Stream.from_json(read(whole).to_json()) == SMALL
    assert Stream.from_json((whole / "stream.json").read_text()) == SMALL


def test_an_export_offers_what_every_stream_does(tmp_path):
    exported = read(export(SMALL, tmp_path, "npz"))
    for name in ("seed", "tasks", "online", "class_ids"):
        assert getattr(exported, name) == getattr(SMALL, name)
    for name in ("size", "channels", "dtype"):
        assert getattr(exported.canvas, name) == getattr(SMALL.canvas, name)
    with pytest.raises(ValueError, match="an exported stream cannot change, found seed"):
        exported.with_changes(seed=1)


def test_an_export_can_be_exported(whole, format, tmp_path):
    assert contents(export(read(whole), tmp_path, format)) == contents(whole)


def test_two_exports_have_the_same_bytes(whole, format, tmp_path):
    assert contents(export(SMALL, tmp_path, format)) == contents(whole)


def test_some_tasks_are_exported_and_the_others_not_there(format, tmp_path):
    stream = SMALL.with_changes(tasks=20)
    exported = read(export(stream, tmp_path, format, tasks=[12, 2, 3, np.int64(4), 12]))
    assert [task.index for task in exported] == [2, 3, 4, 12]
    with pytest.raises(IndexError, match=re.escape("there: 2 .. 4, 12")):
        exported[5]
    with pytest.raises(TypeError, match="whole number"):
        exported["2"]


def test_progress_is_reported_after_every_task(format, tmp_path):
    told: list[tuple[int, int]] = []
    for _ in range(2):
        export(SMALL, tmp_path, format, progress=lambda done, count: told.append((done, count)))
    assert told == [(1, 2), (2, 2)] * 2


def test_numpy_alone_reads_npz(tmp_path):
    export(SMALL, tmp_path, "npz")
    arrays = np.load(tmp_path / "task_000001.npz", allow_pickle=False)
    assert arrays["images_train"].shape == (8, 1, 16, 16)
    assert arrays["images_train"].dtype == np.uint8
    assert arrays["factors_val"].shape == (4, 5)
    assert arrays["theta_test"].shape == (2, 2, 3)
    assert arrays["labels_exemplars"].tolist() == arrays["classes"].tolist() == [2, 3]
    assert (arrays["index"], arrays["seed"], arrays["online"]) == (1, 5, False)


def test_npz_does_not_hold_the_time_of_day(tmp_path):
    with zipfile.ZipFile(export(SMALL, tmp_path, "npz") / "task_000000.npz") as file:
        assert {item.date_time for item in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_the_csv_table_describes_every_image(tmp_path):
    folder = export(SMALL, tmp_path, "png") / "task_000001"
    rows = list(csv.DictReader((folder / "rows.csv").open()))
    images = {str(path.relative_to(folder)) for path in folder.rglob("*.png")}
    assert [row["file"] for row in rows] == sorted(images, key=_by_split)
    table = SMALL[1].train
    mine = [row for row in rows if row["split"] == "train"]
    assert [int(row["label"]) for row in mine] == table.labels.tolist()
    assert [int(row["color"]) for row in mine] == table.factors.color.tolist()
    assert [float(row["orientation"]) for row in mine] == table.factors.orientation.tolist()


def _by_split(path: str) -> tuple[int, str]:
    return ("train", "val", "test", "exemplars").index(path.split("/")[0]), path


def test_data_without_factors_have_no_columns_of_them(tmp_path):
    folder = export(Plain(), tmp_path, "png") / "task_000000"
    assert (folder / "rows.csv").read_text().splitlines()[0] == "split,row,file,label"


def test_tar_shards_keep_the_webdataset_convention():
    content = draw_task(SMALL[1])
    files = list(tar.pack(content, shard_rows=3))
    assert [(file.name, file.rows) for file in files] == [
        ("task_000001-train-000000.tar", 3),
        ("task_000001-train-000001.tar", 3),
        ("task_000001-train-000002.tar", 2),
        ("task_000001-val-000000.tar", 3),
        ("task_000001-val-000001.tar", 1),
        ("task_000001-test-000000.tar", 2),
        ("task_000001-exemplars-000000.tar", 2),
    ]
    keys = [key for file in files[:3] for key in _webdataset_keys(file.data)]
    assert keys == [f"{row:06d}" for row in range(8)]
    tables = tar.unpack(content.header, {file.name: file.data for file in files})
    assert_same_tables(TaskArrays(content.header, tables), content)


def _webdataset_keys(data: bytes) -> list[str]:
    """Group files as webdataset does: neighbours whose names agree up to the first dot."""
    with tarfile.open(fileobj=BytesIO(data)) as shard:
        members = shard.getmembers()
    assert all((m.mtime, m.uid, m.gid, m.uname, m.gname) == (0, 0, 0, "", "") for m in members)
    groups = groupby((m.name.split(".", 1) for m in members), key=lambda parts: parts[0])
    samples = [(key, [extension for _, extension in parts]) for key, parts in groups]
    assert all(extensions == ["png", "json"] for _, extensions in samples)
    return [key for key, _ in samples]


def assert_same_tables(a: TaskArrays, b: TaskArrays) -> None:
    for name, table in a.tables.items():
        other = b.tables[name]
        assert np.array_equal(table.images, other.images)
        assert np.array_equal(table.labels, other.labels)
        assert np.array_equal(table.theta, other.theta)


class Trip:
    """Stands in for a function of `os` and raises at its n-th call."""

    def __init__(self, function, call: int, error: BaseException) -> None:
        self.function, self.left, self.error = function, call, error

    def __call__(self, *args):
        self.left -= 1
        if self.left == 0:
            raise self.error
        return self.function(*args)


def calls(monkeypatch, folder: Path, format: str, name: str) -> int:
    """Count how often an export calls a function of `os`."""
    trip = Trip(getattr(os, name), 0, KeyboardInterrupt())
    with monkeypatch.context() as patch:
        patch.setattr(os, name, trip)
        export(SMALL, folder, format)
    return -trip.left


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_an_interrupted_export_leaves_complete_tasks_and_resumes(
    whole, format, name, monkeypatch, tmp_path
):
    count = calls(monkeypatch, tmp_path / "count", format, name)
    for call in sorted({1, 2, 3, *range(4, count, 1 + count // 6), count}):
        folder = tmp_path / str(call)
        folder.mkdir()
        with monkeypatch.context() as patch:
            patch.setattr(os, name, Trip(getattr(os, name), call, KeyboardInterrupt()))
            with pytest.raises(KeyboardInterrupt):
                export(SMALL, folder, format)
        assert not [path for path in folder.iterdir() if path.name.startswith(".")]
        if (folder / "stream.json").exists():
            for task in read(folder):
                assert_same(task, SMALL[task.index])
        assert contents(export(SMALL, folder, format)) == contents(whole)


def test_a_full_disk_is_explained_and_finished_tasks_are_kept(whole, format, monkeypatch, tmp_path):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    count = calls(monkeypatch, tmp_path / "count", format, "fsync")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", Trip(os.fsync, count - 2, full))
        with pytest.raises(
            OSError, match=r"could not write task_000001 to .*No space left"
        ) as info:
            export(SMALL, tmp_path / "x", format)
    assert info.value.errno == errno.ENOSPC
    assert "finished tasks are kept: free space there and run the same export again" in str(info)
    assert read(tmp_path / "x").indices == (0,)
    assert contents(export(SMALL, tmp_path / "x", format)) == contents(whole)


def run(script: str, *args: object) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own."""
    command = [sys.executable, "-c", script, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


KILLED = """
import os, signal, sys
from everlearn.stream.export import export, read
left = int(sys.argv[4])
def fsync(descriptor, real=os.fsync):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    real(descriptor)
os.fsync = fsync
export(read(sys.argv[1]), sys.argv[2], sys.argv[3])
"""


@pytest.mark.slow
def test_a_killed_export_continues_to_the_same_bytes(whole, format, monkeypatch, tmp_path):
    count = calls(monkeypatch, tmp_path / "count", format, "fsync")
    folder = tmp_path / "killed"
    assert run(KILLED, whole, folder, format, count - 3).returncode == -signal.SIGKILL
    assert (folder / ".part-task_000001").is_dir()
    assert (folder / ".lock").exists()
    assert [assert_same(task, SMALL[0]) for task in read(folder)] == [None]
    assert contents(export(SMALL, folder, format)) == contents(whole)


LIMITED = """
import resource, sys
from everlearn.stream.export import export, read
stream = read(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[4]),) * 2)
export(stream, sys.argv[2], sys.argv[3])
"""


@pytest.mark.integration
def test_a_file_the_system_will_not_take_leaves_nothing(tmp_path):
    source = export(SMALL, tmp_path / "source", "npz")
    ended = run(LIMITED, source, tmp_path / "x", "npz", 2000)
    assert ended.returncode == 1
    assert "could not write task_000000" in ended.stderr
    assert "finished tasks are kept: raise the limit on the size of files" in ended.stderr
    assert sorted(contents(tmp_path / "x")) == ["export.json", "stream.json"]


ON_A_SMALL_DISK = """
import os, shutil, subprocess, sys
from everlearn.stream.export import export, read
source, disk, copy = sys.argv[1:]
try:
    export(read(source), disk, "png")
except OSError as error:
    print(error)
print(read(disk).indices, [name for name in os.listdir(disk) if name.startswith(".")])
subprocess.run(["mount", "-o", "remount,size=10m", disk], check=True)
shutil.copytree(export(read(source), disk, "png"), copy)
"""


@pytest.mark.integration
@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare, of util-linux")
def test_an_export_survives_a_full_disk(tmp_path):
    source, disk, copy = tmp_path / "source", tmp_path / "disk", tmp_path / "copy"
    pages = sum(1 + len(data) // 4096 for data in contents(export(SMALL, source, "png")).values())
    disk.mkdir()
    mount = f'mount -t tmpfs -o size={3 * pages}k none "$4" || exit 77; exec "$0" "$@"'
    command = ["unshare", "-Umr", "sh", "-c", mount, sys.executable, "-c", ON_A_SMALL_DISK]
    ended = subprocess.run(
        [*command, source, disk, copy], capture_output=True, text=True, check=False
    )
    if ended.returncode == 77 or "unshare failed" in ended.stderr:
        pytest.skip(f"may not mount a small disk here: {ended.stderr.strip()}")
    error, left = ended.stdout.splitlines()
    assert re.search(r"could not write task_000001 to .* \(No space left on device\)", error)
    assert left == "(0,) []"
    assert contents(copy) == contents(source)


def test_a_flipped_byte_in_any_file_is_found_and_repaired(whole, copy, format):
    for name in sorted(contents(copy))[:: 7 if format == "png" else 1]:
        data = bytearray((copy / name).read_bytes())
        data[len(data) // 2] ^= 1
        (copy / name).write_bytes(data)
        with pytest.raises(ValueError, match=f"{re.escape(str(copy / name))} is .*damaged.*export"):
            list(read(copy))
        if name == "export.json":
            (copy / name).write_bytes((whole / name).read_bytes())
        assert contents(export(SMALL, copy, format)) == contents(whole)


@pytest.mark.parametrize("keep", [0, 0.5])
def test_a_truncated_file_is_found_and_repaired(whole, copy, format, keep):
    name = next(name for name in contents(copy) if name.endswith((".npz", ".csv", ".tar")))
    data = (copy / name).read_bytes()
    (copy / name).write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(ValueError, match=f"{name} is damaged.*it rewrites task ."):
        list(read(copy))
    assert contents(export(SMALL, copy, format)) == contents(whole)


def test_a_missing_file_is_found_and_repaired(whole, copy, format):
    name = next(name for name in contents(copy) if name.endswith((".npz", ".png", ".tar")))
    (copy / name).unlink()
    with pytest.raises(ValueError, match=f"{name} is missing.*it rewrites task ."):
        list(read(copy))
    assert contents(export(SMALL, copy, format)) == contents(whole)


def test_only_damaged_tasks_are_written_again(copy, format):
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("task_000000*")}
    (copy / "task_000001.json").unlink()
    export(SMALL, copy, format)
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_files_of_a_task_without_checksums_are_removed(whole, copy, format):
    (copy / "task_000001.json").unlink()
    left = contents(export(SMALL, copy, format, tasks=[0]))
    assert left == {k: v for k, v in contents(whole).items() if not k.startswith("task_000001")}


def test_files_of_others_are_left_alone(copy, format):
    (copy / "notes_on_task_000009.npz").write_text("mine")
    (copy / "task_000009.npz.txt").write_text("mine")
    assert {"notes_on_task_000009.npz", "task_000009.npz.txt"} <= set(
        contents(export(SMALL, copy, format))
    )


def test_another_stream_or_format_is_refused(copy, format):
    before = contents(copy)
    with pytest.raises(
        ValueError, match=r"holds another export: its stream_sha256.*another folder"
    ):
        export(SMALL.with_changes(seed=6), copy, format)
    for other in set(FORMATS) - {format}:
        with pytest.raises(ValueError, match=f"its format is '{format}', not '{other}'"):
            export(SMALL, copy, other)
    assert contents(copy) == before


def test_an_export_of_another_version_is_not_continued(copy, format, monkeypatch):
    monkeypatch.setattr("everlearn.stream.export.manifest.__version__", "9.9")
    with pytest.raises(ValueError, match=r"its everlearn is '.*', not '9\.9'"):
        export(SMALL, copy, format)


def test_a_newer_layout_is_refused(copy, monkeypatch):
    monkeypatch.setattr("everlearn.stream.export.manifest._NUMBER", 0)
    with pytest.raises(ValueError, match=r"export of number 1; .* reads 0: update everlearn"):
        read(copy)


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "task_000000.npz").write_text("mine")
    with pytest.raises(ValueError, match="holds other files and no export"):
        export(SMALL, tmp_path)
    with pytest.raises(NotADirectoryError, match="is a file; give a folder"):
        export(SMALL, tmp_path / "task_000000.npz")
    assert contents(tmp_path) == {"task_000000.npz": b"mine"}


def test_a_second_writer_is_refused_and_the_first_ends_well(whole, format, tmp_path):
    def interfere(done: int, count: int) -> None:
        with pytest.raises(
            BlockingIOError, match=rf"\(process {os.getpid()}\); wait until it ends"
        ):
            export(SMALL, tmp_path, format)

    assert contents(export(SMALL, tmp_path, format, progress=interfere)) == contents(whole)


def test_the_lock_of_a_dead_process_is_taken_over(whole, format, tmp_path):
    (tmp_path / ".lock").write_text("1")
    assert contents(export(SMALL, tmp_path, format)) == contents(whole)


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(ValueError, match="unknown format 'zip'; known: npz, png, tar"):
        export(SMALL, tmp_path / "x", "zip")
    assert not (tmp_path / "x").exists()


def test_exporting_an_endless_stream_needs_a_list_of_tasks(tmp_path):
    with pytest.raises(ValueError, match=r"choose tasks, for example tasks=range\(10\)"):
        export(SMALL.with_changes(tasks=None), tmp_path)


@pytest.mark.parametrize("tasks", [[-1], [True], [0.5], ["1"]])
def test_tasks_must_be_whole_numbers(tasks, tmp_path):
    with pytest.raises(ValueError, match="tasks must be whole numbers of 0 or more, found"):
        export(SMALL, tmp_path, tasks=tasks)


def test_a_folder_without_an_export_cannot_be_read(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(FileNotFoundError, match=r"holds no export: export\.json is missing"):
            read(folder)


@pytest.mark.parametrize("name", ["png", "tar"])
def test_images_that_png_cannot_hold_are_refused(name, tmp_path):
    with pytest.raises(ValueError, match="found 4 channels; use the format 'npz'"):
        export(Plain(4), tmp_path, name)
    assert sorted(contents(tmp_path)) == ["export.json", "stream.json"]
    assert_same(read(export(Plain(4), tmp_path / "npz", "npz"))[1], Plain(4)[1])


@dataclass(frozen=True)
class Faint:
    """Images that are not 8-bit levels."""

    value: float

    def loader(self, device: str):
        return lambda rows: torch.full((len(rows), 1, 4, 4), self.value)


@pytest.mark.parametrize("value", [0.3, 2.0, float("nan")])
def test_images_that_would_change_are_refused(value, tmp_path):
    with pytest.raises(ValueError, match="not exactly level / 255"):
        draw_task(_task_of(Split(np.zeros(2, np.int64), Faint(value))))


def test_images_of_another_type_are_refused():
    doubles = StoredImages(np.zeros((2, 1, 4, 4), np.int16), "uint8")
    with pytest.raises(TypeError, match=r"must be uint8 or float32 .*, found int16"):
        draw_task(_task_of(Split(np.zeros(2, np.int64), doubles)))


def _task_of(split: Split) -> Task:
    return Task(0, (0,), split, split, split, split, seed=0)


def test_every_level_survives_as_a_float(tmp_path):
    levels = np.arange(256, dtype=np.uint8).reshape(1, 1, 16, 16)
    images = StoredImages(levels, "float32").loader("cpu")(torch.tensor([0]))
    assert torch.equal(images, torch.from_numpy(levels) / 255)
    assert all(a < b for a, b in pairwise(images.flatten().tolist()))


def test_batches_of_an_export_are_those_of_the_tasks_it_holds(tmp_path):
    stream = Stream(tasks=None, classes_per_task=2, values_per_factor=2, canvas=Canvas(size=8))
    stored = read(export(stream, tmp_path / "part", tasks=[5, 7]))
    labels = [batch.labels for batch in BatchDataset(stored, 100)]
    assert [sorted(set(label.tolist())) for label in labels] == [[10, 11], [14, 15]]
