"""Distillation: zero for a student equal to its teacher, and independent of other classes."""

from __future__ import annotations

import math

import pytest
import torch

from everlearn.losses.distillation import NOT_STORED, distillation_loss, logit_distance

PAST = torch.tensor([True, True, False, True, False])


def draw(seed, rows=6):
    generator = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(rows, 5, generator=generator)


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_it_is_the_kl_divergence_over_the_given_classes(temperature):
    logits, teacher = draw(0), draw(1)
    chosen = [0, 1, 3]
    total = 0.0
    for row, old in zip(logits.tolist(), teacher.tolist(), strict=True):
        p = [math.exp(old[k] / temperature) for k in chosen]
        q = [math.exp(row[k] / temperature) for k in chosen]
        p = [value / sum(p) for value in p]
        q = [value / sum(q) for value in q]
        total += sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
    found = distillation_loss(logits, teacher, PAST, temperature)
    assert float(found) == pytest.approx(total / len(logits), rel=1e-5)


def test_a_student_equal_to_its_teacher_has_no_loss_and_no_gradient():
    teacher = draw(0)
    logits = teacher.clone().requires_grad_()
    loss = distillation_loss(logits, teacher, PAST, 2.0)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert abs(float(loss.detach())) < 1e-6
    assert gradient.abs().max() < 1e-7


def test_other_classes_neither_matter_nor_get_a_gradient():
    teacher, logits = draw(0), draw(1).requires_grad_()
    loss = distillation_loss(logits, teacher, PAST, 2.0)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert not gradient[:, ~PAST].any()
    assert gradient[:, PAST].any()
    shifted = torch.where(PAST, logits, logits + 100.0), torch.where(PAST, teacher, -50.0)
    assert torch.equal(distillation_loss(*shifted, PAST, 2.0), loss)


def test_extreme_logits_give_finite_gradients():
    teacher = torch.tensor([[1e4, 0.0, 0.0, 0.0, 0.0]])
    logits = torch.tensor([[0.0, 1e4, 0.0, 0.0, 0.0]], requires_grad=True)
    (gradient,) = torch.autograd.grad(distillation_loss(logits, teacher, PAST, 1.0), logits)
    assert gradient.isfinite().all()


def test_the_distance_of_logits_is_over_the_classes_that_each_image_knew():
    """2 and 4 differ by 2, 1 and 0 by 1: a mean of 2.5; the second image knows one class, 3 apart."""
    logits = torch.tensor([[2.0, 1.0, 9.0], [5.0, 6.0, 7.0]], requires_grad=True)
    stored = torch.tensor([[4.0, 0.0, NOT_STORED], [NOT_STORED, 3.0, NOT_STORED]])
    distance = logit_distance(logits, stored)
    assert distance.item() == (2.5 + 9.0) / 2
    distance.backward()
    # d/dx of (x - z)^2, over the number of known classes and of images.
    assert logits.grad is not None
    assert logits.grad.tolist() == [[-1.0, 0.5, 0.0], [0.0, 3.0, 0.0]]


def test_more_unknown_classes_do_not_change_the_distance_of_logits():
    logits, stored = draw(0), draw(1)
    unknown = torch.full((6, 7), NOT_STORED)
    wider = logit_distance(
        torch.cat([logits, draw(2), draw(3)[:, :2]], 1), torch.cat([stored, unknown], 1)
    )
    torch.testing.assert_close(wider, logit_distance(logits, stored))
