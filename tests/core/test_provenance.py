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
MODULES = ["__init__.py", "core/__init__.py"]
MODULES += [f"core/{name}.py" for name in ("files", "provenance", "source", "stamp", "version")]


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder, with a user name."""
    user = ["-c", "user.name=a", "-c", "user.email=a@b"]
    command = ["git", "-C", str(folder), *user, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def run_provenance(source: Path, here: Path) -> dict:
    """Return the provenance that a copy of the package reports to a process in a folder."""
    return json.loads(run_python(source, here, "-c", CODE).stdout)


def run_python(source: Path, here: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with a copy of the package in a folder."""
    env = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=here, env=env, capture_output=True, text=True)


def write_stamp(source: Path) -> subprocess.CompletedProcess[str]:
    """Write the build stamp of a copy of the package."""
    return run_python(source, source, "-m", "everlearn.core.stamp")


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A repository with a copy of the modules that provenance needs."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    package = tmp_path / "repository" / "everlearn"
    (package / "core").mkdir(parents=True)
    for name in MODULES:
        shutil.copy(SOURCE / name, package / name)
    git(tmp_path, "init", "-q", "repository")
    (package.parent / ".gitignore").write_text("build_stamp.json\n__pycache__\n")
    git(package.parent, "add", ".")
    git(package, "commit", "-qm", "first")
    return package.parent


@pytest.fixture
def copy(checkout, tmp_path) -> Path:
    """A copy of a stamped checkout, without its git metadata."""
    assert write_stamp(checkout).returncode == 0
    return shutil.copytree(checkout, tmp_path / "copy", ignore=shutil.ignore_patterns(".git"))


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
    [
        ("everlearn/__init__.py", True),
        ("everlearn/new.py", True),
        ("notes.txt", False),
        (".gitignore", False),  # tracked, but outside the package
    ],
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


def test_a_copy_without_git_has_the_commit_of_its_stamp(checkout, copy):
    found = run_provenance(copy, copy)
    assert (found["commit"], found["dirty"]) == (git(checkout, "rev-parse", "HEAD"), False)
    assert found["source_digest"] == run_provenance(checkout, checkout)["source_digest"]


@pytest.mark.parametrize("content", ["{}", "[]", "{", '{"commit": "a"}'])
def test_a_damaged_stamp_is_refused_in_one_line(copy, content):
    (copy / "everlearn/core/build_stamp.json").write_text(content)
    found = run_python(copy, copy, "-c", CODE)
    assert found.stderr.splitlines()[-1].endswith(
        "write it again with python -m everlearn.core.stamp"
    )
    assert "build_stamp.json is damaged: it must hold commit and source_digest" in found.stderr


@pytest.mark.parametrize("change", ["changed", "added", "removed", "renamed"])
def test_a_copy_that_differs_from_its_stamp_is_dirty(copy, change):
    module = copy / "everlearn/core/files.py"
    match change:
        case "changed":
            module.write_text(module.read_text() + "#")
        case "added":
            module.with_name("more.py").touch()
        case "removed":
            module.unlink()
        case "renamed":
            module.rename(module.with_name("file.py"))
    found = run_provenance(copy, copy)
    assert (
        found["commit"]
        == json.loads((copy / "everlearn/core/build_stamp.json").read_text())["commit"]
    )
    assert found["dirty"] is True


def test_caches_and_hidden_files_are_not_source(copy):
    before = run_provenance(copy, copy)["source_digest"]
    (copy / "everlearn/.editor").write_text("x")
    (copy / "everlearn/__pycache__").mkdir(exist_ok=True)
    (copy / "everlearn/__pycache__/f.cpython.nbi").write_text("x")
    assert run_provenance(copy, copy)["source_digest"] == before


def test_a_copy_without_stamp_has_no_commit(copy):
    (copy / "everlearn/core/build_stamp.json").unlink()
    found = run_provenance(copy, copy)
    assert (found["commit"], found["dirty"]) == (None, None)
    assert re.fullmatch("[0-9a-f]{64}", found["source_digest"])


def test_git_comes_before_an_old_stamp(checkout):
    write_stamp(checkout)
    (checkout / "everlearn/new.py").touch()
    git(checkout, "add", ".")
    git(checkout, "commit", "-qm", "second")
    found = run_provenance(checkout, checkout)
    assert (found["commit"], found["dirty"]) == (git(checkout, "rev-parse", "HEAD"), False)


@pytest.mark.parametrize("changed", [True, False])
def test_a_stamp_is_refused_without_a_clean_checkout(checkout, changed):
    if changed:
        (checkout / "everlearn/new.py").touch()
    else:
        shutil.rmtree(checkout / ".git")
    result = write_stamp(checkout)
    assert result.returncode == 1
    assert result.stderr.startswith("no stamp written: ")
    assert result.stderr.count("\n") == 1
    assert not (checkout / "everlearn/core/build_stamp.json").exists()


def test_a_package_that_pip_installed_from_git_has_its_commit(copy):
    (copy / "everlearn/core/build_stamp.json").unlink()
    installed = copy / "everlearn-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: everlearn\nVersion: 1\n")
    origin = {"url": "https://x/y.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}
    (installed / "direct_url.json").write_text(json.dumps(origin))
    found = run_provenance(copy, copy)
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


def test_a_process_names_the_commit_that_it_started_from(checkout):
    code = (
        "import subprocess, sys; from everlearn.core.source import describe_source as d; first = d();"
        "open('everlearn/core/version.py', 'a').write('# later');"
        "subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-qam', 'later'],"
        " check=True); sys.exit(d() != first)"
    )
    assert run_python(checkout, checkout, "-c", code).returncode == 0
    assert git(checkout, "log", "-1", "--format=%s") == "later"
