"""Run folders survive kills, full disks and damage, and return what was written."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from everlearn.core.state import flatten, unflatten
from everlearn.runs import Checkpoint, Run, find_runs, pack, read_costs, read_rows

pytestmark = pytest.mark.integration

STREAM = json.dumps({"seed": 3, "tasks": 10})
SETTINGS = {"method": "der", "lr": 0.1, "net": {"width": 8, "sizes": [1, 2]}, "device": "cpu"}


def row(step: int) -> dict:
    """A row of a test."""
    return {"kind": "test", "step": step, "learned": 0, "tested": 0, "correct": step, "total": 99}


def cost(step: int) -> dict:
    """A row of costs."""
    return {"kind": "task", "learned": 0, "step": step, "seconds": 0.25, "bytes": {"net": 4}}


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder with its bytes, hidden ones too."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def run(tmp_path) -> Run:
    """A new run."""
    return Run.create(tmp_path / "runs" / "a", STREAM, SETTINGS)


@pytest.fixture
def begun(run) -> Run:
    """A run with two rows and one of costs in its checkpoint, and one row of each after it."""
    with run.writing():
        for item in (row(0), cost(1), row(1)):
            run.append(item)
        run.save(0, 2, {"w": np.arange(6.0)}, {"next": 2})
        run.append(row(2))
        run.append(cost(3))
    return run


def same(a: object, b: object) -> bool:
    """Compare states: types, order of keys, every bit of arrays and numbers."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(map(repr, a)) == list(map(repr, b)) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    return repr(a) == repr(b)


def test_a_run_is_read_as_it_was_created(run):
    opened = Run.open(str(run.folder))
    assert opened.stream == run.stream == STREAM
    assert opened.settings == run.settings == SETTINGS
    assert not opened.finished
    assert opened.checkpoint() is None
    assert read_rows(run.folder) == read_costs(run.folder) == []
    assert sorted(contents(run.folder)) == ["settings.json", "stream.json"]


def test_rows_are_read_in_order_and_costs_separately(begun):
    assert read_rows(begun.folder) == [row(0), row(1), row(2)]
    assert read_costs(begun.folder) == [cost(1), cost(3)]


def test_a_row_is_seen_by_a_reader_at_once(run):
    with run.writing():
        run.append(row(0))
        assert read_rows(run.folder) == [row(0)]


def test_a_second_session_resumes_from_the_checkpoint(begun):
    again = Run.open(begun.folder)
    with again.writing():
        assert read_rows(begun.folder) == [row(0), row(1)]
        assert read_costs(begun.folder) == [cost(1)]
        again.append(row(7))
    assert read_rows(begun.folder) == [row(0), row(1), row(7)]


def test_without_a_checkpoint_a_run_starts_over(run):
    for _ in range(2):
        with run.writing():
            assert read_rows(run.folder) == read_costs(run.folder) == []
            run.append(row(0))
            run.append(cost(0))


def test_a_checkpoint_returns_what_was_saved(run):
    state = {
        "w": np.asfortranarray(np.arange(6, dtype=">f4").reshape(2, 3)),
        "file": np.float64([np.nan, -0.0]).reshape(2, 1),
        "w.npy": np.zeros((0, 3), bool),
        "allow_pickle": np.array(7),
    }
    values = {"big": 2**63 + 1, "best": float("inf"), "name": "é\n", "none": None, "list": [[]]}
    with run.writing():
        run.save(np.int64(4), 5, state, values)
    read = Run.open(run.folder).checkpoint()
    assert isinstance(read, Checkpoint)
    assert (read.task, read.step, read.values) == (4, 5, values)
    assert same(read.arrays, state)


def test_numpy_alone_reads_a_checkpoint(begun):
    with np.load(begun.folder / "checkpoint.npz", allow_pickle=False) as file:
        assert file["w"].tolist() == [0, 1, 2, 3, 4, 5]


def test_equal_checkpoints_have_equal_bytes(run):
    saved = []
    for _ in range(2):
        with run.writing():
            run.save(0, 0, {"w": np.arange(5)}, {"a": 1})
        saved.append((run.folder / "checkpoint.npz").read_bytes())
    assert saved[0] == saved[1]


