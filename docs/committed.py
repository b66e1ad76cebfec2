"""The committed rows, as the scripts of this folder read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from everlearn.core.jsonl import read_json_lines
from everlearn.experiments import EXPERIMENTS
from everlearn.experiments.framework.pages import read_scale
from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.shared_trials import DCL, DCL_PLUS, TABLE_TASKS
from everlearn.report import Group, LoadedRun
from everlearn.report.experiment import ExperimentResult
from everlearn.runs.load import load_run

Lines = Mapping[Any, Mapping[str, Any]]


def check_known(names: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raise if a comment on a page names something unknown."""
    unknown = sorted({*names} - {*known})
    if unknown:
        raise ValueError(
            f"unknown {what}: {', '.join(unknown)}; known: {', '.join(sorted({*known}))}"
        )


class Committed:
    """The committed rows; runs and files are read once."""

    def __init__(
        self, folder: Path, paper: ResultsFolder | None = None,
        drawn: Mapping[str, ExperimentResult] | None = None,
    ) -> None:  # fmt: skip
        self.folder = folder
        self.paper = paper or ResultsFolder(folder / "paper", str(read_scale(folder / "paper")))
        self._drawn = dict(drawn or {})

    def records(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of results/NAME.jsonl."""
        return read_json_lines(self.folder / f"{name}.jsonl")

    def only(self, name: str, expected: Mapping[str, Any], *keys: str) -> Lines:
        """Return the rows of results/NAME.jsonl with expected values, by the values of some keys.

        Two rows with the same values raise: it would be unknown which of them was published.
        """
        found: dict[Any, Mapping[str, Any]] = {}
        condition = f" with {dict(expected)}" if expected else ""
        for row in self.records(name):
            if any(row.get(key) != value for key, value in expected.items()):
                continue
            values = tuple(row.get(key) for key in keys)
            if values in found:
                raise ValueError(
                    f"{name}.jsonl has several rows of {values}{condition}; remove all but one"
                )
            found[values] = row
        if not found:
            raise ValueError(f"{name}.jsonl has no row{condition}; make it")
        return found

    def result(self, experiment: str) -> ExperimentResult:
        """Return the result of an experiment."""
        if experiment not in self._drawn:
            self._drawn[experiment] = EXPERIMENTS[experiment].figure(self.paper)
        return self._drawn[experiment]

    @cached_property
    def dcl(self) -> Group:
        """The runs of DCL, cut after 200 tasks."""
        return self.paper.groups([DCL], TABLE_TASKS)[0]

    @cached_property
    def dcl_plus(self) -> Group:
        """The runs of DCL+, cut after 200 tasks."""
        return self.paper.groups([DCL_PLUS], TABLE_TASKS)[0]

    @cached_property
    def long_dcl_plus(self) -> Group:
        """The longest runs of DCL+."""
        return self.paper.groups([DCL_PLUS])[0]

    def run(self, name: str) -> LoadedRun:
        """Return a run by its folder below results."""
        return load_run(self.folder / name)

    def seconds(self, command: str) -> float:
        """Return the wall time of the last timed run with this command."""
        rows = self.records("wall_clock")
        return [row["seconds"] for row in rows if f"everlearn {command} " in row["of"]][-1]
