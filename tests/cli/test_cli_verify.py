"""`everlearn verify`: repeated runs have the same bits; changed rows differ; no run stops the others."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everlearn import Canvas, Stream
from everlearn.core.jsonl import encode_row
from everlearn.evaluation import Plan
from everlearn.runs import launch, pack, read_rows
from everlearn.runs.repetition import sample_runs

from ..conftest import call

pytestmark = pytest.mark.slow

STREAM = Stream(
    tasks=3, classes_per_task=3, values_per_factor=4, canvas=Canvas(size=16), split=(0.6, 0.0, 0.4)
)
SETTINGS = {"net": "convnet", "batch_size": 32, "epochs": 3}


def start(folder: Path, seed: int) -> Path:
    """Write a finished and packed run, as committed ones are."""
    # Tests at the end, such as one-shot, are not repeated with the first tasks.
    plan = Plan(within_task=True, future_tasks=1, one_shot=(4,))
    stream = STREAM.with_changes(seed=seed)
    list(launch.start(folder, "dcl", stream, plan, "cpu", **SETTINGS))
    pack(folder)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs that differ in the seed."""
    folder = tmp_path_factory.mktemp("results")
    for seed in (0, 1):
        start(folder / f"seed{seed}", seed)
    return folder


@pytest.fixture
def results(made: Path, tmp_path: Path) -> Path:
    """A copy of the run of seed 0."""
    shutil.copytree(made / "seed0", tmp_path / "results" / "seed0")
    return tmp_path / "results"


def write_rows(folder: Path, rows: list[Any]) -> None:
    """Replace the rows of a run."""
    content = b"".join(map(encode_row, rows))
    (folder / "rows.jsonl.gz").write_bytes(gzip.compress(content))


def change_rows(folder: Path, key: str, value: Any, kind: str = "test") -> None:
    """Change the first row of a kind that was recorded after task 1."""
    rows: list[Any] = read_rows(folder)
    row = next(row for row in rows if row["kind"] == kind and row["learned"] == 1)
    row[key] = value
    write_rows(folder, rows)


