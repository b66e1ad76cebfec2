"""The command line: what it writes, and one line with exit code 2 for every mistake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from typer.testing import CliRunner

import everlearn
from everlearn import Canvas, Latents, Stream
from everlearn.cli import app, main
from everlearn.cli.export import parse_tasks
from everlearn.cli.options import STREAM_OPTIONS
from everlearn.cli.stream_options import build_stream, parse_scenario
from everlearn.stream.export import read
from everlearn.stream.named import STREAMS
from everlearn.stream.scenarios.incremental import SCENARIOS, DomainIncremental, Recurring

from ..conftest import call

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
PICTURES = ("shapes", "factors", "sweep", "stream", "scenario")
SMALL = ("--tasks", "2", "--classes", "2", "--values", "2", "--size", "16")
NOTHING = dict.fromkeys(STREAM_OPTIONS)


def python(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A real run in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")} | more
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def check_complaint(code: int, errors: str) -> None:
    """One line, no traceback."""
    assert code == 2
    assert errors.startswith("error: ")
    assert len(errors.strip().splitlines()) == 1


def test_help_names_every_command():
    answer = CliRunner().invoke(app, ["--help"])
    assert answer.exit_code == 0
    for name in ("quickstart", "draw", "export", "bench"):
        assert name in answer.output


@pytest.mark.parametrize("arguments", [[], ["draw"], ["bench"]])
def test_without_a_command_there_is_help(arguments):
    answer = CliRunner().invoke(app, arguments)
    assert answer.exit_code == 0
    assert "Usage" in answer.output


def test_the_version_is_the_package_s():
    answer = CliRunner().invoke(app, ["--version"])
    assert answer.output == f"everlearn {everlearn.__version__}\n"


def test_the_command_line_runs_from_a_checkout():
    answer = python("-m", "everlearn", "--version")
    assert (answer.returncode, answer.stdout) == (0, f"everlearn {everlearn.__version__}\n")


def test_help_is_fast_and_loads_nothing_heavy():
    code = (
        "import time, sys; s = time.perf_counter(); from everlearn.cli import run; run(['--help']); "
        "heavy = {'torch', 'numba', 'PIL', 'numpy'} & set(sys.modules); "
        "print(time.perf_counter() - s, len(heavy))"
    )
    runs = [python("-c", code).stdout.splitlines()[-1].split() for _ in range(3)]
    assert median(float(seconds) for seconds, _ in runs) < 0.5
    assert {heavy for _, heavy in runs} == {"0"}


@pytest.mark.parametrize("what", PICTURES)
def test_every_picture_can_be_drawn(what, tmp_path):
    path = tmp_path / "new" / f"a.{'gif' if what == 'stream' else 'png'}"
    code, out, errors = call("draw", what, "--out", path, *SMALL)
    assert (code, errors) == (0, "")
    assert str(path) in out
    with Image.open(path) as picture:
        assert picture.format == path.suffix[1:].upper()
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_options_left_out_give_the_usual_stream():
    assert build_stream(NOTHING) == Stream()


@pytest.mark.parametrize(
    "name", [n for n, c in STREAM_OPTIONS.items() if c.default and n != "data"]
)
def test_the_default_shown_is_the_stream_s(name):
    kind, text, _ = STREAM_OPTIONS[name]
    value = not text.startswith("no-") if kind is bool else kind(text)
    assert build_stream(NOTHING | {name: value}) == Stream()


def test_options_reach_their_settings():
    given = {
        "seed": 3,
        "tasks": 7,
        "classes": 4,
        "values": 3,
        "size": 32,
        "channels": 3,
        "colors": "red, #0000ff",
        "background": "black",
        "no-mark": True,
        "parity": True,
        "scenario": "domain:factor=scale,bands=3",
        "online": True,
        "imbalance": 2.0,
        "split": "0.5,0.25,0.25",
        "orientation-grid": "even",
        "first-class": 100,
    }
    assert build_stream(NOTHING | given) == Stream(
        seed=3,
        tasks=7,
        classes_per_task=4,
        values_per_factor=3,
        canvas=Canvas(32, 3, "black", ("red", "blue"), None, parity=True),
        scenario=DomainIncremental("scale", 3),
        online=True,
        imbalance=2.0,
        split=(0.5, 0.25, 0.25),
        orientation_grid="even",
        first_class=100,
    )


def test_a_stream_file_is_read_and_options_change_it(tmp_path):
    path = tmp_path / "stream.json"
    path.write_text(Stream(seed=5, classes_per_task=3, online=True).to_json())
    assert build_stream(NOTHING | {"stream": path}) == Stream(5, classes_per_task=3, online=True)
    changed = build_stream(NOTHING | {"stream": path, "seed": 6, "online": False})
    assert changed == Stream(6, classes_per_task=3)


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_may_be_given_by_its_name(name):
    assert build_stream(NOTHING | {"stream": Path(name)}) == STREAMS[name]


def test_options_change_a_stream_of_latents():
    given = NOTHING | {"stream": Path("latents-nc"), "seed": 3, "classes": 8}
    assert build_stream(given) == Latents(3, classes_per_task=8)
    assert build_stream(NOTHING | {"scenario": "nic"}, Latents()) == Latents(scenario="nic")
    fewer = NOTHING | {"scenario": "nic", "tasks": 20}
    assert build_stream(fewer, Latents()) == Latents(scenario="nic", tasks=20)
    with pytest.raises(ValueError, match=r"--size is for images; .* allows: .*scenario"):
        build_stream(NOTHING | {"size": 8}, Latents())


@pytest.mark.parametrize("what", ["factors", "scenario"])
def test_latents_are_not_drawn(what, tmp_path):
    told = call("draw", what, "--stream", "latents-nc", "--out", tmp_path / "x.png")
    assert told.code != 0
    assert "points and latents are no images to draw" in told.errors


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_works_by_its_name_alone(name):
    assert build_stream(NOTHING | {"scenario": name}).scenario.name == name


def test_a_scenario_may_carry_settings():
    assert parse_scenario("recurring:share=0.25") == Recurring(0.25)


@pytest.mark.parametrize(
    ("text", "tasks"), [("3", [3]), ("0:3", [0, 1, 2]), ("5, 1,7:9", [5, 1, 7, 8])]
)
def test_tasks_are_read(text, tasks):
    assert parse_tasks(text, 9) == tasks


BAD = [
    "draw nothing",
    "draw shapes --size abc",
    "draw shapes --size 0",
    "draw shapes --size -64",
    "draw shapes --unknown 1",
    "draw shapes --scenario incremental",
    "draw shapes --scenario recurring:share=2",
    "draw shapes --scenario recurring:share",
    "draw shapes --scenario recurring:part=0.5",
    "draw shapes --colors red,pinkish",
    "draw shapes --background #12345",
    "draw shapes --mark red --no-mark",
    "draw shapes --imbalance nan",
    "draw shapes --imbalance inf",
    "draw shapes --min-distance nan",
    "draw shapes --min-distance 0.499",
    "draw shapes --split 1,2",
    "draw shapes --split a,b,c",
    "draw shapes --split 6000,150,101",
    "draw shapes --test somewhere",
    "draw shapes --orientation-grid odd",
    "draw shapes --channels 2",
    "draw shapes --seed -1",
    "draw shapes --seed 18446744073709551616",
    "draw shapes --tasks 0",
    "draw shapes --values 65",
    "draw shapes --first-class -1",
    "draw shapes --count 0",
    "draw shapes --columns 0",
    "draw shapes --out .",
    "draw shapes --out a.jpg",
    "draw shapes --out here/a.png",
    "draw shapes --stream missing.json",
    "draw shapes --stream .",
    "draw shapes --stream here",
    "draw shapes --stream newer.json",
    "draw shapes --stream binary.json",
    "draw shapes --stream nan.json",
    "draw shapes --name mnist --data missing",
    "draw shapes --name mnist --stream newer.json",
    "draw factors --name letters",
    "draw factors --name mnist --values 3",
    "draw factors --data .",
    "draw factors --task 500",
    "draw sweep --shape -1",
    "draw sweep --shape 18446744073709551616",
    "draw stream --out a.png",
    "draw stream --seconds nan",
    "draw stream --start -1",
    "draw scenario --images 0",
    "draw scenario --scenario nic --tasks 392",
    "export",
    "export here",
    "export new --format zip",
    "export new --only 9:",
    "export new --only 500",
    "export new --only 5:5",
    "export new --only 0:99999999999999",
    "export new --stream endless",
    "bench render --device tpu",
    "bench render --device cuda:99",
    "bench render --seconds nan",
    "bench render --seconds 0",
    "bench render --size 64,0",
    "quickstart --out here",
    "quickstart --seed x",
]


@pytest.mark.parametrize("line", BAD)
def test_a_mistake_is_one_line_and_leaves_nothing(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVERLEARN_DATA", raising=False)
    (tmp_path / "here").write_text("not a stream")
    (tmp_path / "newer.json").write_text(json.dumps({"everlearn_stream": 99}))
    (tmp_path / "nan.json").write_text('{"everlearn_stream": 1, "imbalance": NaN}')
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    before = set(tmp_path.rglob("*"))
    code, out, errors = call(*line.split())
    check_complaint(code, errors)
    assert out == ""
    assert set(tmp_path.rglob("*")) == before


def test_a_mistake_shows_no_traceback_in_a_real_run(tmp_path):
    answer = python(
        "-m", "everlearn", "draw", "shapes", "--size", "0", "--out", f"{tmp_path}/a.png"
    )
    check_complaint(answer.returncode, answer.stderr)
    assert "canvas size must lie in 4 .. 1024 pixels, found 0" in answer.stderr


def test_odd_characters_do_not_break_the_line(tmp_path):
    code, _, errors = call("draw", "shapes", "--out", f"{tmp_path}/a\n\x1b[2J\udc80.txt")
    check_complaint(code, errors)
    assert "\x1b" not in errors


def test_an_interrupt_ends_with_130(monkeypatch, tmp_path):
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("everlearn.stream.preview.shape_sheet", stop)
    code, _, errors = call("draw", "shapes", "--out", tmp_path / "a.png")
    assert (code, errors) == (130, "error: stopped by hand\n")
    assert not list(tmp_path.iterdir())


def test_main_leaves_with_the_exit_code():
    with pytest.raises(SystemExit) as leave:
        main(["--version"])
    assert leave.value.code == 0


@pytest.mark.parametrize("format", ["npz", "png", "tar"])
def test_an_export_reads_back_equal(format, tmp_path):
    code, out, _ = call("export", tmp_path / "data", "--format", format, *SMALL)
    assert code == 0
    assert str(tmp_path / "data") in out
    stream = Stream(tasks=2, classes_per_task=2, values_per_factor=2, canvas=Canvas(size=16))
    for mine, theirs in zip(stream, read(tmp_path / "data"), strict=True):
        one, two = (task.train.batch(slice(None)) for task in (mine, theirs))
        assert (one.images == two.images).all()
        assert (one.labels == two.labels).all()


def test_an_export_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    from everlearn.stream.sprites import stream as spec

    make = spec.build_task

    def stop_at_one(stream: Stream, index: int) -> object:
        if index == 1:
            raise KeyboardInterrupt
        return make(stream, index)

    monkeypatch.setattr(spec, "build_task", stop_at_one)
    assert call("export", tmp_path / "data", *SMALL)[0] == 130
    first = tmp_path / "data" / "task_000000.npz"
    written = first.stat().st_mtime_ns
    monkeypatch.setattr(spec, "build_task", make)
    assert call("export", tmp_path / "data", *SMALL)[0] == 0
    assert first.stat().st_mtime_ns == written
    assert (tmp_path / "data" / "task_000001.npz").exists()


def test_some_tasks_can_be_exported(tmp_path):
    call("export", tmp_path / "data", "--only", "1", *SMALL)
    assert [p.name for p in sorted((tmp_path / "data").glob("*.npz"))] == ["task_000001.npz"]


def test_a_data_set_can_be_drawn_and_exported(tmp_path):
    folder = tmp_path / "MNIST" / "raw"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for part, count in (("train", 100), ("t10k", 20)):
        images = rng.integers(0, 256, (count, 28, 28), np.uint8)
        head = np.array([2051, count, 28, 28], ">i4").tobytes()
        (folder / f"{part}-images-idx3-ubyte").write_bytes(head + images.tobytes())
        labels = (np.arange(count) % 10).astype(np.uint8)
        head = np.array([2049, count], ">i4").tobytes()
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(head + labels.tobytes())
    data = ("--name", "mnist", "--data", tmp_path)
    for what in ("factors", "scenario"):
        assert call("draw", what, "--out", tmp_path / f"{what}.png", *data)[0] == 0
    assert call("draw", "stream", "--out", tmp_path / "a.gif", *data)[0] == 0
    check_complaint(*call("draw", "shapes", "--out", tmp_path / "a.png", *data)[::2])
    assert call("export", tmp_path / "data", "--only", "0", *data)[0] == 0


def test_speeds_are_measured():
    code, out, _ = call("bench", "render", "--size", "64,128", "--seconds", "0.01")
    assert code == 0
    assert "128 x 128" in out


NUMBERS = st.one_of(
    st.integers(-3, 70), st.integers(), st.floats(), st.sampled_from([2**63, 2**64, 2**64 - 1])
)
VALUES = st.one_of(
    NUMBERS.map(str),
    st.text(st.characters(exclude_characters="\0"), max_size=12),
    st.sampled_from(
        ["", "red", "red,blue", "#00ff00", "nic", "domain:bands=3", "even", "continuous"]
    ),
)
FUZZED = (*STREAM_OPTIONS, "count", "columns", "unheard-of")


@pytest.mark.slow
@settings(max_examples=150)
@given(
    st.dictionaries(st.sampled_from(FUZZED), VALUES, max_size=4), st.sampled_from(["", "--no-mark"])
)
def test_whatever_is_typed_ends_well(typed, flag):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.png"
        words = [word for name, value in typed.items() for word in (f"--{name}", value)]
        base = ["draw", "shapes", "--count", "2", "--out", str(path)]
        code, _, errors = call(*base, *words, *([flag] if flag else []))
        if code == 0:
            with Image.open(path) as picture:
                picture.verify()
            assert list(Path(folder).iterdir()) == [path]
        else:
            check_complaint(code, errors)
            assert not list(Path(folder).iterdir())
