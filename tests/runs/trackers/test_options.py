"""The option --log: mistakes come before any learning, and logging changes no row."""

from __future__ import annotations

import sys

import pytest

from everlearn.runs import find_runs
from everlearn.stream.synthetic import gaussians


@pytest.mark.parametrize("command", ["run er", "compare er", "resume RUN"])
def test_a_missing_package_is_refused_with_its_extra(command, call, plain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "wandb", None)
    arguments = command.replace("RUN", str(plain)).split()
    code, errors = call(*arguments, "--log", "tensorboard,wandb")
    assert code == 2
    assert "run: pip install 'everlearn[wandb]'" in errors
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("names", ["derp", "tensorboard,derp", "", "tensorboard,"])
def test_an_unknown_tracker_is_refused_with_the_known_ones(names, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, errors = call("run", "er", "--log", names)
    assert code == 2
    assert "known: tensorboard, wandb, mlflow" in errors
    assert not list(tmp_path.iterdir())


def test_a_comparison_that_learns_nothing_logs_nothing(call, plain):
    code, errors = call("compare", "--runs", plain, "--log", "tensorboard")
    assert code == 2
    assert "and --log" in errors


def test_an_interrupt_says_how_to_resume_with_the_log(call, toy, tmp_path, monkeypatch):
    pytest.importorskip("tensorboard")

    def stop(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(gaussians.Gaussians, "__getitem__", stop)
    code, errors = call("run", *toy, "--log", "tensorboard", "--out", tmp_path / "run")
    assert code == 130
    assert errors.strip().endswith(f"everlearn resume {tmp_path / 'run'} --log tensorboard")


@pytest.mark.integration
def test_a_comparison_logs_every_run_and_reports_them(call, toy, tmp_path):
    pytest.importorskip("tensorboard")
    arguments = ("fine-tuning", *toy, "--seeds", "0,1", "--log", "tensorboard", "--out", tmp_path)
    assert call("compare", *arguments)[0] == 0
    runs = find_runs(tmp_path)
    assert len(runs) == 4
    assert all(list((run / "logs" / "tensorboard").iterdir()) for run in runs)
    assert (tmp_path / "index.html").exists()
