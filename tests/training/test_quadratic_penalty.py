"""A quadratic penalty adds its own gradient, and the penalties of many tasks are one."""

from __future__ import annotations

import pytest
import torch

from everlearn.nets import build_net
from everlearn.nets.precision import to_device
from everlearn.training.flat_params import FlatParams
from everlearn.training.quadratic_penalty import QuadraticPenalty, penalized_step


@pytest.fixture
def net():
    """A net with weights of all layouts: channels last, matrices, vectors."""
    return to_device(build_net("convnet-pooled", 3, 4, 8, seed=0), "cpu")


def noise(weights, seed, low=-1.0):
    generator = torch.Generator().manual_seed(seed)
    return [low + (1 - low) * torch.rand(one.shape, generator=generator) for one in weights]


def move(weights, seed):
    with torch.no_grad():
        for weight, off in zip(weights, noise(weights, seed), strict=True):
            weight += 0.1 * off


def set_gradients(weights, seed):
    for weight, gradient in zip(weights, noise(weights, seed), strict=True):
        weight.grad = gradient.clone(memory_format=torch.preserve_format)


def plain_penalty(weights, terms):
    """The sum over the (importance, center) of every task."""
    return sum(
        (f.double() * (w.double() - p.double()).square()).sum()
        for importance, center in terms
        for f, w, p in zip(importance, weights, center, strict=True)
    )


def assert_gradients(weights, plain, before):
    found = [w.grad - b for w, b in zip(weights, before, strict=True)]
    wanted = torch.autograd.grad(plain, weights)
    for one, two in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)


def centered_penalty(weights, seed=2):
    """A penalty with random importance, centered at the weights."""
    penalty = QuadraticPenalty(weights, 0.7)
    penalty.importance.copy_from(noise(weights, seed, low=0))
    penalty.recenter()
    return penalty


def test_the_vector_and_its_views_share_memory_with_the_strides_of_the_weights(net):
    weights = list(net.parameters())
    flat_params = FlatParams(weights)
    assert [part.stride() for part in flat_params.views] == [weight.stride() for weight in weights]
    flat_params.copy_from(weights)
    for part, weight in zip(flat_params.views, weights, strict=True):
        assert torch.equal(part, weight)
    flat_params.flat.zero_()
    assert not any(part.any() for part in flat_params.views)


def test_a_penalty_has_no_gradient_at_its_center(net):
    weights = list(net.parameters())
    penalty = centered_penalty(weights)
    set_gradients(weights, 3)
    before = [weight.grad.clone() for weight in weights]
    assert penalty.add_gradients() == 0
    assert all(torch.equal(w.grad, b) for w, b in zip(weights, before, strict=True))


def test_the_added_gradients_are_those_of_the_penalty(net):
    weights = list(net.parameters())
    penalty = centered_penalty(weights)
    center = [weight.detach().clone() for weight in weights]
    move(weights, 1)
    set_gradients(weights, 3)
    before = [weight.grad.clone() for weight in weights]
    value = penalty.add_gradients()
    plain = 0.7 * plain_penalty(weights, [(noise(weights, 2, low=0), center)])
    torch.testing.assert_close(value, plain.detach().float())
    assert_gradients(weights, plain, before)


def test_the_quadratics_of_many_tasks_are_one(net):
    weights = list(net.parameters())
    penalty = QuadraticPenalty(weights, 0.7)
    terms = []
    for task in range(4):
        move(weights, 10 + task)
        importance = [one.relu() for one in noise(weights, 20 + task)]  # half of them 0
        penalty.add_quadratic(FlatParams(weights).copy_from(importance))
        terms.append((importance, [weight.detach().clone() for weight in weights]))
    move(weights, 30)
    set_gradients(weights, 3)
    before = [weight.grad.clone() for weight in weights]
    value = penalty.add_gradients()
    plain = 0.7 * plain_penalty(weights, terms)
    torch.testing.assert_close(value, plain.detach().float())
    assert_gradients(weights, plain, before)


def test_weights_without_importance_get_no_gradient(net):
    weights = list(net.parameters())
    penalty = QuadraticPenalty(weights, 1e6)
    for _ in range(2):
        penalty.add_quadratic(torch.zeros_like(penalty.center.flat))
    move(weights, 1)
    set_gradients(weights, 3)
    before = [weight.grad.clone() for weight in weights]
    assert penalty.add_gradients() == 0
    assert all(torch.equal(w.grad, b) for w, b in zip(weights, before, strict=True))


def test_a_restored_state_gives_the_same_gradients(net):
    weights = list(net.parameters())
    penalty = QuadraticPenalty(weights, 0.7)
    restored = QuadraticPenalty(weights, 0.7)
    for task in range(2):
        move(weights, task)
        penalty.add_quadratic(FlatParams(weights).copy_from(noise(weights, 20 + task, low=0)))
    restored.load_state({name: value.clone() for name, value in penalty.state().items()})
    set_gradients(weights, 3)
    value = penalty.add_gradients()
    gradients = [weight.grad for weight in weights]
    set_gradients(weights, 3)
    assert torch.equal(value, restored.add_gradients())
    assert all(torch.equal(w.grad, s) for w, s in zip(weights, gradients, strict=True))


def test_a_step_is_that_of_the_loss_with_the_penalty_in_it():
    ends = []
    for plain in (False, True):
        weight = torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0]))
        penalty = QuadraticPenalty([weight], 0.5)
        penalty.importance.flat.copy_(torch.tensor([1.0, 2.0, 0.0]))
        optimizer = torch.optim.SGD([weight], lr=0.1)
        loss = (weight**2).sum()
        if plain:
            loss = loss + 0.5 * (weight[0] ** 2 + 2 * weight[1] ** 2)
        loss = penalized_step(optimizer, loss, [] if plain else [penalty])
        ends.append((loss.detach(), weight.detach()))
    torch.testing.assert_close(*ends)
