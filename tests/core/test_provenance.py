"""Provenance: the commit of the source, command, versions and machine, without torch."""

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
from everlearn.core.provenance import provenance

CODE = "import json, sys; from everlearn.core.provenance import provenance as p; print(json.dumps(p()))"
SOURCE = Path(everlearn.__file__).parent


@pytest.fixture(autouse=True)
def _no_given_commit(monkeypatch):
    monkeypatch.delenv("EVERLEARN_COMMIT", raising=False)


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder, with a user name."""
    user = ["-c", "user.name=a", "-c", "user.email=a@b"]
    command = ["git", "-C", str(folder), *user, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def run_provenance(source: Path, here: Path) -> dict:
    """Return the provenance that a copy of the package reports to a process in a folder."""
    command = [sys.executable, "-c", CODE]
    env = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    return json.loads(subprocess.run(command, cwd=here, env=env, capture_output=True).stdout)


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A repository with a copy of the modules that provenance needs."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    package = tmp_path / "repository" / "everlearn"
    (package / "core").mkdir(parents=True)
    for name in ("__init__.py", "core/__init__.py", "core/provenance.py", "core/version.py"):
        shutil.copy(SOURCE / name, package / name)
    git(tmp_path, "init", "-q", "repository")
    git(package, "add", ".")
    git(package, "commit", "-qm", "first")
    return package.parent


def test_versions_are_those_of_the_imported_packages():
    found = provenance()
    assert found["numpy"] == np.__version__
    assert found["torch"] == str(torch.__version__)
    assert found["everlearn"] == everlearn.__version__
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))


def test_a_missing_package_has_no_version(monkeypatch):
    monkeypatch.setattr("everlearn.core.provenance._PACKAGES", ("numpy", "no-such-package"))
    assert provenance()["no-such-package"] is None


def test_the_date_is_now_in_utc():
    found = datetime.strptime(provenance()["date"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert abs(datetime.now(UTC) - found) < timedelta(minutes=1)


def test_the_gpu_is_the_given_one():
    assert provenance()["gpu"] is None
    assert provenance("Some Card")["gpu"] == "Some Card"


def test_provenance_survives_json():
    found = provenance("x")
    assert json.loads(json.dumps(found)) == found
    assert found["cores"] == os.cpu_count()
    assert found["cpu"]
    assert found["platform"]


def test_the_commit_is_that_of_the_source_in_any_working_directory(checkout, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    git(elsewhere, "init", "-q")
    git(elsewhere, "commit", "-qm", "another", "--allow-empty")
    found = run_provenance(checkout, elsewhere)
    assert found["commit"] == git(checkout, "rev-parse", "HEAD")
    assert found["dirty"] is False


@pytest.mark.parametrize(
    ("change", "dirty"),
    [("everlearn/__init__.py", True), ("everlearn/new.py", True), ("notes.txt", False)],
)
def test_a_changed_or_new_source_file_makes_it_dirty(checkout, change, dirty):
    with (checkout / change).open("a") as file:
        file.write("\n")
    assert run_provenance(checkout, checkout)["dirty"] is dirty


def test_an_installed_package_ignores_the_repository_around_it(checkout):
    git(checkout, "rm", "-q", "--cached", "-r", "everlearn")
    git(checkout, "commit", "-qm", "not ours")
    found = run_provenance(checkout, checkout)
    assert (found["commit"], found["dirty"]) == (None, None)


def test_the_commit_can_be_given_by_environment_variable(monkeypatch):
    monkeypatch.setenv("EVERLEARN_COMMIT", "abc")
    found = provenance()
    assert (found["commit"], found["dirty"]) == ("abc", None)


def test_the_command_can_be_run_again(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["whatever"])
    monkeypatch.setattr(sys, "orig_argv", ["/x/python3", "-m", "everlearn", "run", "a b"])
    assert provenance()["command"] == "python -m everlearn run 'a b'"
    script = str(Path(sys.executable).parent / "everlearn")
    monkeypatch.setattr(sys, "argv", [script, "run", "a b"])
    assert provenance()["command"] == "everlearn run 'a b'"


def test_neither_torch_nor_numba_is_imported():
    code = f"{CODE}; import everlearn.runs; print([m in sys.modules for m in ('torch', 'numba')])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert re.search(r"\[False, False\]$", out)
