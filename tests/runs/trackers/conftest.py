"""Small runs on points, a second each."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from everlearn.cli import run

Call = Callable[..., tuple[int, str]]
# Probes fall between the tasks' ends, at 25 steps each.
TOY = (
    "--preset",
    "toy",
    "--tasks",
    "3",
    "--epochs",
    "1",
    "--probe-every",
    "10",
    "--save-seconds",
    "0",
)


def _call(*arguments: object) -> tuple[int, str]:
    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        code = run([str(argument) for argument in arguments])
    return code, errors.getvalue()


@pytest.fixture(scope="session")
def call() -> Call:
    """Run a command; return its exit code and what it writes to stderr."""
    return _call


@pytest.fixture(scope="session")
def toy() -> tuple[str, ...]:
    """The arguments of a small run."""
    return ("er", *TOY, "--device", "cpu")


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory, toy: tuple[str, ...]) -> Path:
    """The folder of a run without a log."""
    folder = tmp_path_factory.mktemp("runs") / "plain"
    assert _call("run", *toy, "--out", folder)[0] == 0
    return folder
