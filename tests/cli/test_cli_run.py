"""The command line of learning: runs, their settings, what a stop leaves, and what is said."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import struct
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from everlearn.cli.method_options import parse_methods
from everlearn.cli.methods import option
from everlearn.cli.options import PLAN_FIELDS, PLAN_OPTIONS
from everlearn.cli.progress import RunProgress, show_progress
from everlearn.cli.values import format_value, list_types, parse_value
from everlearn.core.settings import describe_settings, list_settings
from everlearn.evaluation import Plan
from everlearn.evaluation.costs import DivergedError
from everlearn.methods import METHODS
from everlearn.render.canvas import Canvas
from everlearn.runs import Run, presets, read_rows
from everlearn.runs import launch as runs
from everlearn.runs.presets import PRESETS, find_preset
from everlearn.stream import Stream

from ..conftest import call

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
STREAM = ("--tasks", "2", "--classes", "3", "--values", "3", "--size", "16")
TINY = (*STREAM, "--net", "convnet", "--epochs", "1", "--one-shot", "none", "--device", "cpu")


def complaint(*arguments: object) -> str:
    """The one line that a command ends with, without a traceback and without results."""
    code, out, errors = call(*arguments)
    assert (code, out) == (2, "")
    assert errors.startswith("error: ")
    assert len(errors.splitlines()) == 1
    return errors


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing around the tests pass for a terminal."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


def settings_of(folder: Path) -> dict[str, object]:
    return json.loads((folder / "settings.json").read_text())


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of four tasks, never stopped."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert call("run", "dcl", *TINY, "--tasks", 4, "--out", folder)[0] == 0
    return folder


def test_a_run_learns_tests_and_says_where_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, errors = call("run", "fine-tuning", *TINY, "--seed", 3)
    folder = Path("out/runs/fine-tuning-small-seed3")
    assert code == 0
    assert str(folder) in out
    assert Run.open(folder).finished
    tested = [(r["learned"], r["tested"]) for r in read_rows(folder) if r["kind"] == "test"]
    assert tested == [(0, 0), (1, 0), (1, 1)]
    assert [line.split(",")[1] for line in errors.splitlines()] == [
        " seed 3: task 1 of 2",
        " seed 3: task 2 of 2",
    ]


def test_options_reach_stream_plan_and_settings(tmp_path):
    typed = (
        "--learning-rate=0.01 --final-learning-rate 0.002 --no-reset-optimizer --crop none --jitter 0.5 "
        "--masked-entries 2"
    )
    plan = (
        "--every 2 --test-images-per-task 5 --future-tasks 1 --no-within-task --probe-every 3 "
        "--one-shot 2,3 --final-after 1"
    )
    code, *_ = call("run", *typed.split(), "dcl", *TINY, *plan.split(), "--out", tmp_path / "run")
    assert code == 0
    kept = settings_of(tmp_path / "run")
    usual = list_settings(METHODS["dcl"].settings()) | PRESETS["small"].settings_of("dcl")
    assert kept["settings"] == usual | {
        "learning_rate": 0.01,
        "final_learning_rate": 0.002,
        "reset_optimizer": False,
        "crop": None,
        "jitter": 0.5,
        "masked_entries": 2,
        "net": "convnet",
        "epochs": 1,
    }
    changed = {
        "every": 2,
        "test_images_per_task": 5,
        "future_tasks": 1,
        "within_task": False,
        "probe_every": 3,
    }
    changed |= {"one_shot": [2, 3], "final_after": [1]}
    assert kept["plan"] == list_settings(PRESETS["small"].plan) | changed
    stream = Stream.from_json((tmp_path / "run" / "stream.json").read_text())
    assert stream == Stream(
        tasks=2, classes_per_task=3, values_per_factor=3, canvas=Canvas(size=16)
    )


def test_the_rate_of_gradient_descent_is_not_given_to_a_method_that_has_adam_alone():
    usual = list_settings(METHODS["contrastive"].settings())
    found = usual | PRESETS["toy"].settings_of("contrastive")
    assert [found[name] for name in ("learning_rate", "final_learning_rate")] == [
        usual[name] for name in ("learning_rate", "final_learning_rate")
    ]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_new_net_of_gdumb_goes_through_its_memory_often_enough_to_learn(preset):
    usual = list_settings(METHODS["gdumb"].settings())
    assert (usual | PRESETS[preset].settings_of("gdumb"))["epochs"] >= 32


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_decides_what_is_not_typed(preset, tmp_path, monkeypatch):
    asked = {}

    def start(folder, method, stream, plan, device, save_seconds, **settings):
        asked.update(stream=stream, plan=plan, settings=settings)
        raise ValueError("enough")

    monkeypatch.setattr(runs, "start", start)
    complaint("run", "dcl", "--preset", preset, "--out", tmp_path / "run")
    found = find_preset(preset)
    assert asked == {
        "stream": found.stream,
        "plan": found.plan,
        "settings": found.settings_of("dcl"),
    }


def test_a_setting_without_a_method_s_name_is_for_all_that_have_it():
    typed = (
        "dcl joint --lr 0.5 --no-reset-optimizer --jitter 1 --joint.retrain-every 5 --dcl.epochs=2"
    )
    assert parse_methods(typed.split()) == {
        "dcl": {"learning_rate": 0.5, "reset_optimizer": False, "jitter": 1.0, "epochs": 2},
        "joint": {"learning_rate": 0.5, "reset_optimizer": False, "retrain_every": 5},
    }


def test_the_last_of_two_equal_options_counts():
    assert parse_methods(["dcl", "--reset-optimizer", "--reset-optimizer=no"]) == {
        "dcl": {"reset_optimizer": False}
    }


@pytest.mark.parametrize("method", METHODS)
def test_every_setting_can_be_typed_at_its_usual_value(method):
    settings = METHODS[method].settings()
    usual, kinds = list_settings(settings), list_types(settings)
    read = {name: parse_value(format_value(usual[name]), kinds[name], name) for name in usual}
    assert read == usual
    assert {name: type(value) for name, value in read.items()} == {
        name: type(value) for name, value in usual.items()
    }
    typed = [f"--{method}.{name.replace('_', '-')}={format_value(usual[name])}" for name in usual]
    assert parse_methods([method, *typed]) == {method: usual}


def test_the_options_of_exams_are_the_plan_s():
    words = describe_settings(Plan())
    names = [PLAN_FIELDS.get(name, name.replace("-", "_")) for name in PLAN_OPTIONS]
    assert names == [item.name for item in fields(Plan)]
    for name, choice in zip(names, PLAN_OPTIONS.values(), strict=True):
        start = choice.help.split(";")[0].split(":")[0].rstrip(".").lower()
        assert words[name].startswith(start)


def test_a_run_can_be_evaluated_on_validation_images(tmp_path):
    toy = ("run", "fine-tuning", "--preset", "toy", "--tasks", 2, "--device", "cpu")
    assert call(*toy, "--eval-split", "val", "--out", tmp_path / "val")[0] == 0
    assert {row["split"] for row in read_rows(tmp_path / "val")} == {"val"}
    assert "unknown split 'train'; known: test, val" in complaint(*toy, "--eval-split", "train")


def test_a_preset_s_tests_of_new_classes_are_left_out_on_validation_images(tmp_path):
    folder = tmp_path / "val"
    typed = ("--eval-split", "val", "--split", "0.8,0.1,0.1", *TINY[:-4], "--device", "cpu")
    assert call("run", "dcl", *typed, "--out", folder)[0] == 0
    assert settings_of(folder)["plan"]["one_shot"] == []


WRONG = {
    "run": "name a method; known: dcl",
    "run derp": "unknown method 'derp'; known: dcl",
    "run derp --foo 3": "unknown method 'derp'; known: dcl",
    "run dcl joint": "everlearn compare dcl joint",
    "run dcl --foo 3": "unknown option --foo; settings of dcl: --batch-size",
    "run dcl --foo=3": "unknown option --foo",
    "run dcl -x": "unknown option -x",
    "run joint --jitter 1": "unknown option --jitter; settings of joint: --batch-size",
    "run dcl --joint.retrain-every 2": "--joint.retrain-every is for the method 'joint'; these learn: dcl",
    "run dcl --learning-rate": "--learning-rate needs a value",
    "run dcl --learning-rate fast": "--learning-rate must be a number, found 'fast'",
    "run dcl --learning-rate nan": "learning_rate must lie in 0 .. 1000.0, found nan",
    "run dcl --epochs 1.5": "--epochs must be a whole number, found '1.5'",
    "run dcl --epochs 0": "epochs must lie in 1 ..",
    "run dcl --reset-optimizer=maybe": "--reset-optimizer must be yes or no, found 'maybe'",
    "run dcl --crop wide": "--crop must be a number or none, found 'wide'",
    "run dcl --net vgg": "unknown net 'vgg'; known: resnet18",
    "run dcl --every 0": "every must lie in 1 ..",
    "run dcl --one-shot 10,x": "--one-shot must be a whole number, found 'x'",
    "run dcl --test-images-per-task some": "--test-images-per-task must be a whole number or none",
    "run dcl --preset huge": "unknown preset 'huge'; known: toy, latents-nc, latents-nic, ",
    "run dcl --device tpu": "tpu",
    "run dcl --device cuda:99": "cuda:99",
    "run dcl --save-seconds -1": "save-seconds",
    "run dcl --save-seconds nan": "save-seconds",
    "run dcl --size 3": "canvas size",
    "run dcl --out here": "here is a file",
    "run joint --online --out new": "online",
    "run dcl --online --out new": "one pass is allowed, found epochs=5; give epochs=1",
    "run dcl --one-shot 1 --out new": "one_shot must lie in 2 ..",
    "compare dcl joint --joint.net vgg --out new": "unknown net 'vgg'",
    "resume": "Missing argument",
    "resume missing": "missing holds no run: settings.json is missing",
    "resume here": "here holds no run",
    "compare derp": "unknown method 'derp'",
    "compare --seeds 0,x": "--seeds must be a whole number, found 'x'",
    "compare --seeds 1,1": "--seeds must be different whole numbers",
    "compare --seeds none": "--seeds must be different whole numbers",
    "compare --seed 3": "--seeds 3, not --seed",
    "compare --runs missing": "missing",
    "compare --runs .": "holds no run",
    "compare dcl --runs .": "leave methods, stream and evaluation out",
    "compare --tasks 3 --runs .": "leave methods, stream and evaluation out",
    "report": "Missing argument",
    "report missing": "missing",
    "report .": "holds no run",
    "methods derp": "unknown method 'derp'; known: dcl",
    "quickstart --device tpu": "tpu",
}


@pytest.mark.parametrize("line", WRONG)
def test_a_mistake_is_one_line_and_leaves_nothing(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").write_text("a file")
    assert WRONG[line] in complaint(*line.split())
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


TYPED = st.one_of(
    st.sampled_from(
        [
            *METHODS,
            "--learning-rate",
            "--reset-optimizer",
            "--no-reset-optimizer",
            "--joint.retrain-every",
            "--crop=none",
        ]
    ),
    st.sampled_from(
        ["--", "-", "--=", "--.", "--dcl.", "--no-", "--learning-rate=", "1", "none", ""]
    ),
    st.text(max_size=6),
)


@given(st.lists(TYPED, max_size=5))
def test_whatever_is_typed_is_read_or_refused(words):
    with contextlib.suppress(ValueError):
        assert set(parse_methods(words)) <= set(METHODS)


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    """MNIST with four images of every class to train on, and one to test on."""
    for part, each in (("train", 4), ("t10k", 1)):
        labels = np.tile(np.arange(10, dtype=np.uint8), each)
        images = np.random.default_rng(0).integers(0, 256, (len(labels), 28, 28), np.uint8)
        for kind, array in (("labels-idx1", labels), ("images-idx3", images)):
            path = tmp_path / "data" / "MNIST" / "raw" / f"{part}-{kind}-ubyte"
            path.parent.mkdir(parents=True, exist_ok=True)
            header = struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
            path.write_bytes(header + array.tobytes())
    return tmp_path / "data"


def test_a_data_set_is_learned_without_the_preset_s_exams_of_new_classes(digits, tmp_path):
    some = ("--name", "mnist", "--data", digits, "--size", 16, "--tasks", 2, "--net", "convnet")
    assert find_preset("small").plan.one_shot
    code, _, errors = call("run", "fine-tuning", *some, "--epochs", 1, "--out", tmp_path / "run")
    assert (code, "error" in errors) == (0, False)
    for method, more, words in (
        ("fine-tuning", ["--one-shot", 4], "only a stream of sprites"),
        ("dcl", [], "this stream has none"),
    ):
        assert words in complaint("run", method, *some, *more, "--out", tmp_path / "none")
        assert not (tmp_path / "none").exists()


def test_a_folder_that_no_method_wrote_is_not_resumed(tmp_path):
    Run.create(tmp_path / "run", Stream().to_json(), {})
    assert "lacks method, settings, plan, device" in complaint("resume", tmp_path / "run")


def test_a_run_is_not_begun_twice(finished):
    same = ("run", "dcl", *TINY, "--tasks", 4, "--out", finished)
    assert "exists and is finished" in complaint(*same)
    assert "holds another run" in complaint(*same, "--learning-rate", "0.5")


def test_a_finished_run_is_left_as_it_is(finished):
    before = {path: path.read_bytes() for path in finished.iterdir()}
    code, out, errors = call("resume", finished)
    assert (code, errors) == (0, "")
    assert "finished" in out
    assert {path: path.read_bytes() for path in finished.iterdir()} == before


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_rows(finished, tmp_path):
    folder = tmp_path / "killed"
    words = ("run", "dcl", *TINY, "--tasks", "4", "--save-seconds", "0", "--out", str(folder))
    process = subprocess.Popen(
        [sys.executable, "-m", "everlearn", *words],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )
    assert process.stderr is not None
    with process:
        assert "task 1 of 4" in process.stderr.readline()
        assert "task 2 of 4" in process.stderr.readline()
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert not Run.open(folder).finished
    assert "resume it with: everlearn resume" in complaint(*words)
    code, out, errors = call("resume", folder)
    assert code == 0
    assert "task 1 of 4" not in errors
    assert str(folder) in out
    assert (folder / "rows.jsonl").read_bytes() == (finished / "rows.jsonl").read_bytes()


def stop_at(monkeypatch: pytest.MonkeyPatch, task: int, error: BaseException) -> None:
    """Let the making of a task end in an error."""
    from everlearn.stream.sprites import stream as spec

    make = spec.build_task

    def build(stream: Stream, index: int) -> object:
        if index == task:
            raise error
        return make(stream, index)

    monkeypatch.setattr(spec, "build_task", build)


def test_an_interrupt_says_how_to_go_on(finished, tmp_path, monkeypatch):
    folder = tmp_path / "a run"
    with monkeypatch.context() as patch:
        stop_at(patch, 2, KeyboardInterrupt())
        words = ("run", "dcl", *TINY, "--tasks", 4, "--save-seconds", 0, "--out", folder)
        code, out, errors = call(*words)
    assert (code, out) == (130, "")
    last = errors.splitlines()[-1]
    assert last == f"error: stopped by hand; go on with: everlearn resume '{folder}'"
    assert call("resume", folder)[0] == 0
    assert (folder / "rows.jsonl").read_bytes() == (finished / "rows.jsonl").read_bytes()


def out_of_memory() -> Exception:
    import torch

    return torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (DivergedError("the loss became nan at step 3"), "the loss became nan at step 3"),
        (
            out_of_memory(),
            "the GPU is out of memory; lower --batch-size or --size, or use --device",
        ),
        (BlockingIOError("another writer holds it"), "another writer holds it"),
        (OSError(28, "could not write rows.jsonl"), "could not write rows.jsonl"),
    ],
)
def test_what_stops_a_learner_is_told_in_a_line(error, words, tmp_path, monkeypatch):
    stop_at(monkeypatch, 1, error)
    code, _, errors = call("run", "dcl", *TINY, "--out", tmp_path / "run")
    assert code == 2
    assert errors.splitlines()[-1].startswith(f"error: {words}")


def test_a_fault_of_ours_is_not_hidden(tmp_path, monkeypatch):
    stop_at(monkeypatch, 0, RuntimeError("shapes differ"))
    with pytest.raises(RuntimeError, match="shapes differ"):
        call("run", "dcl", *TINY, "--out", tmp_path / "run")


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A comparison of two methods and two seeds, and what it said."""
    folder = tmp_path_factory.mktemp("compare") / "out"
    words = ("dcl", "fine-tuning", "--seeds", "0,7", *TINY, "--jitter", "0.5", "--out", folder)
    code, out, _ = call("compare", *words)
    assert code == 0
    return folder, out


