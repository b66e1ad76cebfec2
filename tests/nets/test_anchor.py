"""An anchor's pull is the slope of its penalty; many anchors of one kind are one."""

from __future__ import annotations

import pytest
import torch

from everlearn.nets import build_net, fast
from everlearn.nets.anchor import Anchor, Row, descend


@pytest.fixture
def net():
    """A net with weights of all layouts: channels last, matrices, rows."""
    return fast.place(build_net("convnet-pooled", 3, 4, 8, seed=0), "cpu")


def noise(weights, seed, low=-1.0):
    rng = torch.Generator().manual_seed(seed)
    return [low + (1 - low) * torch.rand(one.shape, generator=rng) for one in weights]


def move(weights, seed):
    with torch.no_grad():
        for weight, off in zip(weights, noise(weights, seed), strict=True):
            weight += 0.1 * off


def give_slopes(weights, seed):
    for weight, slope in zip(weights, noise(weights, seed), strict=True):
        weight.grad = slope.clone(memory_format=torch.preserve_format)


def penalty(weights, terms):
    """The plain sum over (importance, place) of each task."""
    return sum(
        (f.double() * (w.double() - p.double()).square()).sum()
        for importance, place in terms
        for f, w, p in zip(importance, weights, place, strict=True)
    )


def assert_slopes(weights, plain, before):
    found = [w.grad - b for w, b in zip(weights, before, strict=True)]
    wanted = torch.autograd.grad(plain, weights)
    for one, two in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)


def held(weights, seed=2):
    """An anchor with some importance where the weights are."""
    anchor = Anchor(weights, 0.7)
    anchor.importance.read(noise(weights, seed, low=0))
    anchor.hold()
    return anchor


def test_a_row_and_its_parts_are_one_memory_laid_out_as_the_weights(net):
    weights = list(net.parameters())
    row = Row(weights)
    assert [part.stride() for part in row.parts] == [weight.stride() for weight in weights]
    row.read(weights)
    for part, weight in zip(row.parts, weights, strict=True):
        assert torch.equal(part, weight)
    row.all.zero_()
    assert not any(part.any() for part in row.parts)


def test_b3_where_it_holds_an_anchor_pulls_at_nothing(net):
    weights = list(net.parameters())
    anchor = held(weights)
    give_slopes(weights, 3)
    before = [weight.grad.clone() for weight in weights]
    assert anchor.pull() == 0
    assert all(torch.equal(w.grad, b) for w, b in zip(weights, before, strict=True))


def test_a_pull_is_the_slope_of_its_penalty(net):
    weights = list(net.parameters())
    anchor, place = held(weights), [weight.detach().clone() for weight in weights]
    move(weights, 1)
    give_slopes(weights, 3)
    before = [weight.grad.clone() for weight in weights]
    value = anchor.pull()
    plain = 0.7 * penalty(weights, [(noise(weights, 2, low=0), place)])
    torch.testing.assert_close(value, plain.detach().float())
    assert_slopes(weights, plain, before)


def test_the_quadratics_of_many_tasks_are_one(net):
    weights = list(net.parameters())
    anchor, terms = Anchor(weights, 0.7), []
    for task in range(4):
        move(weights, 10 + task)
        importance = [one.relu() for one in noise(weights, 20 + task)]  # half of them 0
        anchor.add(Row(weights).read(importance))
        terms.append((importance, [weight.detach().clone() for weight in weights]))
    move(weights, 30)
    give_slopes(weights, 3)
    before = [weight.grad.clone() for weight in weights]
    value = anchor.pull()
    plain = 0.7 * penalty(weights, terms)
    torch.testing.assert_close(value, plain.detach().float())
    assert_slopes(weights, plain, before)


def test_weights_that_never_mattered_are_not_held(net):
    weights = list(net.parameters())
    anchor = Anchor(weights, 1e6)
    for _ in range(2):
        anchor.add(torch.zeros_like(anchor.at.all))
    move(weights, 1)
    give_slopes(weights, 3)
    before = [weight.grad.clone() for weight in weights]
    assert anchor.pull() == 0
    assert all(torch.equal(w.grad, b) for w, b in zip(weights, before, strict=True))


def test_a_state_put_back_pulls_alike(net):
    weights = list(net.parameters())
    anchor, again = Anchor(weights, 0.7), Anchor(weights, 0.7)
    for task in range(2):
        move(weights, task)
        anchor.add(Row(weights).read(noise(weights, 20 + task, low=0)))
    again.load_state({name: value.clone() for name, value in anchor.state().items()})
    give_slopes(weights, 3)
    value = anchor.pull()
    slopes = [weight.grad for weight in weights]
    give_slopes(weights, 3)
    assert torch.equal(value, again.pull())
    assert all(torch.equal(w.grad, s) for w, s in zip(weights, slopes, strict=True))


def test_a_step_is_that_of_the_loss_with_the_penalty_in_it():
    ends = []
    for plain in (False, True):
        weight = torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0]))
        anchor = Anchor([weight], 0.5)
        anchor.importance.all.copy_(torch.tensor([1.0, 2.0, 0.0]))
        optimizer = torch.optim.SGD([weight], lr=0.1)
        loss = (weight**2).sum()
        if plain:
            loss = loss + 0.5 * (weight[0] ** 2 + 2 * weight[1] ** 2)
        loss = descend(optimizer, loss, [] if plain else [anchor])
        ends.append((loss.detach(), weight.detach()))
    torch.testing.assert_close(*ends)