def change_settings(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the settings that a run kept."""
    path = folder / "settings.json"
    settings = json.loads(path.read_text())
    change(settings)
    path.write_text(json.dumps(settings))


@pytest.mark.parametrize("tasks", [2, 20])
def test_repeated_runs_have_the_same_bits(made: Path, tasks: int) -> None:
    code, out, errors = call("verify", made, "--device", "cpu", "--tasks", tasks)
    assert code == 0
    assert out.splitlines() == [
        f"1 of 2, {made}/seed0: same bits",
        f"2 of 2, {made}/seed1: same bits",
        "2 same bits, 0 within noise, 0 differ, 0 not compared, 0 cannot run",
    ]
    assert f"seed0: task {min(tasks, 3)} of {min(tasks, 3)}" in errors


def test_a_changed_row_differs_and_is_named(results: Path) -> None:
    row = next(row for row in read_rows(results / "seed0") if row["kind"] == "test")
    change_rows(results / "seed0", "correct", row["total"])
    code, out, _ = call("verify", results, "--device", "cpu")
    assert code == 1
    assert "differs: row 'test' after task 1, tested on task 0: correct (of 306 images)" in out
    assert "0 same bits, 0 within noise, 1 differ, 0 not compared, 0 cannot run" in out


def test_rows_after_the_repeated_tasks_are_not_compared(results: Path) -> None:
    change_rows(results / "seed0", "correct", 0)
    assert call("verify", results, "--device", "cpu", "--tasks", 1).code == 0


def test_rows_of_another_seed_differ(made: Path, results: Path) -> None:
    # 142 and 111 of 306 after the first task: further apart than the images explain.
    shutil.copy(made / "seed1" / "rows.jsonl.gz", results / "seed0")
    code, out, _ = call("verify", results, "--device", "cpu")
    assert (code, "differs" in out) == (1, True)


def test_an_evaluation_that_was_added_later_is_left_out(results: Path) -> None:
    change_settings(results / "seed0", lambda settings: settings["plan"].pop("diagonal_images"))
    rows = [row for row in read_rows(results / "seed0") if row["kind"] != "diagonal"]
    write_rows(results / "seed0", rows)
    code, out, _ = call("verify", results, "--device", "cpu", "--tasks", 2)
    assert code == 0
    assert "1 same bits" in out


def test_settings_that_are_refused_cannot_run(results: Path) -> None:
    change_settings(results / "seed0", lambda settings: settings["settings"].update(no_such=1))
    code, out, _ = call("verify", results, "--device", "cpu")
    assert code == 1  # nothing was compared
    assert "seed0: cannot run: " in out
    assert "no_such" in out
    assert "0 same bits, 0 within noise, 0 differ, 0 not compared, 1 cannot run" in out


def foreign_method(folder: Path) -> None:
    change_settings(folder, lambda settings: settings.update(method="derp"))


def foreign_plan(folder: Path) -> None:
    change_settings(folder, lambda settings: settings.update(plan=[1]))


def foreign_settings(folder: Path) -> None:
    (folder / "settings.json").write_text("{}")


def no_validation_images(folder: Path) -> None:
    change_settings(folder, lambda settings: settings["plan"].update(split="val"))


def missing_data(folder: Path) -> None:
    stream = {"everlearn_arrays": 1, "name": "mnist", "rows": 70_000}
    (folder / "stream.json").write_text(json.dumps(stream))


def damaged_stream(folder: Path) -> None:
    (folder / "stream.json").write_text('{"everlearn_stream": 1, "canvas": []}')


def damaged_rows(folder: Path) -> None:
    (folder / "rows.jsonl.gz").write_bytes(b"damaged")


def foreign_rows(folder: Path) -> None:
    write_rows(folder, [{"kind": "test", "correct": 1, "total": 2}])


def no_costs(folder: Path) -> None:
    (folder / "costs.jsonl.gz").unlink()


def damaged_provenance(folder: Path) -> None:
    (folder / "provenance.jsonl").write_text("damaged\n")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (foreign_method, "unknown method 'derp'; known: "),
        (foreign_plan, "not a mapping"),
        (foreign_settings, "lacks method, settings, plan, device"),
        (no_validation_images, "split='val' is there to leave them alone"),
        (missing_data, "the folder that holds the data sets"),
        (damaged_stream, "canvas must be a JSON object, found []"),
        (damaged_rows, "rows.jsonl.gz is damaged"),
        (foreign_rows, "has a row of kind 'test' that does not say the last task learned"),
        (no_costs, "has no costs of a task"),
        (damaged_provenance, "provenance.jsonl, line 1 is damaged"),
    ],
)
def test_a_run_that_cannot_run_does_not_stop_the_others(
    results: Path, damage: Callable[[Path], None], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVERLEARN_DATA", raising=False)
    shutil.copytree(results / "seed0", results / "broken")
    damage(results / "broken")
    code, out, _ = call("verify", results, "--device", "cpu", "--tasks", 1)
    assert code == 0
    first, second, summary = out.splitlines()
    assert first.startswith(f"1 of 2, {results}/broken: cannot run: ")
    assert reason in first
    assert second == f"2 of 2, {results}/seed0: same bits"
    assert summary == "1 same bits, 0 within noise, 0 differ, 0 not compared, 1 cannot run"


def test_a_sample_depends_on_its_seed_alone(made: Path) -> None:
    assert sample_runs(made, "cpu", 5, 0) == [made / "seed0", made / "seed1"]
    samples = [sample_runs(made, "cpu", 1, seed) for seed in range(20)]
    assert samples == [sample_runs(made, "cpu", 1, seed) for seed in range(20)]
    assert {run.name for (run,) in samples} == {"seed0", "seed1"}


def test_only_runs_of_the_same_kind_of_device_are_repeated(made: Path) -> None:
    with pytest.raises(ValueError, match="no finished run that a GPU made"):
        sample_runs(made, "cuda", 5, 0)
