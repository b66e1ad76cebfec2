"""Many commands at once: what failed is told, and what is stopped is awaited."""

from __future__ import annotations

import tarfile
import time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.integration

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "side_by_side.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script as a module."""
    spec = spec_from_file_location("side_by_side", SCRIPT)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(script, tmp_path, monkeypatch):
    """Return a function that runs command lines and gives the exit status."""
    monkeypatch.setattr(script, "start_mps", lambda: None)

    def run(*lines: str, seconds: float = 30.0) -> int:
        (tmp_path / "jobs").write_text("\n".join(lines))
        command = ["x", str(tmp_path / "jobs"), "--out", str(tmp_path / "out")]
        command += ["--seconds", str(seconds), "--archive", str(tmp_path / "out.tar.gz")]
        monkeypatch.setattr("sys.argv", command)
        with pytest.raises(SystemExit) as left:
            script.main()
        return left.value.code

    return run


def test_a_command_that_succeeds_when_it_is_run_again_is_no_failure(run, tmp_path):
    assert run(f"test -e {tmp_path}/seen || {{ touch {tmp_path}/seen; exit 3; }}") == 0


def test_a_command_that_fails_twice_is_a_failure(run):
    assert run("exit 3", "true") == 1


def test_a_failed_command_that_is_stopped_when_it_is_run_again_is_a_failure(run, tmp_path):
    job = f"test -e {tmp_path}/seen && exec sleep 60; touch {tmp_path}/seen; exit 3"
    assert run(job, seconds=1.0) == 1


def test_a_command_that_is_stopped_is_no_failure(run):
    assert run("exec sleep 60", seconds=0.5) == 0


def test_a_line_that_occurs_twice_is_run_once(run, tmp_path):
    job = f"echo again >> {tmp_path}/count"
    assert run(job, job) == 0
    assert (tmp_path / "count").read_text() == "again\n"


def test_what_a_stopped_command_writes_last_is_in_the_archive(run, tmp_path):
    last = f"sleep 0.3; echo last > {tmp_path}/out/last; exit 1"
    assert run(f"trap '{last}' TERM; sleep 60 & wait", seconds=0.5) == 0
    with tarfile.open(tmp_path / "out.tar.gz") as archive:
        assert "out/last" in archive.getnames()


def test_a_command_that_ignores_sigterm_is_killed(script, run, monkeypatch):
    monkeypatch.setattr(script, "STOP_SECONDS", 0.2)
    began = time.monotonic()
    assert run("trap '' TERM; while true; do sleep 1; done", seconds=0.5) == 0
    assert time.monotonic() - began < 10
