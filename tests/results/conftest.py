"""The committed rows, read once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from everlearn.experiments.framework.pages import read_scale
from everlearn.experiments.framework.results_folder import ResultsFolder

ROWS = Path(__file__).parents[2] / "results" / "paper"


@pytest.fixture(scope="session")
def committed() -> ResultsFolder:
    """The committed results of scale `paper`."""
    if not ROWS.is_dir():
        pytest.skip("the committed rows are not here")
    return ResultsFolder(ROWS, str(read_scale(ROWS)))
