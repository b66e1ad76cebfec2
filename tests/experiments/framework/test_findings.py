"""The opening of the report: main figure and findings, computed from rows."""

from __future__ import annotations

from typing import Any

import pytest

from everlearn.experiments.beyond import overview
from everlearn.experiments.framework.findings import make_lead
from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.trial import PAPER

pytestmark = pytest.mark.integration

pytest.importorskip("matplotlib")


def rows_after(tasks: int, *correct: int) -> list[dict[str, Any]]:
    """Rows of a test after so many tasks, with correct answers out of 100 on each tested task."""
    return [
        {
            "kind": "test", "step": tasks, "learned": tasks - 1, "tested": tested,
            "correct": number, "total": 100,
        }
        for tested, number in enumerate(correct, tasks - len(correct))
    ]  # fmt: skip


@pytest.fixture
def lead(write_run, tmp_path):
    def make(**rows: list[dict[str, Any]]):
        trials = {trial.name: trial for trial in overview.SETTINGS[PAPER].trials}
        for name, kept in rows.items():
            trial = trials[name.replace("_", "-")]
            write_run(trial, kept, trial.seeds[0])
        groups = ResultsFolder(tmp_path, PAPER).groups(overview.SETTINGS[PAPER].trials)
        return make_lead(groups, with_findings=True)

    return make


def test_findings_state_the_numbers_of_the_rows(lead):
    opening = lead(
        dcl_plus=rows_after(500, 99, 100),
        er_20k=[*rows_after(20, 90, 94), *rows_after(500, 20, 30)],
        online_ewc=rows_after(500, 0, 1, 99),
    )
    kept, replay, regularisation = opening.findings
    assert kept.number == "0.995"
    assert "99.5 % of the test images of all 500 tasks" in kept.text
    assert replay.number == "0.920 → 0.250"
    assert "after 20 tasks" in replay.text
    assert regularisation.number == "0.005"
    assert "know only the last task: 0.990 on task 500" in regularisation.text


@pytest.mark.parametrize(("last", "shown"), [(99, "99.96 %"), (100, "100.0 %")])
def test_only_all_images_are_a_hundred_percent(lead, last, shown):
    (finding,) = lead(dcl_plus=rows_after(500, *[100] * 24, last)).findings
    assert f"{shown} of the test images" in finding.text


def test_methods_without_rows_have_no_finding(lead):
    (finding,) = lead(dcl_plus=rows_after(500, 100)).findings
    assert finding.number == "1.000"


def test_no_claim_of_forgetting_where_nothing_is_forgotten(lead):
    *_, finding = lead(online_ewc=rows_after(500, 90, 90)).findings
    assert "only the last" not in finding.text


def test_there_is_no_opening_without_rows(lead):
    assert lead() is None
