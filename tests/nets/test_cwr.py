"""CWR heads: what is kept of an experience, by hand."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from everlearn.nets.cwr import RULES, CopyWeights


def chance() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def mask(*numbers: int, classes: int = 4) -> Tensor:
    return torch.tensor([number in numbers for number in range(classes)])


def set_rows(head: CopyWeights, rows: dict[int, list[float]]) -> None:
    with torch.no_grad():
        for number, row in rows.items():
            head.weight[number] = torch.tensor(row)


def counts(**numbers: int) -> Tensor:
    out = torch.zeros(4)
    for name, count in numbers.items():
        out[int(name[1:])] = count
    return out


def taught(rule: str = "cwr*", shift: str = "global") -> CopyWeights:
    """A head that has kept rows 0 and 1 of an experience of 9 patterns each."""
    head = CopyWeights(2, 4, rule, shift)
    head.open(mask(0, 1), chance())
    set_rows(head, {0: [2.0, -2.0], 1: [1.0, -1.0]})
    head.close(mask(0, 1), counts(c0=9, c1=9))
    return head


def test_rows_that_come_back_are_averaged_by_what_they_have_seen() -> None:
    """N3: (2 * 3 + 6) / 4 = 3."""
    head = taught()
    head.open(mask(0), chance())
    set_rows(head, {0: [6.0, -6.0]})
    head.close(mask(0), counts(c0=1))
    assert torch.equal(head.kept[0], torch.tensor([3.0, -3.0]))
    assert head.past.tolist() == [10, 9, 0, 0]


def test_a_row_that_did_not_move_stays() -> None:
    """N2: with past = cur and psi0 = psi."""
    head = taught()
    before = head.kept.clone()
    head.open(mask(0, 1), chance())
    assert torch.equal(head.weight[:2], before[:2])
    head.close(mask(0, 1), counts(c0=9, c1=9))
    torch.testing.assert_close(head.kept, before)


def test_rows_of_classes_that_do_not_count_keep_their_bits() -> None:
    """N1: negative replay moves the learned row of a replayed class, never the kept one."""
    head = taught()
    before = head.kept[1].clone()
    head.open(mask(1, 2), chance())
    set_rows(head, {1: [8.0, 3.0], 2: [1.0, 5.0]})
    head.close(mask(1, 2), counts(c2=5))
    assert torch.equal(head.kept[1], before)
    assert head.past.tolist() == [9, 9, 5, 0]
    assert head.known.tolist() == [True, True, True, False]


def test_an_experience_begins_with_the_kept_rows_of_its_classes_and_zeros() -> None:
    head = taught()
    set_rows(head, {2: [7.0, 7.0]})
    head.open(mask(1, 3), chance())
    assert torch.equal(head.weight[1], head.kept[1])
    assert not head.weight[[0, 2, 3]].any()


def test_the_mean_is_of_all_rows_present_or_of_each() -> None:
    rows = {0: [4.0, 2.0], 1: [1.0, 1.0], 3: [100.0, 100.0]}
    found = {}
    for shift in ("global", "per_class"):
        head = CopyWeights(2, 4, "cwr+", shift)
        set_rows(head, rows)
        head.close(mask(0, 1), counts(c0=1, c1=1))
        found[shift] = head.kept.tolist()
    assert found["global"] == [[2.0, 0.0], [-1.0, -1.0], [0.0, 0.0], [0.0, 0.0]]
    assert found["per_class"] == [[1.0, -1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]


def test_older_rules_keep_the_last_rows() -> None:
    head = taught("cwr")
    assert head.kept[0].tolist() == [2.0, -2.0]
    head.open(mask(0), chance())
    first = head.weight.clone()
    assert 0 < first.std() < 0.1  # CWR starts from random rows
    set_rows(head, {0: [6.0, 1.0]})
    head.close(mask(0), counts(c0=1))
    assert head.kept[0].tolist() == [6.0, 1.0]
    plus = taught("cwr+")
    plus.open(mask(0), chance())
    assert not plus.weight.any()


@pytest.mark.parametrize("rule", RULES)
def test_answers_come_from_kept_rows_and_learning_from_learned_ones(rule: str) -> None:
    head, seen = taught(rule), torch.tensor([[1.0, 0.0]])
    set_rows(head, {0: [5.0, 0.0]})
    assert head.train()(seen)[0, 0] == 5
    assert head.eval()(seen)[0, 0] == (5 if rule == "plain" else 2)


def test_lengths_are_of_known_classes_only() -> None:
    head = taught()
    assert head.norms(mask(0, 1)).item() == pytest.approx((8**0.5 + 2**0.5) / 2)
    assert head.norms(mask(2, 3)).item() == 0
