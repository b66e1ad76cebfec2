"""Rows of benchmarks name the GPU of the device that was asked for."""

from __future__ import annotations

import json
from argparse import Namespace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).parents[2] / "benchmarks"
STREAM = Namespace(canvas=Namespace(parity=False, size=64), seed=1)
LEARNER = Namespace(average=Namespace(tasks=2))


def load(name: str) -> ModuleType:
    """Load a script as a module."""
    spec = spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def card(monkeypatch):
    """Pretend that there is a GPU."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda device=None: "Card")


def test_edges_on_a_cpu_name_no_gpu(tmp_path, monkeypatch):
    edges = load("edges")
    monkeypatch.setattr(edges, "find_learner", lambda options: (STREAM, LEARNER))
    monkeypatch.setattr(edges, "measure", lambda *_: [{"correct": 1}])
    monkeypatch.setattr("sys.argv", ["x", "dcl", "--out", str(tmp_path), "--device", "cpu"])
    edges.main()
    assert json.loads((tmp_path / "edges.jsonl").read_text())["gpu"] is None


def test_task_seconds_on_a_cpu_name_no_gpu(tmp_path, monkeypatch):
    task_seconds = load("task_seconds")
    row = {"seconds_per_task": 1.0, "seconds_at_the_end": 1.0}
    monkeypatch.setattr(task_seconds, "measure", lambda *_: row)
    monkeypatch.setattr("sys.argv", ["x", "er", "--out", str(tmp_path), "--device", "cpu"])
    task_seconds.main()
    assert json.loads((tmp_path / "task_seconds.jsonl").read_text())["gpu"] is None
