"""Metrics are read on machines without torch."""

from __future__ import annotations

import subprocess
import sys


def test_metrics_import_no_heavy_package():
    code = (
        "import sys, everlearn.metrics;"
        "print(sorted({'torch', 'numba', 'sklearn', 'matplotlib'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
