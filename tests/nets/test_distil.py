"""Distillation: nothing to do for a student that is its teacher, and nothing beyond the classes asked."""

from __future__ import annotations

import math

import pytest
import torch

from everlearn.nets.distil import divergence

PAST = torch.tensor([True, True, False, True, False])


def draw(seed, rows=6):
    rng = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(rows, 5, generator=rng)


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_it_is_the_textbooks_kl_over_some_classes(temperature):
    logits, teacher = draw(0), draw(1)
    chosen, total = [0, 1, 3], 0.0
    for row, old in zip(logits.tolist(), teacher.tolist(), strict=True):
        p = [math.exp(old[k] / temperature) for k in chosen]
        q = [math.exp(row[k] / temperature) for k in chosen]
        p, q = [one / sum(p) for one in p], [one / sum(q) for one in q]
        total += sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
    found = divergence(logits, teacher, PAST, temperature)
    assert float(found) == pytest.approx(total / len(logits), rel=1e-5)


def test_b6_a_student_that_is_its_teacher_has_nothing_to_learn():
    teacher = draw(0)
    logits = teacher.clone().requires_grad_()
    loss = divergence(logits, teacher, PAST, 2.0)
    (slope,) = torch.autograd.grad(loss, logits)
    assert abs(float(loss.detach())) < 1e-6
    assert slope.abs().max() < 1e-7


def test_b6_other_classes_neither_matter_nor_get_a_slope():
    teacher, logits = draw(0), draw(1).requires_grad_()
    loss = divergence(logits, teacher, PAST, 2.0)
    (slope,) = torch.autograd.grad(loss, logits)
    assert not slope[:, ~PAST].any()
    assert slope[:, PAST].any()
    shifted = torch.where(PAST, logits, logits + 100.0), torch.where(PAST, teacher, -50.0)
    assert torch.equal(divergence(*shifted, PAST, 2.0), loss)


def test_answers_that_are_sure_stay_numbers():
    teacher = torch.tensor([[1e4, 0.0, 0.0, 0.0, 0.0]])
    logits = torch.tensor([[0.0, 1e4, 0.0, 0.0, 0.0]], requires_grad=True)
    (slope,) = torch.autograd.grad(divergence(logits, teacher, PAST, 1.0), logits)
    assert slope.isfinite().all()
