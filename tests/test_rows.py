"""Rows: narrowing by kind, refusal of old names, and the table in the docs."""

from __future__ import annotations

from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from everlearn import rows
from everlearn.evaluate import run
from everlearn.evaluation import Plan
from everlearn.methods import build
from everlearn.stream import Gaussians

from .conftest import import_script

DOCS = Path(__file__).parent.parent / "docs"
TYPES = [*get_args(rows.Row), *get_args(rows.MeasurementRow)]


def test_rows_are_kept_by_kind_in_their_order() -> None:
    some = [{"kind": "probe", "step": 1}, {"kind": "task", "step": 2}, {"kind": "probe", "step": 3}]
    assert [row["step"] for row in rows.of_kind(some, rows.ProbeRow)] == [1, 3]
    assert rows.of_kind(some, rows.ThetaRow) == []


def test_every_kind_has_one_type_and_every_key_a_meaning() -> None:
    assert len({rows.kind_of(row_type) for row_type in TYPES}) == len(TYPES)
    for row_type in TYPES:
        assert row_type.__doc__
        for key, hint in get_type_hints(row_type, include_extras=True).items():
            assert key == "kind" or get_args(hint), f"{row_type.__name__}.{key} has no meaning"


def test_the_rows_of_a_run_have_the_keys_of_their_types() -> None:
    stream = Gaussians(tasks=2, train=20, val=0, test=10)
    plan = Plan(within_task=True, all_classes_every=1, probe_every=5)
    types = {rows.kind_of(row_type): row_type for row_type in TYPES}
    found = list(run(stream, build("er", stream, "cpu", epochs=1), plan))
    kinds = {"test", "within_task", "diagonal", "all_classes", "probe", "task"}
    assert {row["kind"] for row in found} == kinds
    for row in found:
        row_type = types[row["kind"]]
        assert row_type.__required_keys__ <= row.keys() <= get_type_hints(row_type).keys()


@pytest.mark.parametrize(
    ("row", "old", "new"),
    [
        ({"kind": "test", "right": 3}, "right", "correct"),
        ({"kind": "whole"}, "whole", "all_classes"),
        ({"kind": "task", "notes": {}}, "notes", "diagnostics"),
    ],
)
def test_old_names_are_refused_with_the_new_ones(row: dict, old: str, new: str) -> None:
    with pytest.raises(ValueError, match=rf"a\.jsonl has rows with '{old}', .* '{new}'; rename it"):
        rows.check_names([{"kind": "test"}, row], "a.jsonl")


def test_the_split_of_rows_is_test_unless_they_say_val() -> None:
    test, val, task = {"kind": "test"}, {"kind": "probe", "split": "val"}, {"kind": "task"}
    assert rows.split_of([], "a") == rows.split_of([test, task], "a") == "test"
    assert rows.split_of([val, task], "a") == "val"
    with pytest.raises(ValueError, match="a has rows of test images and of validation images"):
        rows.split_of([test, val], "a")


def test_a_row_without_a_kind_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a\.jsonl has a row without a kind"):
        rows.check_names([{"step": 1}], "a.jsonl")


def test_the_docs_have_the_current_tables() -> None:
    blocks = import_script("blocks")
    page = (DOCS / "reference/evaluation.md").read_text()
    assert "<!-- end of rows -->" in page
    assert "<!-- end of measurement-rows -->" in page
    assert blocks.fill(page, None, blocks.FROM_CODE) == page, "run python docs/published.py"
