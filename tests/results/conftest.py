"""The committed rows, read once for all tests, and every experiment, drawn once."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from everlearn.experiments.framework.pages import draw_experiments, read_scale
from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.report.experiment import ExperimentResult

from ..conftest import import_script

ROOT = Path(__file__).parents[2]
ROWS = ROOT / "results" / "paper"


@pytest.fixture(scope="session")
def committed() -> ResultsFolder:
    """The committed results of scale `paper`."""
    if not ROWS.is_dir():
        pytest.skip("the committed rows are not here")
    return ResultsFolder(ROWS, str(read_scale(ROWS)))


@pytest.fixture(scope="session")
def drawn(committed: ResultsFolder) -> dict[str, ExperimentResult]:
    """The result of every experiment."""
    pytest.importorskip("matplotlib")
    return draw_experiments(committed)


@pytest.fixture(scope="session")
def published() -> ModuleType:
    """The script docs/published.py as a module."""
    return import_script("published")


@pytest.fixture(scope="session")
def tables() -> ModuleType:
    """The module docs/blocks.py."""
    return import_script("blocks")


@pytest.fixture(scope="session")
def rows(
    published: ModuleType, committed: ResultsFolder, drawn: dict[str, ExperimentResult]
) -> Any:
    """All committed rows, as docs/published.py reads them."""
    return published.Committed(ROOT / "results", committed, drawn)