def test_every_session_records_its_provenance(begun):
    with Run.open(begun.folder, gpu="Some Card").writing():
        pass
    lines = (begun.folder / "provenance.jsonl").read_text().splitlines()
    assert [json.loads(line)["gpu"] for line in lines] == [None, "Some Card"]
    assert all(json.loads(line)["numpy"] == np.__version__ for line in lines)


def test_a_finished_run_keeps_all_its_rows_and_takes_no_more(begun):
    with begun.writing():
        begun.append(row(8))
        begun.finish({"accuracy": np.float32(0.5)})
    opened = Run.open(begun.folder)
    assert opened.finished
    assert json.loads((begun.folder / "done.json").read_text()) == {"accuracy": 0.5}
    with pytest.raises(ValueError, match="is finished and takes no more rows"):
        opened.writing().__enter__()
    assert read_rows(begun.folder) == [row(0), row(1), row(8)]


def test_numpy_numbers_become_plain(run):
    with run.writing():
        run.append({"kind": "x", "a": np.int64(2**62), "b": (np.float32(0.5), np.bool_(True))})
    text = (run.folder / "rows.jsonl").read_text()
    assert text == '{"kind": "x", "a": 4611686018427387904, "b": [0.5, true]}\n'


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (float("nan"), ValueError, "row/a/0 must be a finite number, found nan"),
        (np.float32("inf"), ValueError, "row/a/0 must be a finite number, found inf"),
        (np.zeros(2), TypeError, "row/a/0 must be .* found ndarray"),
        ({1: 2}, TypeError, "keys of row/a/0 must be text, found 1"),
        (1j, TypeError, "row/a/0 must be .* found complex"),
    ],
)
def test_a_row_that_json_cannot_hold_is_refused_and_leaves_nothing(run, value, error, message):
    with run.writing():
        with pytest.raises(error, match=message):
            run.append({"kind": "test", "a": [value]})
        run.append(row(1))
    assert read_rows(run.folder) == [row(1)]


def test_a_row_without_a_kind_is_refused(run):
    with run.writing(), pytest.raises(ValueError, match="must say its kind"):
        run.append({"step": 1})


@pytest.mark.parametrize(
    ("arrays", "error", "message"),
    [
        ({"w": [1, 2]}, TypeError, "w must be a numpy array, found list"),
        ({"w": np.array([None])}, TypeError, "w must be an array without objects, found object"),
        ({"a\0b": np.zeros(1)}, ValueError, "must be printable text"),
    ],
)
def test_an_invalid_checkpoint_is_refused_and_the_last_kept(begun, arrays, error, message):
    with begun.writing(), pytest.raises(error, match=message):
        begun.save(1, 9, arrays, {})
    assert begun.checkpoint().step == 2


def test_a_run_is_written_only_inside_writing(begun):
    for call in (lambda: begun.append(row(1)), lambda: begun.save(0, 0, {}, {})):
        with pytest.raises(RuntimeError, match=r"inside `with run\.writing\(\):`"):
            call()
    with pytest.raises(RuntimeError):
        begun.finish({})
    assert not begun.finished


def test_a_second_writer_is_refused(begun):
    other = Run.open(begun.folder)
    with begun.writing():
        begun.append(row(5))
        with pytest.raises(BlockingIOError, match=rf"process {os.getpid()}\); wait until it ends"):
            other.writing().__enter__()
        with pytest.raises(BlockingIOError):
            Run.create(begun.folder, STREAM, SETTINGS)
        begun.append(row(6))
    assert read_rows(begun.folder) == [row(0), row(1), row(5), row(6)]
    with other.writing():
        other.append(row(7))


def test_the_same_run_is_not_created_twice(begun):
    before = contents(begun.folder)
    stream = json.dumps({"tasks": 10, "seed": 3}, indent=1)
    for text in (STREAM, stream):
        with pytest.raises(
            FileExistsError,
            match=f"^this run exists; resume it with: everlearn resume {begun.folder}$",
        ):
            Run.create(begun.folder, text, {**SETTINGS, "net": {"sizes": (1, 2), "width": 8}})
    assert contents(begun.folder) == before


