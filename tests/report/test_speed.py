"""The report of long streams is quick, and asks for neither torch nor numba."""

from __future__ import annotations

import resource
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib")

METHODS = (
    *("agem", "contrastive", "dcl", "dcl-plus", "der", "er"),
    *("ewc", "gdumb", "icarl", "joint", "lwf", "si"),
)
MOST = 20  # seconds of all cores together: other work on the machine does not count

WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "numba", "triton"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from everlearn.cli import main
main(sys.argv[1:])
"""


def _seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.fixture
def long_runs(write_run, tmp_path):
    """12 methods that were tested after every tenth of 500 tasks: 12,750 rows each."""
    for number, method in enumerate(METHODS):
        random = np.random.default_rng(number)
        matrix = [random.integers(0, 11, k + 1).tolist() if k % 10 == 9 else [] for k in range(500)]
        write_run(f"runs/{method}", method, matrix=matrix, tasks=500)
    return tmp_path / "runs"


@pytest.mark.slow
def test_500_tasks_of_12_methods_without_torch(long_runs, tmp_path):
    out, began = tmp_path / "out", _seconds()
    command = [sys.executable, "-c", WITHOUT, "report", str(long_runs), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert _seconds() - began < MOST
    text = (out / "index.html").read_text()
    assert all(method in text for method in METHODS)
    assert "after 500 tasks" in text
    assert len(text) < 3_000_000
