"""Rows on their way to trackers: given on as they are, whatever the trackers do."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from everlearn.lock import locked
from everlearn.results import Run
from everlearn.stream import Gaussians
from everlearn.trackers import TRACKERS, TrackerError, check_trackers, log_rows, log_run


class Notes:
    """A tracker that keeps what it is told, until it fails."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails
        self.written: list[tuple[int, dict[str, float]]] = []
        self.closed: list[bool] = []

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        if self.fails:
            raise TrackerError("notes failed: no network")
        self.written.append((step, dict(numbers)))

    def close(self, finished: bool) -> None:
        self.closed.append(finished)
        if self.fails:
            raise TrackerError("notes failed: no network")


def a_test(learned: int, tested: int, right: int) -> dict:
    counts = {"tested": tested, "right": right, "total": 10}
    return {"kind": "test", "step": 5 * learned + 5, "learned": learned, **counts}


def an_end(learned: int) -> dict:
    times = {"images": 1, "seconds": 1.0, "evaluation_seconds": 0.0, "loss": 0.1}
    return {"kind": "task", "step": 5 * learned + 5, "learned": learned, "peak_memory": 1, **times}


ROWS = [a_test(0, 0, 9), an_end(0), a_test(1, 0, 3), a_test(1, 1, 8), an_end(1)]


def stopped(error: BaseException) -> Iterator[dict]:
    yield from ROWS[:2]
    raise error


def test_rows_are_given_on_as_they_are():
    before, notes = json.dumps(ROWS), Notes()
    assert all(out is row for out, row in zip(log_rows(ROWS, [notes]), ROWS, strict=True))
    assert json.dumps(ROWS) == before
    assert [step for step, _ in notes.written] == [5, 10]
    assert notes.closed == [True]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("shapes differ")])
def test_trackers_are_closed_when_a_run_stops(error):
    notes = Notes()
    with pytest.raises(type(error)):
        list(log_rows(stopped(error), [notes]))
    assert ([step for step, _ in notes.written], notes.closed) == ([5], [False])


def test_trackers_are_closed_when_nobody_wants_more_rows():
    notes = Notes()
    rows = log_rows(ROWS, [notes])
    next(rows)
    rows.close()
    assert notes.closed == [False]


def test_a_tracker_that_fails_is_told_of_once_and_the_others_go_on(caplog):
    bad, good = Notes(fails=True), Notes()
    with caplog.at_level(logging.WARNING):
        assert list(log_rows(ROWS, [bad, good])) == ROWS
    assert [record.getMessage() for record in caplog.records] == [
        "notes failed: no network; the run goes on without it, its rows are in its folder"
    ]
    assert len(good.written) == 2
    assert (bad.closed, good.closed) == ([], [True])


def test_a_tracker_that_fails_at_the_end_is_told_of(caplog):
    bad, good = Notes(fails=True), Notes()
    assert list(log_rows([ROWS[0]], [bad, good])) == [ROWS[0]]
    assert "notes failed" in caplog.text
    assert good.closed == [True]


def test_numbers_go_on_from_the_rows_before():
    notes = Notes()
    list(log_rows(ROWS[2:], [notes], before=ROWS[:2]))
    assert notes.written[0][1]["summary/forgetting"] == pytest.approx(0.9 - 0.3)


def test_an_unknown_tracker_is_refused_with_the_known_ones():
    with pytest.raises(
        ValueError, match="unknown tracker 'derp'; known: tensorboard, wandb, mlflow"
    ):
        check_trackers(["derp"])


def test_a_folder_with_the_name_of_a_package_is_not_the_package(tmp_path, monkeypatch):
    (tmp_path / "nopackage").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(TRACKERS, "nopackage", lambda folder, config, first: Notes())
    with pytest.raises(ImportError, match=r"pip install 'everlearn\[nopackage\]'"):
        check_trackers(["nopackage"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run without rows."""
    Run.create(tmp_path / "run", Gaussians().to_json(), {"method": "er", "settings": {}})
    return tmp_path / "run"


def test_trackers_are_opened_all_or_none(folder, monkeypatch):
    first = Notes()

    def fail(folder: Path, config: dict, first: int) -> Notes:
        raise TrackerError("notes failed: not logged in")

    # A tracker has the name of a package that is there.
    monkeypatch.setitem(TRACKERS, "json", lambda folder, config, start: first)
    monkeypatch.setitem(TRACKERS, "email", fail)
    rows = iter(ROWS)
    with pytest.raises(TrackerError, match="not logged in"):
        next(log_run(rows, folder, ["json", "email"]))
    assert first.closed == [False]
    assert next(rows) is ROWS[0]  # nothing was learned


def test_a_run_that_is_being_written_is_not_logged_twice(folder, monkeypatch):
    opened = []
    monkeypatch.setitem(TRACKERS, "json", lambda *given: opened.append(given))
    with locked(folder), pytest.raises(BlockingIOError, match="another writer"):
        next(log_run(ROWS, folder, ["json"]))
    assert not opened
