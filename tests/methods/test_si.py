"""Synaptic intelligence: what each weight did for the loss, and a plain loop that does the same."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from everlearn.core.settings import change_settings
from everlearn.methods import si
from everlearn.nets import build_classifier
from everlearn.stream import Gaussians
from everlearn.training.path_integral import PathIntegral

from .conftest import (
    STREAM,
    TOY,
    TRAIN,
    assert_first_task_is_fine_tuning,
    assert_no_penalty,
    assert_resumes,
    learn,
    toy_accuracy,
    weights,
)


def make(stream: Gaussians = STREAM, **changes: Any) -> si.SI:
    return si.SI(stream, change_settings(si.Settings(), TRAIN | changes, "si"), "cpu")


def plain_loop(strength: float, xi: float, compat: bool) -> list[Tensor]:
    """Eqs. 3 to 5 of Zenke et al. 2017; or Avalanche's form as the specification tells it."""
    net = build_classifier("mlp", 8, 6, 1, STREAM.seed)
    own = list(net.parameters())
    optimizer = torch.optim.Adam(own, lr=0.01)
    total, importance = [torch.zeros_like(w) for w in own], [torch.zeros_like(w) for w in own]
    start = [w.detach().clone() for w in own]
    for task in STREAM:
        omega = [torch.zeros_like(w) for w in own]
        for batch in task.batches(16, 2):
            loss = cross_entropy(net(batch.images), batch.labels)
            parts = zip(importance, own, start, strict=True)
            far = sum((f * (w - s).square()).sum() for f, w, s in parts)
            whole = loss + strength * (0.5 if compat else 1.0) * far
            gradients = torch.autograd.grad(whole if compat else loss, own, retain_graph=True)
            before = [w.detach().clone() for w in own]
            optimizer.zero_grad()
            whole.backward()
            optimizer.step()
            for o, g, w, b in zip(omega, gradients, own, before, strict=True):
                o -= g * (w.detach() - b)
        moves = [(w.detach() - s).square() for w, s in zip(own, start, strict=True)]
        total = [t + o / (m + xi) for t, o, m in zip(total, omega, moves, strict=True)]
        importance = [t.clamp(max=0.001) if compat else t.clamp(min=0) for t in total]
        start = [w.detach().clone() for w in own]
    return [w.detach() for w in own]


@pytest.mark.parametrize(("compat", "xi"), [(False, 0.1), (True, 1e-7)])
def test_matches_a_plain_loop(compat: bool, xi: float) -> None:
    strength = 50.0 if compat else 5.0
    learner = learn(make(strength=strength, avalanche_compat=compat), STREAM)
    for one, two in zip(weights(learner), plain_loop(strength, xi, compat), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam])
def test_path_integral_sums_to_the_decrease_of_a_quadratic_loss(kind: Any) -> None:
    weight = nn.Parameter(torch.tensor([3.0, -2.0, 1.0]))
    curves = torch.tensor([1.0, 4.0, 0.5])
    path, optimizer = PathIntegral([weight]), kind([weight], lr=0.005)
    losses = []
    for _ in range(400):
        loss = (curves * weight.square()).sum()
        optimizer.zero_grad()
        loss.backward()
        path.before_step()
        optimizer.step()
        path.after_step()
        losses.append(float(loss.detach()))
    fall = losses[0] - float((curves * weight.detach().square()).sum())
    assert fall > 5
    assert float(path.omega.flat.sum()) == pytest.approx(fall, rel=0.05)


def test_path_integral_attributes_the_decrease_to_each_weight() -> None:
    """A loss that is a sum over weights falls by what each of them lets its part fall."""
    weight = nn.Parameter(torch.tensor([3.0, -2.0]))
    curves = torch.tensor([1.0, 4.0])
    path, optimizer = PathIntegral([weight]), torch.optim.SGD([weight], lr=0.002)
    before = curves * weight.detach().square()
    for _ in range(400):
        optimizer.zero_grad()
        (curves * weight.square()).sum().backward()
        path.before_step()
        optimizer.step()
        path.after_step()
    fall = before - curves * weight.detach().square()
    torch.testing.assert_close(path.omega.flat, fall, rtol=0.05, atol=0)


def test_penalty_is_zero_right_after_a_task() -> None:
    learner = learn(make(), [STREAM[0]])
    assert learner.penalty.importance.flat.any()
    assert_no_penalty(learner)


def test_first_task_equals_fine_tuning() -> None:
    assert_first_task_is_fine_tuning(make(strength=100.0), STREAM, TRAIN)


@pytest.mark.parametrize(
    ("compat", "path", "wanted"),
    [
        (False, -1e6, [0.0, 0.0]),
        (True, -1e6, [-1e30, -1e5]),
        (True, 1e6, [1e-3, 1e-3]),
    ],
)
def test_importance_is_clamped(compat: bool, path: float, wanted: list[float]) -> None:
    learner = make(avalanche_compat=compat)
    learner.path.omega.flat.fill_(path)  # more than a task can do
    importance = learn(learner, [STREAM[0]]).penalty.importance.flat
    assert torch.tensor(wanted[0]) <= importance.min()
    assert importance.max() <= torch.tensor(wanted[1])


def test_negative_contributions_of_a_task_count_in_the_sum() -> None:
    """A negative sum is no penalty, and a later task is penalised only for what exceeds it."""
    learner = make()
    learner.path.omega.flat.fill_(-1e6)
    learn(learner, [STREAM[0]])
    before = learner.importance.clone()
    assert before.max() < 0
    assert not learner.penalty.importance.flat.any()
    learner.path.omega.flat.fill_(1e9)
    learn(learner, [STREAM[1]])
    gained = learner.importance - before
    assert (learner.penalty.importance.flat < gained).all()
    torch.testing.assert_close(learner.penalty.importance.flat, before + gained)


@pytest.mark.parametrize("compat", [False, True])
def test_resumes_bit_for_bit(compat: bool) -> None:
    whole, second = assert_resumes(partial(make, avalanche_compat=compat), STREAM)
    assert torch.equal(second.state()["importance"], whole.state()["importance"])


def test_avalanche_variant_ignores_normalisation_weights() -> None:
    net = {"net": "convnet-pooled"}
    stream = STREAM.with_changes(dimensions=3)
    every, some = make(stream, **net), make(stream, **net, avalanche_compat=True)
    norms = 2 * (32 + 64 + 128 + 128)
    assert len(every.importance) - len(some.importance) == norms


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="strength must lie in"):
        make(strength=-1.0)
    with pytest.raises(ValueError, match="damping must lie in"):
        make(damping=0.0)


@pytest.mark.integration
def test_a_strong_penalty_remembers_the_toy_stream() -> None:
    assert toy_accuracy(partial(make, **TOY, strength=5.0), range(3)) >= 0.75
