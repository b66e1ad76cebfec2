"""Provenance: commit of the source, command, versions, machine; without torch."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import torch

import everlearn
from everlearn.provenance import provenance

CODE = "import json, sys; from everlearn.provenance import provenance as p; print(json.dumps(p()))"
SOURCE = Path(everlearn.__file__).parent


@pytest.fixture(autouse=True)
def _no_commit_told(monkeypatch):
    monkeypatch.delenv("EVERLEARN_COMMIT", raising=False)


def git(folder: Path, *words: str) -> str:
    """Run git in a folder, as somebody."""
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    command = ["git", "-C", str(folder), *who, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def ask(source: Path, here: Path) -> dict:
    """Ask a copy of the package, from a process in a folder."""
    command = [sys.executable, "-c", CODE]
    env = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    return json.loads(subprocess.run(command, cwd=here, env=env, capture_output=True).stdout)


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A repository with a copy of what provenance needs of the package."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    package = tmp_path / "repository" / "everlearn"
    package.mkdir(parents=True)
    for name in ("__init__.py", "provenance.py", "version.py"):
        shutil.copy(SOURCE / name, package)
    git(tmp_path, "init", "-q", "repository")
    git(package, "add", ".")
    git(package, "commit", "-qm", "first")
    return package.parent


def test_versions_are_those_that_are_imported():
    told = provenance()
    assert told["numpy"] == np.__version__
    assert told["torch"] == str(torch.__version__)
    assert told["everlearn"] == everlearn.__version__
    assert told["python"] == ".".join(map(str, sys.version_info[:3]))


def test_what_is_not_installed_is_none(monkeypatch):
    monkeypatch.setattr("everlearn.provenance._PACKAGES", ("numpy", "no-such-package"))
    assert provenance()["no-such-package"] is None


def test_the_date_is_now_in_utc():
    told = datetime.strptime(provenance()["date"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert abs(datetime.now(UTC) - told) < timedelta(minutes=1)


def test_the_gpu_is_the_one_told():
    assert provenance()["gpu"] is None
    assert provenance("Some Card")["gpu"] == "Some Card"


def test_it_is_a_row_of_json():
    told = provenance("x")
    assert json.loads(json.dumps(told)) == told
    assert told["cores"] == os.cpu_count()
    assert told["cpu"]
    assert told["platform"]


def test_the_commit_is_that_of_the_source_wherever_the_process_runs(checkout, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    git(elsewhere, "init", "-q")
    git(elsewhere, "commit", "-qm", "another", "--allow-empty")
    told = ask(checkout, elsewhere)
    assert told["commit"] == git(checkout, "rev-parse", "HEAD")
    assert told["dirty"] is False


@pytest.mark.parametrize(
    ("change", "dirty"),
    [("everlearn/__init__.py", True), ("everlearn/new.py", True), ("notes.txt", False)],
)
def test_a_changed_or_new_file_of_the_source_makes_it_dirty(checkout, change, dirty):
    with (checkout / change).open("a") as file:
        file.write("\n")
    assert ask(checkout, checkout)["dirty"] is dirty


def test_a_repository_around_an_installed_package_is_not_its_source(checkout):
    git(checkout, "rm", "-q", "--cached", "-r", "everlearn")
    git(checkout, "commit", "-qm", "not ours")
    told = ask(checkout, checkout)
    assert (told["commit"], told["dirty"]) == (None, None)


def test_the_commit_can_be_told(monkeypatch):
    monkeypatch.setenv("EVERLEARN_COMMIT", "abc")
    told = provenance()
    assert (told["commit"], told["dirty"]) == ("abc", None)


def test_the_command_can_be_typed_again(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["whatever"])
    monkeypatch.setattr(sys, "orig_argv", ["/x/python3", "-m", "everlearn", "run", "a b"])
    assert provenance()["command"] == "python -m everlearn run 'a b'"
    script = str(Path(sys.executable).parent / "everlearn")
    monkeypatch.setattr(sys, "argv", [script, "run", "a b"])
    assert provenance()["command"] == "everlearn run 'a b'"


def test_neither_torch_nor_numba_is_loaded():
    code = (
        f"{CODE}; import everlearn.results; print([m in sys.modules for m in ('torch', 'numba')])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert re.search(r"\[False, False\]$", out)
