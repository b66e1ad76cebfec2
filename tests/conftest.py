"""Shared settings of the tests."""

from __future__ import annotations

import os

# Nets here are so small that threads wait for one another longer than they work.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from hypothesis import settings

settings.register_profile("everlearn", deadline=None, derandomize=True)
settings.load_profile("everlearn")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a GPU where there is none."""
    if torch.cuda.is_available():
        return
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA card; torch sees none"))
