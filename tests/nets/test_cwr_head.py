"""CWR heads: consolidation after an experience, by hand."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from everlearn.nets.cwr_head import RULES, CWRHead


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def mask(*numbers: int, classes: int = 4) -> Tensor:
    return torch.tensor([number in numbers for number in range(classes)])


def set_rows(head: CWRHead, rows: dict[int, list[float]]) -> None:
    with torch.no_grad():
        for number, row in rows.items():
            head.weight[number] = torch.tensor(row)


def counts(**numbers: int) -> Tensor:
    out = torch.zeros(4)
    for name, count in numbers.items():
        out[int(name[1:])] = count
    return out


def trained(rule: str = "cwr*", shift: str = "global") -> CWRHead:
    """A head that consolidated rows 0 and 1 after an experience of 9 patterns each."""
    head = CWRHead(2, 4, rule, shift)
    head.begin_experience(mask(0, 1), generator())
    set_rows(head, {0: [2.0, -2.0], 1: [1.0, -1.0]})
    head.end_experience(mask(0, 1), counts(c0=9, c1=9))
    return head


def test_rows_of_returning_classes_are_averaged_by_pattern_counts() -> None:
    """(2 * 3 + 6) / 4 = 3."""
    head = trained()
    head.begin_experience(mask(0), generator())
    set_rows(head, {0: [6.0, -6.0]})
    head.end_experience(mask(0), counts(c0=1))
    assert torch.equal(head.consolidated[0], torch.tensor([3.0, -3.0]))
    assert head.past_counts.tolist() == [10, 9, 0, 0]


def test_an_unchanged_row_stays() -> None:
    """Past and current counts are equal, and the row is the consolidated one."""
    head = trained()
    before = head.consolidated.clone()
    head.begin_experience(mask(0, 1), generator())
    assert torch.equal(head.weight[:2], before[:2])
    head.end_experience(mask(0, 1), counts(c0=9, c1=9))
    torch.testing.assert_close(head.consolidated, before)


def test_rows_of_classes_without_counts_keep_their_bits() -> None:
    """Negative replay changes the temporary row of a replayed class, never the consolidated one."""
    head = trained()
    before = head.consolidated[1].clone()
    head.begin_experience(mask(1, 2), generator())
    set_rows(head, {1: [8.0, 3.0], 2: [1.0, 5.0]})
    head.end_experience(mask(1, 2), counts(c2=5))
    assert torch.equal(head.consolidated[1], before)
    assert head.past_counts.tolist() == [9, 9, 5, 0]
    assert head.known.tolist() == [True, True, True, False]


def test_an_experience_begins_with_the_consolidated_rows_of_its_classes_and_zeros() -> None:
    head = trained()
    set_rows(head, {2: [7.0, 7.0]})
    head.begin_experience(mask(1, 3), generator())
    assert torch.equal(head.weight[1], head.consolidated[1])
    assert not head.weight[[0, 2, 3]].any()


def test_the_shift_is_the_mean_of_all_present_rows_or_of_each() -> None:
    rows = {0: [4.0, 2.0], 1: [1.0, 1.0], 3: [100.0, 100.0]}
    found = {}
    for shift in ("global", "per_class"):
        head = CWRHead(2, 4, "cwr+", shift)
        set_rows(head, rows)
        head.end_experience(mask(0, 1), counts(c0=1, c1=1))
        found[shift] = head.consolidated.tolist()
    assert found["global"] == [[2.0, 0.0], [-1.0, -1.0], [0.0, 0.0], [0.0, 0.0]]
    assert found["per_class"] == [[1.0, -1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]


def test_cwr_and_cwr_plus_copy_the_last_rows() -> None:
    head = trained("cwr")
    assert head.consolidated[0].tolist() == [2.0, -2.0]
    head.begin_experience(mask(0), generator())
    first = head.weight.clone()
    assert 0 < first.std() < 0.1  # CWR starts from random rows
    set_rows(head, {0: [6.0, 1.0]})
    head.end_experience(mask(0), counts(c0=1))
    assert head.consolidated[0].tolist() == [6.0, 1.0]
    plus = trained("cwr+")
    plus.begin_experience(mask(0), generator())
    assert not plus.weight.any()


@pytest.mark.parametrize("rule", RULES)
def test_prediction_uses_consolidated_rows_and_training_temporary_ones(rule: str) -> None:
    head = trained(rule)
    features = torch.tensor([[1.0, 0.0]])
    set_rows(head, {0: [5.0, 0.0]})
    assert head.train()(features)[0, 0] == 5
    assert head.eval()(features)[0, 0] == (5 if rule == "plain" else 2)


def test_norms_are_averaged_over_known_classes_only() -> None:
    head = trained()
    assert head.mean_norm(mask(0, 1)).item() == pytest.approx((8**0.5 + 2**0.5) / 2)
    assert head.mean_norm(mask(2, 3)).item() == 0
