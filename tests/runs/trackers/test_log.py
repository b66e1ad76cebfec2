"""Rows are passed on unchanged, whatever the trackers do."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from everlearn.core.lock import locked
from everlearn.runs import Run
from everlearn.runs.trackers import TRACKERS, TrackerError, check_trackers, log_rows, log_run
from everlearn.stream import Gaussians


class ListTracker:
    """A tracker that keeps what it is given, until it fails."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails
        self.written: list[tuple[int, dict[str, float]]] = []
        self.closed: list[bool] = []

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        if self.fails:
            raise TrackerError("list failed: no network")
        self.written.append((step, dict(metrics)))

    def close(self, finished: bool) -> None:
        self.closed.append(finished)
        if self.fails:
            raise TrackerError("list failed: no network")


def a_test(learned: int, tested: int, correct: int) -> dict:
    counts = {"tested": tested, "correct": correct, "total": 10}
    return {"kind": "test", "step": 5 * learned + 5, "learned": learned, **counts}


def an_end(learned: int) -> dict:
    times = {"images": 1, "seconds": 1.0, "evaluation_seconds": 0.0, "loss": 0.1}
    return {"kind": "task", "step": 5 * learned + 5, "learned": learned, "peak_memory": 1, **times}


ROWS = [a_test(0, 0, 9), an_end(0), a_test(1, 0, 3), a_test(1, 1, 8), an_end(1)]


def stopped(error: BaseException) -> Iterator[dict]:
    yield from ROWS[:2]
    raise error


def test_rows_are_passed_on_unchanged():
    before = json.dumps(ROWS)
    tracker = ListTracker()
    assert all(out is row for out, row in zip(log_rows(ROWS, [tracker]), ROWS, strict=True))
    assert json.dumps(ROWS) == before
    assert [step for step, _ in tracker.written] == [5, 10]
    assert tracker.closed == [True]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("shapes differ")])
def test_trackers_are_closed_when_a_run_stops(error):
    tracker = ListTracker()
    with pytest.raises(type(error)):
        list(log_rows(stopped(error), [tracker]))
    assert ([step for step, _ in tracker.written], tracker.closed) == ([5], [False])


def test_trackers_are_closed_when_the_reader_stops():
    tracker = ListTracker()
    rows = log_rows(ROWS, [tracker])
    next(rows)
    rows.close()
    assert tracker.closed == [False]


def test_a_failing_tracker_is_reported_once_and_the_others_continue(caplog):
    bad = ListTracker(fails=True)
    good = ListTracker()
    with caplog.at_level(logging.WARNING):
        assert list(log_rows(ROWS, [bad, good])) == ROWS
    assert [record.getMessage() for record in caplog.records] == [
        "list failed: no network; the run continues without it, and its rows are in its folder"
    ]
    assert len(good.written) == 2
    assert (bad.closed, good.closed) == ([], [True])


def test_a_tracker_that_fails_at_the_end_is_reported(caplog):
    bad = ListTracker(fails=True)
    good = ListTracker()
    assert list(log_rows([ROWS[0]], [bad, good])) == [ROWS[0]]
    assert "list failed" in caplog.text
    assert good.closed == [True]


def test_metrics_include_the_rows_before():
    tracker = ListTracker()
    list(log_rows(ROWS[2:], [tracker], before=ROWS[:2]))
    assert tracker.written[0][1]["summary/forgetting"] == pytest.approx(0.9 - 0.3)


def test_an_unknown_tracker_is_refused_with_the_known_ones():
    with pytest.raises(
        ValueError, match="unknown tracker 'derp'; known: tensorboard, wandb, mlflow"
    ):
        check_trackers(["derp"])


def test_a_folder_with_the_name_of_a_package_is_not_the_package(tmp_path, monkeypatch):
    (tmp_path / "nopackage").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(TRACKERS, "nopackage", lambda folder, config, first: ListTracker())
    with pytest.raises(ImportError, match=r"pip install 'everlearn\[nopackage\]'"):
        check_trackers(["nopackage"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run without rows."""
    Run.create(tmp_path / "run", Gaussians().to_json(), {"method": "er", "settings": {}})
    return tmp_path / "run"


def test_either_all_trackers_are_opened_or_none(folder, monkeypatch):
    first = ListTracker()

    def fail(folder: Path, config: dict, first: int) -> ListTracker:
        raise TrackerError("list failed: not logged in")

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
