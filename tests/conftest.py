"""Shared settings of the tests."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

# Nets here are so small that threads wait for one another longer than they work.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from hypothesis import settings

from everlearn.cli import run
from everlearn.stream.datasets.files import data_folder

_DOCS = Path(__file__).parents[1] / "docs"
settings.register_profile("everlearn", deadline=None, derandomize=True)
settings.load_profile("everlearn")


class Result(NamedTuple):
    """What a command came to and what it said."""

    code: int
    out: str
    errors: str


def call(*arguments: object) -> Result:
    """Run a command line in this process."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = run([str(argument) for argument in arguments])
    return Result(code, out.getvalue(), errors.getvalue())


def import_script(name: str) -> ModuleType:
    """Return a script of the folder docs as a module."""
    sys.path.insert(0, str(_DOCS))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(_DOCS))


@contextlib.contextmanager
def needs_data() -> Iterator[Path]:
    """Give the folder of real data sets; skip the test where one of their files is missing.

    The folder is EVERLEARN_DATA, or ../shared/data beside the checkout.
    """
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    try:
        yield data_folder(os.environ.get("EVERLEARN_DATA") or beside)
    except FileNotFoundError as error:
        pytest.skip(f"needs real data: {error}")


def data_file(name: str) -> Path:
    """Return the path of a file in the folder of real data sets; skip the test where it is missing."""
    with needs_data() as folder:
        if not (folder / name).exists():
            raise FileNotFoundError(f"{folder / name} does not exist")
        return folder / name


@pytest.hookimpl(trylast=True)  # when what is not asked for has gone: halves are of the rest
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a GPU where there is none; let two workers begin with the longest tests."""
    spread_long_tests(items)
    if torch.cuda.is_available():
        return
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA card; torch sees none"))


def spread_long_tests(items: list[pytest.Item]) -> None:
    """Put files with a time limit of their own first, or first of the second half, in turns."""
    slow = [item for item in items if item.get_closest_marker("timeout")]
    rest = [item for item in items if not item.get_closest_marker("timeout")]
    files = sorted({item.path for item in slow})
    turns = [[item for item in slow if item.path in files[turn::2]] for turn in (0, 1)]
    half = len(rest) // 2
    items[:] = [*turns[0], *rest[:half], *turns[1], *rest[half:]]
