"""Naive negative replay: old samples move the rows of current classes, and no others."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cross_entropy, one_hot

from everlearn.nets.negative import negative_loss

CLASSES = 6
CURRENT = torch.tensor(
    [False, False, False, True, True, False]
)  # classes 0, 1, 2 are old, 5 to come
UNITS = torch.tensor([3, 4, 4, 3, 0, 1, 2, 2, 0])
REPLAYED = torch.tensor([False] * 4 + [True] * 5)


def draw(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


FEATURES, HEAD = draw(0, 9, 5), draw(1, CLASSES, 5)


def slope(loss, rows=slice(None), **more):
    """The gradient of a head (classes, features) from some samples."""
    head = HEAD.clone().requires_grad_()
    value = loss(FEATURES[rows] @ head.T, UNITS[rows], **more)
    return torch.autograd.grad(value, head)[0]


def negative(logits, units, replayed):
    return negative_loss(logits, units, replayed, CURRENT)


def test_n4_old_samples_give_rows_of_other_classes_no_gradient():
    found = slope(negative, REPLAYED, replayed=REPLAYED[REPLAYED])
    assert not found[~CURRENT].any()
    assert found[CURRENT].abs().min() > 0


def test_n4_current_samples_give_every_row_its_whole_gradient():
    rows = ~REPLAYED
    found = slope(negative, rows, replayed=REPLAYED[rows])
    assert torch.equal(found, slope(cross_entropy, rows))
    assert found[~CURRENT].abs().min() > 0


def test_n5_rows_of_current_classes_get_the_gradient_of_plain_replay():
    found, plain = slope(negative, replayed=REPLAYED), slope(cross_entropy)
    torch.testing.assert_close(found[CURRENT], plain[CURRENT], rtol=0, atol=1e-6)
    assert (found - plain)[~CURRENT].abs().max() > 1e-3


def test_n5_a_logit_of_minus_infinity_would_change_the_gradient_of_current_rows():
    """The tempting other way: leave out other classes, but for the right one."""

    def shut(logits, units):
        keep = CURRENT | one_hot(units, CLASSES).bool()
        return cross_entropy(logits.masked_fill(~keep, -torch.inf), units)

    wrong = slope(shut, REPLAYED)
    right = slope(negative, REPLAYED, replayed=REPLAYED[REPLAYED])
    assert (wrong - right)[CURRENT].abs().max() > 1e-3


def test_the_gradient_is_softmax_less_one_hot_where_the_class_is_current():
    logits = draw(2, 9, CLASSES).requires_grad_()
    (found,) = torch.autograd.grad(negative_loss(logits, UNITS, REPLAYED, CURRENT), logits)
    expected = (logits.softmax(1) - one_hot(UNITS, CLASSES)) / 9
    expected[REPLAYED] *= CURRENT
    torch.testing.assert_close(found, expected.detach())


def test_an_old_sample_of_a_current_class_is_pulled_to_it():
    logits = draw(2, 1, CLASSES).requires_grad_()
    loss = negative_loss(logits, torch.tensor([3]), torch.tensor([True]), CURRENT)
    (found,) = torch.autograd.grad(loss, logits)
    assert found[0, 3] < 0 < found[0, 4]
    assert not found[0, ~CURRENT].any()


@pytest.mark.parametrize("met", [None, torch.arange(CLASSES) < 5])
def test_the_value_is_that_of_cross_entropy(met):
    logits = draw(2, 9, CLASSES)
    shut = logits if met is None else logits.masked_fill(~met, -torch.inf)
    loss = negative_loss(logits, UNITS, REPLAYED, CURRENT, met)
    assert torch.equal(loss, cross_entropy(shut, UNITS))


def test_classes_not_met_take_no_part():
    met, logits = torch.arange(CLASSES) < 5, draw(2, 9, CLASSES).requires_grad_()
    loss = negative_loss(logits, UNITS, REPLAYED, CURRENT, met)
    (found,) = torch.autograd.grad(loss, logits)
    assert found.isfinite().all()
    assert not found[:, ~met].any()
    far = torch.where(met, logits, 50.0)
    assert torch.equal(negative_loss(far, UNITS, REPLAYED, CURRENT, met), loss)