def test_a_folder_of_another_run_is_refused_with_what_differs(begun):
    before = contents(begun.folder)
    other = json.dumps({"seed": 4, "tasks": 10, "online": True})
    with pytest.raises(ValueError, match="another run") as info:
        Run.create(begun.folder, other, {**SETTINGS, "lr": 1, "method": "ewc"})
    assert "its stream online is absent, not true; its stream seed is 3, not 4; " in str(info.value)
    assert 'its setting lr is 0.1, not 1; its setting method is "der", not "ewc"' in str(info.value)
    assert contents(begun.folder) == before


def test_a_folder_that_holds_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match=r"holds thesis\.tex and no run; give a new or an empty"):
        Run.create(tmp_path, STREAM, SETTINGS)
    with pytest.raises(NotADirectoryError, match="is a file; give a folder"):
        Run.create(tmp_path / "thesis.tex", STREAM, SETTINGS)
    assert contents(tmp_path) == {"thesis.tex": b"mine"}


def test_a_folder_with_only_another_stream_is_refused_and_unchanged(tmp_path):
    (tmp_path / "stream.json").write_text('{"seed": 1}')
    with pytest.raises(ValueError, match=r"holds stream\.json of another stream and no run"):
        Run.create(tmp_path, STREAM, SETTINGS)
    assert contents(tmp_path) == {"stream.json": b'{"seed": 1}'}


def test_settings_and_streams_that_json_cannot_hold_are_refused(tmp_path):
    with pytest.raises(ValueError, match="settings/lr must be a finite number"):
        Run.create(tmp_path / "x", STREAM, {"lr": float("nan")})
    with pytest.raises(ValueError, match="the stream is not JSON"):
        Run.create(tmp_path / "x", "seed: 3", SETTINGS)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", ["settings.json", "stream.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"a": "\xff"}'])
def test_a_damaged_file_of_a_run_is_named(run, name, content):
    (run.folder / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{re.escape(str(run.folder / name))} .*put back a copy"):
        Run.open(run.folder)


def test_a_folder_without_a_run_cannot_be_opened(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        for function in (Run.open, read_rows, read_costs):
            with pytest.raises(FileNotFoundError, match=r"no run: settings\.json is missing"):
                function(folder)


def test_runs_are_found_below_a_folder(tmp_path):
    folders = [tmp_path / name for name in ("b", "a/10", "a/9", "a/9/inner")]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "settings.json").write_text("{}")
        (folder / "stream.json").write_text("{}")
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode" / "settings.json").write_text("{}")
    assert find_runs(tmp_path) == sorted(folders)
    assert find_runs(tmp_path / "b") == [tmp_path / "b"]
    with pytest.raises(FileNotFoundError, match="is not a folder"):
        find_runs(tmp_path / "c")


@pytest.mark.parametrize("cut", range(1, 12))
def test_an_incomplete_last_line_is_left_out(begun, cut):
    path = begun.folder / "rows.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    assert read_rows(begun.folder) == [row(0), row(1)]


@pytest.mark.parametrize("line", [b'{"kind": "te', b"7", b"", b"\xff"])
def test_a_damaged_line_elsewhere_is_named(begun, line):
    path = begun.folder / "rows.jsonl"
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([lines[0], line, lines[2], b""]))
    with pytest.raises(ValueError, match=r"rows\.jsonl, line 2 is damaged"):
        read_rows(begun.folder)


def test_rows_missing_before_the_checkpoint_are_refused(begun):
    path = begun.folder / "rows.jsonl"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(ValueError, match=r"rows\.jsonl is damaged: it has 50 bytes"):
        begun.writing().__enter__()
    assert path.stat().st_size == 50
    assert not (begun.folder / ".lock").exists()


def test_a_truncated_checkpoint_is_refused_with_advice(begun):
    path = begun.folder / "checkpoint.npz"
    whole = path.read_bytes()
    rows = read_rows(begun.folder)
    for keep in range(0, len(whole), 7):
        path.write_bytes(whole[:keep])
        for read in (begun.checkpoint, begun.writing().__enter__):
            with pytest.raises(ValueError, match=r"checkpoint\.npz is damaged .*or delete it"):
                read()
    assert read_rows(begun.folder) == rows
    path.unlink()
    with begun.writing():
        assert read_rows(begun.folder) == []


