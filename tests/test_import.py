"""The package opens fast and loads nothing heavy until asked."""

from __future__ import annotations

import subprocess
import sys
from statistics import median

import pytest

import everlearn


def _run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_import_is_fast_and_loads_no_torch():
    code = (
        "import time, sys; s = time.perf_counter(); import everlearn; "
        "print(time.perf_counter() - s, 'torch' in sys.modules, 'numpy' in sys.modules)"
    )
    runs = [_run(code).split() for _ in range(3)]
    assert median(float(run[0]) for run in runs) <= 0.2
    assert all(run[1] == "False" for run in runs)


def test_shapes_need_no_torch():
    assert _run(
        "import sys, everlearn; everlearn.outline(0, 0); print('torch' in sys.modules)"
    ) == ("False\n")


def test_drawing_on_the_cpu_needs_no_torch():
    code = (
        "import sys; from everlearn import outline, render; "
        "from everlearn.factors import canonical_factors; "
        "render(outline(0, 0), canonical_factors()); print('torch' in sys.modules)"
    )
    assert _run(code) == "False\n"


def test_every_public_name_can_be_had():
    for name in everlearn.__all__:
        assert getattr(everlearn, name) is not None
    assert set(everlearn.__all__) == set(dir(everlearn))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'sream'"):
        _ = everlearn.sream
