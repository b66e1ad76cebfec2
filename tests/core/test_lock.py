"""Locks: one writer per folder, and a dead process holds nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from everlearn.core.lock import locked

HOLD = """
import os, sys
from pathlib import Path
from everlearn.core.lock import locked
with locked(Path(sys.argv[1])):
    print(os.getpid(), flush=True)
    sys.stdin.read()
"""


def hold(folder) -> subprocess.Popen[str]:
    """Start a process that holds the lock until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == f"{process.pid}\n"
    return process


def test_a_second_process_is_refused_with_the_id_of_the_first(tmp_path):
    with hold(tmp_path) as other:
        with pytest.raises(
            BlockingIOError, match=rf"holds {tmp_path} \(process {other.pid}\); wait"
        ):
            locked(tmp_path).__enter__()
        other.stdin.close()
        assert other.wait(60) == 0


def test_one_process_cannot_hold_a_folder_twice(tmp_path):
    with locked(tmp_path), pytest.raises(BlockingIOError, match=f"process {os.getpid()}"):
        locked(tmp_path).__enter__()


def test_the_lock_file_is_deleted_at_the_end_and_after_an_error(tmp_path):
    with locked(tmp_path):
        assert (tmp_path / ".lock").read_text() == str(os.getpid())
    with pytest.raises(KeyError), locked(tmp_path):
        raise KeyError
    assert not list(tmp_path.iterdir())


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path):
    with hold(tmp_path) as other:
        other.kill()
        assert other.wait(60) == -signal.SIGKILL
    assert (tmp_path / ".lock").read_text() == str(other.pid)
    with locked(tmp_path):
        assert (tmp_path / ".lock").read_text() == str(os.getpid())


def test_a_lock_file_deleted_before_it_is_locked_is_refused(tmp_path, monkeypatch):
    """Its last holder removes the file after we opened it and before we lock it."""
    import fcntl

    real = fcntl.flock

    def slow(descriptor: int, operation: int) -> None:
        (tmp_path / ".lock").unlink()
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", slow)
    with pytest.raises(BlockingIOError, match="that just ended"):
        locked(tmp_path).__enter__()


def test_a_missing_folder_gives_advice(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"could not write \.lock to .*; fix the cause and run"
    ):
        locked(tmp_path / "none").__enter__()
