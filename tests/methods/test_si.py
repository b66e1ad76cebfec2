"""Synaptic intelligence: what each weight did for the loss, and a plain loop that does the same."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from everlearn.methods import si
from everlearn.nets import build_net
from everlearn.nets.path import Path
from everlearn.settings import change_settings
from everlearn.stream import Gaussians

from .conftest import (
    STREAM,
    STUDY,
    TOY,
    assert_goes_on,
    assert_nothing_pulls,
    assert_plain_first,
    learn,
    toy_accuracy,
    weights,
)


def make(stream: Gaussians = STREAM, **changes: Any) -> si.SI:
    return si.SI(stream, change_settings(si.Settings(), STUDY | changes, "si"), "cpu")


def plain_loop(strength: float, xi: float, compat: bool) -> list[Tensor]:
    """Eqs. 3 to 5 of Zenke et al. 2017; or Avalanche's form as the specification tells it."""
    net = build_net("mlp", 8, 6, 1, STREAM.seed)
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
            slopes = torch.autograd.grad(whole if compat else loss, own, retain_graph=True)
            before = [w.detach().clone() for w in own]
            optimizer.zero_grad()
            whole.backward()
            optimizer.step()
            for o, g, w, b in zip(omega, slopes, own, before, strict=True):
                o -= g * (w.detach() - b)
        moves = [(w.detach() - s).square() for w, s in zip(own, start, strict=True)]
        total = [t + o / (m + xi) for t, o, m in zip(total, omega, moves, strict=True)]
        if not compat:
            total = [t.clamp(min=0) for t in total]
        importance = [t.clamp(max=0.001) if compat else t for t in total]
        start = [w.detach().clone() for w in own]
    return [w.detach() for w in own]


@pytest.mark.parametrize(("compat", "xi"), [(False, 0.1), (True, 1e-7)])
def test_it_is_the_plain_loop(compat: bool, xi: float) -> None:
    strength = 50.0 if compat else 5.0
    learner = learn(make(strength=strength, avalanche_compat=compat), STREAM)
    for one, two in zip(weights(learner), plain_loop(strength, xi, compat), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam])
def test_b5_on_a_quadratic_the_parts_sum_to_the_fall_of_the_loss(kind: Any) -> None:
    weight = nn.Parameter(torch.tensor([3.0, -2.0, 1.0]))
    curves = torch.tensor([1.0, 4.0, 0.5])
    path, optimizer = Path([weight]), kind([weight], lr=0.005)
    losses = []
    for _ in range(400):
        loss = (curves * weight.square()).sum()
        optimizer.zero_grad()
        loss.backward()
        path.depart()
        optimizer.step()
        path.arrive()
        losses.append(float(loss.detach()))
    fall = losses[0] - float((curves * weight.detach().square()).sum())
    assert fall > 5
    assert float(path.omega.all.sum()) == pytest.approx(fall, rel=0.05)


def test_b5_each_weight_explains_its_own_part() -> None:
    """A loss that is a sum over weights falls by what each of them lets its part fall."""
    weight = nn.Parameter(torch.tensor([3.0, -2.0]))
    curves = torch.tensor([1.0, 4.0])
    path, optimizer = Path([weight]), torch.optim.SGD([weight], lr=0.002)
    before = curves * weight.detach().square()
    for _ in range(400):
        optimizer.zero_grad()
        (curves * weight.square()).sum().backward()
        path.depart()
        optimizer.step()
        path.arrive()
    fall = before - curves * weight.detach().square()
    torch.testing.assert_close(path.omega.all, fall, rtol=0.05, atol=0)


def test_b3_right_after_a_task_nothing_pulls() -> None:
    learner = learn(make(), [STREAM[0]])
    assert learner.anchor.importance.all.any()
    assert_nothing_pulls(learner)


def test_b14_the_first_task_is_fine_tuning_to_the_bit() -> None:
    assert_plain_first(make(strength=100.0), STREAM, STUDY)


@pytest.mark.parametrize(
    ("compat", "path", "wanted"),
    [
        (False, -1e6, [0.0, 0.0]),
        (True, -1e6, [-1e30, -1e5]),
        (True, 1e6, [1e-3, 1e-3]),
    ],
)
def test_importance_is_not_below_0_and_in_avalanches_form_not_above_a_bound(
    compat: bool, path: float, wanted: list[float]
) -> None:
    learner = make(avalanche_compat=compat)
    learner.path.omega.all.fill_(path)  # more than a task can do
    importance = learn(learner, [STREAM[0]]).anchor.importance.all
    assert torch.tensor(wanted[0]) <= importance.min()
    assert importance.max() <= torch.tensor(wanted[1])


def test_what_did_harm_is_forgotten_with_its_task() -> None:
    learner = make()
    learner.path.omega.all.fill_(-1e6)
    assert learn(learner, [STREAM[0], STREAM[1]]).anchor.importance.all.max() > 0


@pytest.mark.parametrize("compat", [False, True])
def test_a_loaded_state_goes_on_to_the_same_bits(compat: bool) -> None:
    whole, second = assert_goes_on(partial(make, avalanche_compat=compat), STREAM)
    assert torch.equal(second.state()["importance"], whole.state()["importance"])


def test_avalanches_form_leaves_normalisations_alone() -> None:
    net = {"net": "convnet-pooled"}
    stream = STREAM.with_changes(dimensions=3)
    every, some = make(stream, **net), make(stream, **net, avalanche_compat=True)
    norms = 2 * (32 + 64 + 128 + 128)
    assert len(every.total) - len(some.total) == norms


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="strength must lie in"):
        make(strength=-1.0)
    with pytest.raises(ValueError, match="damping must lie in"):
        make(damping=0.0)


@pytest.mark.slow
def test_b12_a_strong_hold_keeps_the_toy_stream() -> None:
    assert toy_accuracy(partial(make, **TOY, strength=5.0), range(3)) >= 0.75
