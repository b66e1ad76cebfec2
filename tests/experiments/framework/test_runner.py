"""Runner makes missing results, resumes interrupted ones, and leaves the rest unchanged."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.runner import Follow, Runner, as_sprites
from everlearn.experiments.framework.trial import Trial
from everlearn.runs import Run, read_rows
from everlearn.stream import Gaussians

pytestmark = pytest.mark.integration

EXAMS = {"one_shot": (), "open_set": False}
TRIAL = Trial("plain", "fine-tuning", plan=EXAMS, seeds=(0, 1))
ONE = TRIAL._replace(seeds=(0,))
OTHER = TRIAL._replace(seeds=(1,))


class Ledger:
    """Records the names of the runs it consumes."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, rows: Iterable[Any], folder: Path, name: str, tasks: int | None) -> None:
        self.names.append(name)
        for _ in rows:
            pass


def make_runner(folder: Path, follow: Follow | None = None, only: Iterable[str] = ()) -> Runner:
    return Runner(folder, "tiny", "cpu", only, follow)


def two_rows() -> Iterator[dict[str, Any]]:
    yield {"kind": "count", "n": 1}
    yield {"kind": "count", "n": 2}


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def rows_of(folder: Path) -> bytes:
    return (folder / "rows.jsonl").read_bytes()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which both seeds have learned, never stopped."""
    folder = tmp_path_factory.mktemp("finished")
    make_runner(folder).run_trials([ONE, OTHER])
    return folder


def test_a_measurement_is_kept_with_its_settings_and_origin(tmp_path):
    make_runner(tmp_path).measure("sum", {"sizes": (1, 2)}, two_rows)
    found = ResultsFolder(tmp_path, "tiny")
    assert [row["n"] for row in found.rows("sum")] == [1, 2]
    origin = found.origins("sum")["sum"]
    assert origin["settings"] == {"sizes": [1, 2]}
    assert origin["date"]
    assert files(tmp_path) == ["parts/sum.jsonl"]


def test_a_measurement_that_fails_leaves_no_file(tmp_path):
    def fail() -> Iterator[dict[str, Any]]:
        yield from two_rows()
        raise RuntimeError("the lamp went out")

    with pytest.raises(RuntimeError, match="the lamp went out"):
        make_runner(tmp_path).measure("sum", {}, fail)
    assert files(tmp_path) == []
    make_runner(tmp_path).measure("sum", {}, two_rows)
    assert len(ResultsFolder(tmp_path, "tiny").rows("sum")) == 2


def test_a_row_with_nan_leaves_no_file(tmp_path):
    with pytest.raises(ValueError, match="finite"):
        make_runner(tmp_path).measure("sum", {}, lambda: [{"kind": "count", "n": float("nan")}])
    assert files(tmp_path) == []


def test_a_measurement_is_not_repeated(tmp_path):
    make_runner(tmp_path).measure("sum", {"sizes": (1, 2)}, two_rows)
    kept = (tmp_path / "parts" / "sum.jsonl").read_bytes()
    make_runner(tmp_path).measure("sum", {"sizes": [1, 2]}, lambda: pytest.fail("measured again"))
    assert (tmp_path / "parts" / "sum.jsonl").read_bytes() == kept


def test_a_measurement_with_other_settings_is_refused_and_unchanged(tmp_path):
    make_runner(tmp_path).measure("sum", {"size": 1}, two_rows)
    kept = (tmp_path / "parts" / "sum.jsonl").read_bytes()
    with pytest.raises(ValueError, match="another measurement") as raised:
        make_runner(tmp_path).measure("sum", {"size": 2}, two_rows)
    message = str(raised.value)
    assert str(tmp_path / "parts" / "sum.jsonl") in message
    assert "{'size': 1}, not of {'size': 2}" in message
    assert "--out" in message
    assert (tmp_path / "parts" / "sum.jsonl").read_bytes() == kept


def test_a_measurement_records_hashes_of_its_runs(tmp_path):
    runner = make_runner(tmp_path)

    def count() -> Iterator[dict[str, Any]]:
        yield {"kind": "count", "n": len(runner.learner(ONE).state())}

    runner.measure("sum", {}, count, [ONE])
    end = hashlib.sha256((tmp_path / "plain-seed0" / "done.json").read_bytes()).hexdigest()
    assert ResultsFolder(tmp_path, "tiny").origins("sum")["sum"]["runs"] == {"plain-seed0": end}


@pytest.fixture
def measured(tmp_path, finished) -> Path:
    """A run, and a measurement that was made with it."""
    shutil.copytree(finished / "plain-seed0", tmp_path / "plain-seed0")
    make_runner(tmp_path).measure("sum", {}, two_rows, [ONE])
    return tmp_path


def learn_anew(folder: Path) -> None:
    """Put another end in the place of that of the run."""
    (folder / "plain-seed0" / "done.json").write_text('{"summary": {}}')


def measure_again(folder: Path) -> None:
    make_runner(folder).measure("sum", {}, lambda: pytest.fail("measured again"), [ONE])


def test_a_measurement_of_another_run_is_refused_and_unchanged(measured):
    kept = (measured / "parts" / "sum.jsonl").read_bytes()
    measure_again(measured)
    learn_anew(measured)
    with pytest.raises(
        ValueError, match=r"sum\.jsonl was measured with another run in plain-seed0"
    ):
        measure_again(measured)
    assert (measured / "parts" / "sum.jsonl").read_bytes() == kept


def test_a_measurement_is_kept_when_its_run_is_deleted(measured):
    shutil.rmtree(measured / "plain-seed0")
    measure_again(measured)


def test_a_measurement_without_hashes_is_accepted(measured):
    path = measured / "parts" / "sum.jsonl"
    head, *rows = path.read_text().splitlines()
    older = {name: value for name, value in json.loads(head).items() if name != "runs"}
    path.write_text("\n".join([json.dumps(older), *rows, ""]))
    learn_anew(measured)
    measure_again(measured)


def test_only_the_named_measurement_is_made(tmp_path):
    runner = make_runner(tmp_path, only=["b"])
    runner.measure("a", {}, lambda: pytest.fail("not asked for"))
    runner.measure("b", {}, two_rows)
    assert files(tmp_path) == ["parts/b.jsonl"]


def test_only_the_named_run_is_made(tmp_path, finished):
    make_runner(tmp_path, only=["plain-seed1", "plain"]).run_trials([ONE, OTHER])
    assert [path.name for path in tmp_path.iterdir()] == ["plain-seed1"]
    assert rows_of(tmp_path / "plain-seed1") == rows_of(finished / "plain-seed1")


def test_every_seed_learns_its_own_stream(finished):
    seeds = [json.loads((finished / TRIAL.folder(s) / "stream.json").read_text()) for s in (0, 1)]
    assert [stream["seed"] for stream in seeds] == [0, 1]
    assert ResultsFolder(finished, "paper").missing([TRIAL]) == []


def test_a_trial_has_the_stream_of_its_first_seed_by_default(tmp_path):
    runner = make_runner(tmp_path)
    assert runner.stream(OTHER) == runner.stream(OTHER, 1) != runner.stream(OTHER, 0)


def test_a_small_scale_runs_the_first_seed_alone(tmp_path):
    make_runner(tmp_path).run_trials([TRIAL])
    assert [path.name for path in tmp_path.iterdir()] == ["plain-seed0"]
    assert ResultsFolder(tmp_path, "tiny").missing([TRIAL]) == []
    assert ResultsFolder(tmp_path, "paper").missing([TRIAL]) == ["plain-seed1"]


def test_a_run_has_the_settings_of_its_scale_and_the_changes_of_its_trial(tmp_path):
    trial = ONE._replace(settings={"epochs": 2}, stream={"classes_per_task": 3})
    make_runner(tmp_path).run_trials([trial])
    kept = Run.open(tmp_path / "plain-seed0").settings
    assert (kept["settings"]["epochs"], kept["settings"]["batch_size"]) == (2, 8)
    assert (kept["plan"]["one_shot"], kept["plan"]["every"]) == ([], 1)
    stream = json.loads((tmp_path / "plain-seed0" / "stream.json").read_text())
    assert (stream["classes_per_task"], stream["values_per_factor"]) == (3, 2)


def test_finished_runs_are_not_repeated(finished):
    kept = rows_of(finished / "plain-seed0")
    ledger = Ledger()
    make_runner(finished, ledger).run_trials([TRIAL])
    assert ledger.names == []
    assert rows_of(finished / "plain-seed0") == kept


def test_runs_finished_on_another_device_are_not_repeated(tmp_path):
    make_runner(tmp_path).run_trials([ONE])
    path = tmp_path / "plain-seed0" / "settings.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"device": "cuda"}))
    kept = rows_of(path.parent)
    ledger = Ledger()
    make_runner(tmp_path, ledger).run_trials([ONE])
    assert ledger.names == []
    assert rows_of(path.parent) == kept


@pytest.mark.parametrize("learned", [0, 1])
def test_an_interrupted_run_resumes_to_the_same_rows(tmp_path, finished, learned):
    def stop(rows: Any, *_: Any) -> None:
        for row in rows:
            if row["kind"] == "task" and row["learned"] == learned:
                rows.close()

    make_runner(tmp_path, stop).run_trials([ONE])
    assert ResultsFolder(tmp_path, "tiny").missing([ONE]) == ["plain-seed0"]
    ledger = Ledger()
    make_runner(tmp_path, ledger).run_trials([ONE])
    assert ledger.names == ["plain-seed0"]
    assert ResultsFolder(tmp_path, "tiny").missing([ONE]) == []
    assert rows_of(tmp_path / "plain-seed0") == rows_of(finished / "plain-seed0")


@pytest.mark.parametrize(
    "other",
    [
        ONE._replace(settings={"learning_rate": 0.5}),
        ONE._replace(stream={"tasks": 1}),
        ONE._replace(method="si"),
        ONE._replace(plan={"open_set": True, "one_shot": ()}),
    ],
)
def test_a_folder_of_another_run_is_refused_and_unchanged(finished, other):
    kept = rows_of(finished / "plain-seed0")
    with pytest.raises(ValueError, match="holds another run"):
        make_runner(finished).run_trials([other])
    assert rows_of(finished / "plain-seed0") == kept


def test_the_learner_is_that_at_the_end_of_its_run(tmp_path, finished):
    runner = make_runner(tmp_path)
    learner = runner.learner(ONE)
    stream = runner.stream(ONE)
    last = [row for row in read_rows(finished / "plain-seed0") if row["kind"] == "test"][-2:]
    assert [row["learned"] for row in last] == [1, 1]
    for row in last:
        batch = stream[row["tested"]].test.batch(slice(None))
        assert int((learner.predict(batch.images) == batch.labels).sum()) == row["correct"]


@pytest.mark.parametrize(("tasks", "most", "left"), [(5, 3, 3), (3, 3, 3), (2, 3, 2), (5, None, 5)])
def test_max_tasks_shortens_longer_streams_only(tmp_path, tasks, most, left):
    runner = make_runner(tmp_path)
    stream = runner.stream(ONE._replace(stream={"tasks": tasks}, max_tasks=most))
    assert stream == runner.stream(ONE).with_changes(tasks=left)


def test_a_shortened_run_is_the_beginning_of_the_longer_one(tmp_path, finished):
    make_runner(tmp_path).run_trials([ONE._replace(max_tasks=1)])
    short = read_rows(tmp_path / "plain-seed0")
    # Only the longer one can test the task that comes next.
    longer = [row for row in read_rows(finished / "plain-seed0") if row["learned"] == 0]
    assert short == [row for row in longer if row["tested"] == 0]


def test_a_stream_of_points_is_not_a_stream_of_sprites():
    with pytest.raises(TypeError, match="stream of sprites"):
        as_sprites(Gaussians())