def test_a_comparison_runs_every_method_and_seed(compared):
    folder, out = compared
    runs_there = {"dcl-seed0", "dcl-seed7", "fine-tuning-seed0", "fine-tuning-seed7"}
    files = {"index.html", "curves.svg", "curves.png", "table.md", "table.tex"}
    assert {path.name for path in folder.iterdir()} == runs_there | files
    for name in runs_there:
        stream = json.loads((folder / name / "stream.json").read_text())
        assert stream["seed"] == int(name[-1])
        assert Run.open(folder / name).finished
    assert settings_of(folder / "dcl-seed0")["settings"]["jitter"] == 0.5
    lines = [line.split()[:2] for line in out.splitlines()]
    assert ["dcl", "2"] in lines
    assert ["fine-tuning", "2"] in lines
    assert str(folder / "index.html") in out


def test_a_comparison_keeps_what_is_done_and_goes_on_with_what_is_not(compared, tmp_path):
    whole, _ = compared
    words = ("dcl", *TINY, "--jitter", "0.5", "--out", tmp_path)
    folder = tmp_path / "dcl-seed0"
    assert call("run", *words[:-1], folder)[0] == 0
    kept = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    (tmp_path / "dcl-seed7").mkdir()
    for name in ("stream.json", "settings.json"):
        content = (whole / "dcl-seed7" / name).read_bytes()
        (tmp_path / "dcl-seed7" / name).write_bytes(content)
    code, _, errors = call("compare", *words, "--seeds", "0,7")
    assert code == 0
    assert {line.partition(":")[0] for line in errors.splitlines()} == {"dcl, seed 7"}
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == kept
    for name in ("dcl-seed0", "dcl-seed7"):
        rows = [(place / name / "rows.jsonl").read_bytes() for place in (whole, tmp_path)]
        assert rows[0] == rows[1]


