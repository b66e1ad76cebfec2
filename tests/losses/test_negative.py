"""Negative replay: replayed samples train the rows of current classes, and no others."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cross_entropy, one_hot

from everlearn.losses.negative import negative_loss

CLASSES = 6
CURRENT = torch.tensor(
    [False, False, False, True, True, False]
)  # classes 0, 1, 2 are old, 5 to come
TARGETS = torch.tensor([3, 4, 4, 3, 0, 1, 2, 2, 0])
REPLAYED = torch.tensor([False] * 4 + [True] * 5)


def draw(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


FEATURES, HEAD = draw(0, 9, 5), draw(1, CLASSES, 5)


def gradient(loss, rows=slice(None), **more):
    """The gradient of a head (classes, features) from some samples."""
    head = HEAD.clone().requires_grad_()
    value = loss(FEATURES[rows] @ head.T, TARGETS[rows], **more)
    return torch.autograd.grad(value, head)[0]


def negative(logits, targets, replayed):
    return negative_loss(logits, targets, replayed, CURRENT)


def test_replayed_samples_give_rows_of_other_classes_no_gradient():
    found = gradient(negative, REPLAYED, replayed=REPLAYED[REPLAYED])
    assert not found[~CURRENT].any()
    assert found[CURRENT].abs().min() > 0


def test_current_samples_give_every_row_its_full_gradient():
    rows = ~REPLAYED
    found = gradient(negative, rows, replayed=REPLAYED[rows])
    assert torch.equal(found, gradient(cross_entropy, rows))
    assert found[~CURRENT].abs().min() > 0


def test_rows_of_current_classes_get_the_gradient_of_plain_replay():
    found, plain = gradient(negative, replayed=REPLAYED), gradient(cross_entropy)
    torch.testing.assert_close(found[CURRENT], plain[CURRENT], rtol=0, atol=1e-6)
    assert (found - plain)[~CURRENT].abs().max() > 1e-3


def test_masking_logits_instead_would_change_the_gradient_of_current_rows():
    """The tempting alternative: mask all other classes except the correct one."""

    def masked(logits, targets):
        keep = CURRENT | one_hot(targets, CLASSES).bool()
        return cross_entropy(logits.masked_fill(~keep, -torch.inf), targets)

    wrong = gradient(masked, REPLAYED)
    correct = gradient(negative, REPLAYED, replayed=REPLAYED[REPLAYED])
    assert (wrong - correct)[CURRENT].abs().max() > 1e-3


def test_the_gradient_is_softmax_less_one_hot_where_the_class_is_current():
    logits = draw(2, 9, CLASSES).requires_grad_()
    (found,) = torch.autograd.grad(negative_loss(logits, TARGETS, REPLAYED, CURRENT), logits)
    expected = (logits.softmax(1) - one_hot(TARGETS, CLASSES)) / 9
    expected[REPLAYED] *= CURRENT
    torch.testing.assert_close(found, expected.detach())


def test_a_replayed_sample_of_a_current_class_trains_it():
    logits = draw(2, 1, CLASSES).requires_grad_()
    loss = negative_loss(logits, torch.tensor([3]), torch.tensor([True]), CURRENT)
    (found,) = torch.autograd.grad(loss, logits)
    assert found[0, 3] < 0 < found[0, 4]
    assert not found[0, ~CURRENT].any()


@pytest.mark.parametrize("seen", [None, torch.arange(CLASSES) < 5])
def test_the_value_is_that_of_cross_entropy(seen):
    logits = draw(2, 9, CLASSES)
    masked = logits if seen is None else logits.masked_fill(~seen, -torch.inf)
    loss = negative_loss(logits, TARGETS, REPLAYED, CURRENT, seen)
    assert torch.equal(loss, cross_entropy(masked, TARGETS))


def test_unseen_classes_are_not_in_the_softmax():
    seen, logits = torch.arange(CLASSES) < 5, draw(2, 9, CLASSES).requires_grad_()
    loss = negative_loss(logits, TARGETS, REPLAYED, CURRENT, seen)
    (found,) = torch.autograd.grad(loss, logits)
    assert found.isfinite().all()
    assert not found[:, ~seen].any()
    far = torch.where(seen, logits, 50.0)
    assert torch.equal(negative_loss(far, TARGETS, REPLAYED, CURRENT, seen), loss)