def test_a_flipped_bit_is_refused_or_harmless(begun):
    path = begun.folder / "checkpoint.npz"
    whole = path.read_bytes()
    expected = begun.checkpoint()
    found = []
    for place in range(len(whole)):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        found.append(read_or_refuse(begun))
    read = [item for item in found if isinstance(item, Checkpoint)]
    assert all(same(tuple(item), tuple(expected)) for item in read)
    assert len(read) < len(whole) / 2


def read_or_refuse(run: Run) -> Checkpoint | str:
    """Read a damaged checkpoint, or what is said of it."""
    try:
        return run.checkpoint()
    except ValueError as error:
        return re.search(r"checkpoint\.npz (is damaged|has checkpoint format)", str(error))[0]


def test_the_checkpoint_of_another_run_is_refused(begun, tmp_path):
    for stream, changes in ((STREAM, {"lr": 0.2}), ('{"seed": 4}', SETTINGS)):
        other = Run.create(tmp_path / str(len(stream)), stream, changes)
        shutil.copy(begun.folder / "checkpoint.npz", other.folder)
        for read in (other.checkpoint, other.writing().__enter__):
            with pytest.raises(ValueError, match=r"checkpoint\.npz belongs to another run"):
                read()


def test_a_checkpoint_of_a_later_version_is_refused(begun, monkeypatch):
    monkeypatch.setattr("everlearn.runs.checkpoint._FORMAT", 0)
    with pytest.raises(ValueError, match=r"has checkpoint format 1; .* reads 0: update everlearn"):
        begun.checkpoint()


def test_a_pickle_in_a_checkpoint_is_not_opened(begun):
    path = begun.folder / "checkpoint.npz"
    with np.load(path) as file:
        header = file["checkpoint.json"]
    np.savez(path, w=np.array([print], dtype=object))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("checkpoint.json", header)
    with pytest.raises(ValueError, match=r"damaged \(Object arrays cannot be loaded"):
        begun.checkpoint()


class Trip:
    """Stands in for a function of `os` and raises at its n-th call."""

    def __init__(self, function, call: int, error: BaseException) -> None:
        self.function, self.left, self.error = function, call, error

    def __call__(self, *args):
        self.left -= 1
        if self.left == 0:
            raise self.error
        return self.function(*args)


@pytest.mark.parametrize("name", ["fsync", "replace"])
@pytest.mark.parametrize("call", [1, 2, 3])
def test_a_full_disk_is_explained_and_the_last_checkpoint_kept(begun, name, call, monkeypatch):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with begun.writing():
        begun.append(row(5))
        with monkeypatch.context() as patch:
            trip = Trip(getattr(os, name), 1 if name == "replace" else call, full)
            patch.setattr(os, name, trip)
            with pytest.raises(OSError, match="No space left on device") as info:
                begun.save(1, 9, {"w": np.zeros(9)}, {})
        assert info.value.errno == errno.ENOSPC
        assert "could not write checkpoint.npz" in str(info.value)
        assert "the last checkpoint is kept: free space there and resume" in str(info.value)
    assert begun.checkpoint().step == 2
    assert not [name for name in contents(begun.folder) if name.startswith(".")]


LIMITED = """
import resource, sys
import numpy as np
from everlearn.runs import Run, read_rows
run = Run.open(sys.argv[1])
with run.writing():
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000,) * 2)
    for call in (lambda: run.save(1, 9, {"w": np.zeros(10**7)}, {}),
                 lambda: run.append({"kind": "test", "text": 30_000 * "x"})):
        try:
            call()
        except OSError as error:
            print(error)
    run.append({"kind": "test", "step": 5})
"""


def test_a_failed_write_leaves_no_partial_file(begun):
    command = [sys.executable, "-c", LIMITED, begun.folder]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    first, second = ended.stdout.splitlines()
    for text, name in ((first, "checkpoint.npz"), (second, "rows.jsonl")):
        assert f"could not write {name} to {begun.folder} (File too large)" in text
        assert "the last checkpoint is kept: raise the limit on the size of files" in text
    assert begun.checkpoint().step == 2
    assert read_rows(begun.folder) == [row(0), row(1), {"kind": "test", "step": 5}]
    assert not [name for name in contents(begun.folder) if name.startswith(".")]