def test_a_comparison_does_not_mix_in_other_runs(compared):
    folder, _ = compared
    words = ("compare", "dcl", "--seeds", "0", *TINY, "--out", folder)
    assert "holds another run" in complaint(*words)


def test_runs_that_exist_are_compared(compared, tmp_path):
    folder, before = compared
    for words in (("compare", "--runs", folder), ("report", folder)):
        code, out, errors = call(*words, "--out", tmp_path / words[0])
        assert (code, errors) == (0, "")
        table = [line for line in out.splitlines() if line.startswith((" dcl", " fine"))]
        assert table == [line for line in before.splitlines() if line.startswith((" dcl", " fine"))]
        page = (tmp_path / words[0] / "index.html").read_text()
        assert "fine-tuning" in page


@pytest.mark.parametrize("arguments", [[], *([name] for name in METHODS)])
def test_methods_are_listed_with_their_settings(arguments, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    code, out, errors = call("methods", *arguments)
    assert (code, errors) == (0, "")
    for name in arguments:
        settings = list_settings(METHODS[name].settings())
        for key, value in settings.items():
            assert option(name, key, value) in out
        for words in describe_settings(METHODS[name].settings()).values():
            assert words in out
        assert f"everlearn run {name}" in out
    for name, method in METHODS.items():
        assert arguments or (name in out and method.summary in out)


def test_a_name_that_the_exams_have_taken_is_typed_with_its_method():
    assert option("joint", "every", 1) == "--joint.every"
    assert option("joint", "reset_optimizer", True) == "--reset-optimizer/--no-reset-optimizer"
    assert option("dcl", "image_loss_weight", 0.0) == "--image-loss-weight"


HELP = """
import sys
from everlearn.cli import run
for words in (["--help"], *([name, "--help"] for name in {commands!r})):
    assert run(words) == 0
print("heavy:", sorted({{"torch", "numba", "PIL", "numpy", "matplotlib"}} & set(sys.modules)))
"""
COMMANDS = ("run", "resume", "compare", "report", "methods", "quickstart")


def test_help_needs_no_torch():
    answer = subprocess.run(
        [sys.executable, "-c", HELP.format(commands=COMMANDS)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "240"},
        check=True,
    )
    assert answer.stdout.splitlines()[-1] == "heavy: []"
    assert ", ".join(PRESETS) in answer.stdout
    for name in COMMANDS:
        assert f"everlearn {name}" in answer.stdout


def test_progress_pools_the_last_tests_of_learned_tasks():
    progress = RunProgress(4)
    task = {"kind": "task", "loss": 0.5, "images": 600, "seconds": 2.0}
    rows = [
        {"kind": "test", "learned": -1, "tested": 0, "correct": 9, "total": 9},
        {"kind": "test", "learned": 0, "tested": 0, "correct": 9, "total": 9},
        task | {"learned": 0},
        {"kind": "test", "learned": 1, "tested": 0, "correct": 1, "total": 9},
        {"kind": "test", "learned": 1, "tested": 1, "correct": 2, "total": 3},
        {"kind": "test", "learned": 1, "tested": 2, "correct": 3, "total": 3},
        {"kind": "probe", "learned": 1, "tested": 0, "correct": 3, "total": 3},
        task | {"learned": 1},
    ]
    for row in rows:
        progress.add_row(row)
    assert (progress.correct, progress.total) == (3, 12)
    state = progress.describe()
    assert re.sub(r"\d:\d\d:\d\d", "T", state) == (
        "task 2 of 4, accuracy 25.0 %, T left, loss 0.5, 300 images/s"
    )
    progress.add_row(task | {"learned": 2, "images": 0, "loss": 0.0})
    assert "loss 0.5, 300 images/s" in progress.describe()
    assert not progress.evaluated


def test_time_left_counts_the_tasks_of_this_session_only(monkeypatch):
    clock = iter([100.0, 130.0])
    monkeypatch.setattr("everlearn.cli.progress.monotonic", lambda: next(clock))
    progress = RunProgress(20)
    for learned in (9, 10, 11):
        progress.add_row(
            {"kind": "task", "learned": learned, "loss": 1.0, "images": 0, "seconds": 1.0}
        )
    # 3 tasks took 30 seconds and 8 are left.
    assert progress.describe() == "task 12 of 20, 0:01:20 left"


def test_a_terminal_sees_one_bar(monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "120")
    test = {"kind": "test", "tested": 0, "correct": 1, "total": 4}
    task = {"kind": "task", "loss": 0.5, "images": 600, "seconds": 2.0}
    rows = [row | {"learned": learned} for learned in range(500) for row in (test, task)]
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        show_progress(rows, "dcl, seed 0", 500)
    shown = errors.getvalue()
    assert "task 500 of 500, accuracy 25.0 %, loss 0.5, 300 images/s" in shown
    assert shown.count("\n") == 1
    assert shown.count("dcl, seed 0") < 20


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quickstart of seconds."""
    usual = PRESETS["quickstart"]
    stream = Stream(tasks=2, classes_per_task=3, values_per_factor=3, canvas=Canvas(size=16))
    less = usual._replace(
        stream=stream, overrides={"epochs": 1}, plan=Plan(probe_every=2, probe_images=3)
    )
    monkeypatch.setitem(presets.PRESETS, "quickstart", less)


@pytest.mark.integration
@pytest.mark.usefixtures("short")
def test_the_quickstart_gathers_all_on_one_page(tmp_path):
    out = tmp_path / "look"
    code, said, errors = call("quickstart", "--out", out, "--seed", 5, "--device", "cpu")
    assert code == 0
    methods = ("fine-tuning", "er", "dcl-plus")
    assert {path.name for path in (out / "runs").iterdir()} == {f"{m}-seed5" for m in methods}
    page = (out / "index.html").read_text()
    assert page.count('<img alt="') == 6
    for words in (
        "What was forgotten",
        "What DCL sees",
        "Shapes",
        "A task",
        "Factors",
        "The stream",
        "Task 1 during training",
    ):
        assert words in page
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)
    for method in methods:
        assert f" {method} " in said
        assert f"{method}, seed 5: task 2 of 2" in errors
    assert str(out / "index.html") in said
    for name in ("answers", "matches", "shapes", "factors", "sweep"):
        with Image.open(out / "pictures" / f"{name}.png") as picture:
            assert picture.format == "PNG"


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_a_second_quickstart_learns_nothing_anew(tmp_path):
    words = ("quickstart", "--out", tmp_path, "--device", "cpu")
    assert call(*words)[0] == 0
    pages = [(tmp_path / "index.html").read_text()]
    (tmp_path / "index.html").unlink()
    code, _, errors = call(*words)
    pages.append((tmp_path / "index.html").read_text())
    assert (code, errors) == (0, "")
    assert pages[0] == pages[1]
