"""Losses of PCR and HPCR against loops."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from everlearn.losses.proxy import (
    cosines,
    loss_scale_at,
    proxy_distillation,
    proxy_loss,
    sample_distillation,
)

TAU = 0.09
LABELS = torch.tensor([4, 0, 4, 6, 0, 4])


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cosine(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum() / (a.square().sum().sqrt() * b.square().sum().sqrt())


def slow_proxy_loss(features: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for feature, label in zip(features, labels, strict=True):
        others = sum((cosine(feature, weight[y]) / TAU).exp() for y in labels)
        total = total - ((cosine(feature, weight[label]) / TAU).exp() / others).log()
    return total / len(labels)


def slow_sample_distillation(features: Tensor, stored: Tensor) -> Tensor:
    total = torch.zeros((), dtype=torch.float64)
    count = len(features)
    for i in range(count):
        others = [j for j in range(count) if j != i]
        now, old = (
            torch.stack([(cosine(rows[i], rows[j]) / TAU).exp() for j in others])
            for rows in (features, stored)
        )
        total = total - (old / old.sum() * (now / now.sum()).log()).sum()
    return total / count


def test_the_proxy_loss_equals_that_of_a_loop() -> None:
    features, weight = random(6, 5), random(8, 5, seed=1)
    expected = slow_proxy_loss(features, weight, LABELS)
    assert float(proxy_loss(features, weight, LABELS, TAU)) == pytest.approx(float(expected), 1e-5)


def test_gradients_of_the_proxy_loss_are_those_of_a_loop() -> None:
    features, weight = random(6, 5).requires_grad_(), random(8, 5, seed=1).requires_grad_()
    fast = torch.autograd.grad(proxy_loss(features, weight, LABELS, TAU), (features, weight))
    slow = torch.autograd.grad(slow_proxy_loss(features, weight, LABELS), (features, weight))
    for ours, theirs in zip(fast, slow, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_proxies_of_classes_outside_the_batch_get_no_gradient() -> None:
    weight = random(8, 5).requires_grad_()
    proxy_loss(random(6, 5, seed=1), weight, LABELS, TAU).backward()
    assert weight.grad is not None
    assert weight.grad.abs().sum(1).nonzero().flatten().tolist() == [0, 4, 6]


def test_a_batch_of_one_class_has_the_loss_of_a_uniform_choice_among_its_rows() -> None:
    loss = proxy_loss(random(7, 5), random(8, 5, seed=1), torch.full((7,), 3), TAU)
    assert float(loss) == pytest.approx(math.log(7), 1e-6)


def test_norms_of_features_and_proxies_do_not_matter() -> None:
    features, weight = random(6, 5), random(8, 5, seed=1)
    longer = proxy_loss(3 * features, 0.2 * weight, LABELS, TAU)
    assert float(longer) == pytest.approx(float(proxy_loss(features, weight, LABELS, TAU)), 1e-5)


def test_features_of_zeros_give_finite_gradients() -> None:
    features = torch.zeros(6, 5).requires_grad_()
    proxy_loss(features, random(8, 5), LABELS, TAU).backward()
    assert features.grad is not None
    assert bool(features.grad.isfinite().all())


def test_the_loss_scale_goes_from_low_to_high_and_back_in_500_iterations() -> None:
    values = [loss_scale_at(iteration) for iteration in range(1500)]
    assert min(values) == values[0] == pytest.approx(0.5625, abs=1e-12)
    assert max(values) == values[250] == pytest.approx(1.8, abs=1e-12)
    assert values[500:] == pytest.approx(values[:-500], abs=1e-12)


def test_the_loss_scale_has_no_shorter_period() -> None:
    wave = [loss_scale_at(iteration) for iteration in range(501)]
    assert all(value > wave[0] + 1e-6 for value in wave[1:500])


def test_the_loss_scale_is_in_the_middle_after_a_quarter_period() -> None:
    assert loss_scale_at(125) == pytest.approx((0.5625 + 1.8) / 2)


def test_proxy_distillation_is_the_mean_square_over_columns_of_all_labels() -> None:
    logits, stored = random(3, 8), random(3, 8, seed=1)
    squares = [float(logits[i, y] - stored[i, y]) ** 2 for i in range(3) for y in LABELS.tolist()]
    found = proxy_distillation(logits.float(), stored.float(), LABELS)
    assert float(found) == pytest.approx(sum(squares) / len(squares), 1e-5)


def test_sample_distillation_equals_that_of_a_loop() -> None:
    features, stored = random(6, 5), random(6, 5, seed=1)
    expected = slow_sample_distillation(features, stored)
    assert float(sample_distillation(features, stored, TAU)) == pytest.approx(float(expected), 1e-5)


def test_gradients_of_sample_distillation_are_those_of_a_loop() -> None:
    features, stored = random(6, 5).requires_grad_(), random(6, 5, seed=1)
    (fast,) = torch.autograd.grad(sample_distillation(features, stored, TAU), features)
    (slow,) = torch.autograd.grad(slow_sample_distillation(features, stored), features)
    torch.testing.assert_close(fast, slow, atol=1e-5, rtol=1e-5)


def test_distillation_has_no_gradient_where_nothing_changed() -> None:
    features, logits = random(6, 5).requires_grad_(), random(6, 8).float().requires_grad_()
    losses = (
        sample_distillation(features, features.detach(), TAU),
        proxy_distillation(logits, logits.detach(), LABELS),
    )
    for loss, leaf in zip(losses, (features, logits), strict=True):
        (gradient,) = torch.autograd.grad(loss, leaf)
        assert float(gradient.abs().max()) < 1e-5


def test_cosines_of_bfloat16_features_are_computed_in_float32() -> None:
    features, weight = random(6, 5).bfloat16(), random(8, 5, seed=1)
    assert torch.equal(cosines(features, weight), cosines(features.float(), weight))