CHILD = """
import os, signal, sys
import numpy as np
from everlearn.runs import Run, read_costs, read_rows
folder, stream, name, left = *sys.argv[1:4], int(sys.argv[4])

def kill_at(real):
    def call(*args):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args)
    return call

if left:
    setattr(os, name, kill_at(getattr(os, name)))
try:
    run = Run.create(folder, stream, {"method": "none"})
except FileExistsError:
    run = Run.open(folder)
with run.writing():
    saved = run.checkpoint()
    start = saved.step if saved else 0
    assert [row["step"] for row in read_rows(folder)] == list(range(start))
    assert [row["step"] for row in read_costs(folder)] == list(range(0, start, 3))
    assert saved is None or saved.values == {"next": start}
    assert saved is None or (saved.arrays["w"] == np.arange(start, start + 5000)).all()
    print(start, flush=True)
    for step in range(start, 10**9):
        run.append({"kind": "test", "step": step, "text": step % 50 * "x"})
        if step % 3 == 0:
            run.append({"kind": "task", "step": step})
        if step % 7 == 6:
            run.save(0, step + 1, {"w": np.arange(step + 1, step + 5001)}, {"next": step + 1})
"""


def start(folder: Path, name: str = "", call: int = 0) -> subprocess.Popen[str]:
    """Start a process that writes rows and checkpoints until it is killed."""
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder), STREAM, name, str(call)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def check_after_kill(folder: Path) -> int:
    """Check that a run is a run and its rows those that its checkpoint covers; return how many."""
    steps = [row["step"] for row in read_rows(folder)]
    assert steps == list(range(len(steps)))
    run = Run.open(folder)
    with run.writing():
        saved = run.checkpoint()
        covered = saved.step if saved else 0
        assert covered <= len(steps)
        assert [row["step"] for row in read_rows(folder)] == list(range(covered))
        assert [row["step"] for row in read_costs(folder)] == list(range(0, covered, 3))
    assert not [name for name in contents(folder) if name.startswith(".")]
    return covered


@pytest.mark.slow
def test_kills_at_random_moments_lose_only_rows_after_the_checkpoint(tmp_path):
    moments = random.Random(0)
    covered = [0]
    for _ in range(8):
        with start(tmp_path / "run") as process:
            assert process.stdout.readline() == f"{covered[-1]}\n", process.stderr.read()
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(moments.uniform(0.02, 0.3))
            process.kill()
            assert process.wait(60) == -signal.SIGKILL
        covered.append(check_after_kill(tmp_path / "run"))
    assert covered == sorted(covered)
    assert covered[-1] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("fsync", (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20)),
        ("replace", (1, 2, 3, 4, 9)),
        ("open", (1, 2, 3, 4, 5, 9)),
        ("unlink", (1, 2, 3, 4, 5, 9)),
        ("ftruncate", (1, 2, 3, 4)),
        ("write", (1, 2)),
    ],
)
def test_a_kill_at_any_call_leaves_a_run_or_none(tmp_path, name, calls):
    for call in calls:
        folder = tmp_path / str(call)
        with start(folder, name, call) as process:
            assert process.wait(60) == -signal.SIGKILL, process.stderr.read()
        if not (folder / "settings.json").exists():
            Run.create(folder, STREAM, {"method": "none"})
        check_after_kill(folder)


def test_an_incomplete_run_can_be_created_again(tmp_path):
    with start(tmp_path / "run", "replace", 2) as process:
        assert process.wait(60) == -signal.SIGKILL
    left = {".lock", f".settings.json.{process.pid}.tmp", "stream.json"}
    assert set(contents(tmp_path / "run")) == left
    Run.create(tmp_path / "run", STREAM, SETTINGS)
    assert set(contents(tmp_path / "run")) == {"settings.json", "stream.json"}


KEYS = st.text(st.characters(blacklist_characters="/", codec="utf-8")) | st.integers()
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(2**53, 2**200)
    | st.floats()
    | st.text()
    | st.sampled_from(["#", "#tuple", "##1", "#1"])
    | arrays_of.arrays(
        st.sampled_from(["?", "<i8", ">f4", "f2", "c16", "U3", "M8[s]"]),
        arrays_of.array_shapes(min_dims=0, min_side=0),
    )
)
MARKS = st.sampled_from(["", "#", "#tuple", "##", "#1", "0", "1"])
STATES = st.dictionaries(
    KEYS | MARKS,
    st.recursive(
        LEAVES,
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(KEYS | MARKS, inner)
            | st.lists(inner).map(tuple)
            | st.dictionaries(st.just("#tuple"), inner)
        ),
        max_leaves=12,
    ),
)


@given(STATES)
@settings(max_examples=100)
def test_a_state_is_restored_exactly(state):
    arrays, values = flatten(state)
    assert same(unflatten(arrays, json.loads(json.dumps(values))), state)


def test_arrays_are_named_by_their_path():
    w = np.zeros(2)
    m = np.ones(3)
    arrays, values = flatten({"net": {"w": w, "lr": 0.1}, "memory": [None, (m,)], "adam": {0: w}})
    assert list(arrays) == ["net/w", "memory/1/#tuple/0", "adam/#0"]
    assert arrays["net/w"] is w
    assert values["net"] == {"w": None, "lr": 0.1}


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"net": [object()]}, "net/0 must be a numpy array.*found object"),
        ({"net": {"w": np.array([None])}}, "net/w must be an array without objects"),
        ({"net": {"lr": np.float64(1)}}, "net/lr must be .* found float64"),
        ({"net": np.ma.masked_array([1])}, "net must be a numpy array, found MaskedArray"),
        ({"net": {"a/b": 1}}, "found 'a/b' in net"),
        ({True: 1}, "found True in the state"),
        ([1], "a state must be a dict, found list"),
    ],
)
def test_values_that_cannot_be_restored_are_refused_by_name(state, message):
    with pytest.raises(TypeError, match=message):
        flatten(state)


def test_an_array_without_a_place_is_named():
    with pytest.raises(ValueError, match="no place in the state: b, c"):
        unflatten({"a": np.zeros(1), "c": np.zeros(1), "b": np.zeros(1)}, {"a": None, "b": 1})


@pytest.fixture
def packed(begun) -> Run:
    """A finished run with packed rows."""
    with begun.writing():
        begun.finish({})
    pack(begun.folder)
    return begun


def test_a_packed_run_is_read_as_before(packed):
    assert set(contents(packed.folder)) >= {"rows.jsonl.gz", "costs.jsonl.gz"}
    assert not {"rows.jsonl", "costs.jsonl", ".lock"} & set(contents(packed.folder))
    assert read_rows(packed.folder) == [row(0), row(1)]
    assert read_costs(packed.folder) == [cost(1)]
    assert Run.open(packed.folder).finished


def test_packing_a_run_twice_changes_nothing(packed):
    before = contents(packed.folder)
    pack(packed.folder)
    assert contents(packed.folder) == before


def test_a_packed_finished_run_is_refused_as_finished(packed):
    with pytest.raises(ValueError, match="is finished and takes no more rows"):
        packed.writing().__enter__()


def test_a_packed_unfinished_run_is_resumed_only_after_gunzip(begun):
    pack(begun.folder)
    before = contents(begun.folder)
    with pytest.raises(ValueError, match=r"rows\.jsonl\.gz is packed .*; gunzip it first"):
        begun.writing().__enter__()
    assert contents(begun.folder) == before


def test_a_run_that_is_being_written_is_not_packed(begun):
    with begun.writing(), pytest.raises(BlockingIOError):
        pack(begun.folder)
    assert read_rows(begun.folder) == [row(0), row(1)]


def test_a_folder_without_a_run_is_not_packed(tmp_path):
    (tmp_path / "rows.jsonl").write_text("{}\n")
    with pytest.raises(FileNotFoundError, match="no run"):
        pack(tmp_path)
    assert set(contents(tmp_path)) == {"rows.jsonl"}
