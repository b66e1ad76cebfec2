"""A step on a CPU is the plain step; Adam is torch's Adam, in memory that stays."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from everlearn.nets import build_net, fast
from everlearn.nets.fast.passes import Narrow


def batches(count, size=8, seed=0):
    rng = torch.Generator().manual_seed(seed)
    for _ in range(count):
        yield torch.rand(size, 1, 16, 16, generator=rng), torch.rand(size, 6, generator=rng)


class Learning:
    """A small net that learns to tell six numbers."""

    def __init__(self, seed=0):
        self.net = fast.place(build_net("convnet", 1, 6, 16, seed), "cpu")
        self.optimizer = fast.adam(self.net.parameters(), 1e-3)
        self.changed = [*self.net.state_dict().values(), *fast.moments(self.optimizer)]

    def work(self, images, goals):
        loss = (fast.forward(self.net, images) - goals).square().mean()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss


def copies(tensors):
    return [one.clone() for one in tensors]


def assert_same(ones, twos):
    assert all(torch.equal(one, two) for one, two in zip(ones, twos, strict=True))


def test_a_step_on_a_cpu_is_the_plain_step():
    stepped, plain = Learning(), Learning()
    step = fast.Step(stepped.work, stepped.changed)
    for images, goals in batches(3):
        loss = step(images, goals)
        assert torch.equal(loss, plain.work(images, goals).detach())
        assert not loss.requires_grad
    assert_same(stepped.changed, plain.changed)


def test_the_memory_named_as_changed_is_all_that_a_step_changes_and_stays():
    one = Learning()
    places = [value.data_ptr() for value in one.changed]
    before = copies(one.changed)
    for batch in batches(2):
        one.work(*batch)
    assert all(not torch.equal(old, new) for old, new in zip(before, one.changed, strict=True))
    now = [*one.net.state_dict().values(), *fast.moments(one.optimizer)]
    assert [value.data_ptr() for value in now] == places


def test_adam_is_torchs_adam():
    rng = torch.Generator().manual_seed(0)
    start = [torch.randn(shape, generator=rng) for shape in [(5, 3), (7,), ()]]
    ours, theirs = ([nn.Parameter(one.clone()) for one in start] for _ in range(2))
    fast_one, plain = fast.adam(iter(ours), 1e-2), torch.optim.Adam(theirs, lr=1e-2)
    for step in range(10):
        fast.set_rate(fast_one, 1e-2 / (step + 1))
        plain.param_groups[0]["lr"] = 1e-2 / (step + 1)
        for one, two in zip(ours, theirs, strict=True):
            one.grad = torch.randn(one.shape, generator=rng)
            two.grad = one.grad.clone()
        fast_one.step()
        plain.step()
    for one, two, first in zip(ours, theirs, start, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-7)
        assert not torch.equal(one, first)


def test_forgetting_is_a_fresh_adam():
    old, fresh = Learning(), Learning()
    for batch in batches(3):
        old.work(*batch)
    fresh.net.load_state_dict(old.net.state_dict())
    fast.forget(old.optimizer)
    assert not any(one.any() for one in fast.moments(old.optimizer))
    for batch in batches(2, seed=1):
        old.work(*batch)
        fresh.work(*batch)
    assert_same(old.changed, fresh.changed)


def test_gradient_descent_without_momentum_has_nothing_to_forget():
    weight = torch.ones(3, requires_grad=True)
    optimizer = fast.sgd([weight], 0.5, momentum=0.0)
    fast.forget(optimizer)
    fast.load_moments(optimizer, fast.moments(optimizer))
    fast.descend(optimizer, weight.sum())
    assert weight.tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize("keeps", [True, False])
def test_moments_put_back_go_on_where_they_were(keeps):
    old, new = Learning(), Learning(seed=1)
    for batch in batches(3):
        old.work(*batch)
        new.work(*batch)
    new.net.load_state_dict(old.net.state_dict())
    fast.load_moments(new.optimizer, copies(fast.moments(old.optimizer)) if keeps else [])
    if not keeps:
        fast.forget(old.optimizer)
    for batch in batches(2, seed=1):
        old.work(*batch)
        new.work(*batch)
    assert_same(old.changed, new.changed)


def test_evaluating_keeps_no_slopes_moves_no_moments_and_ends_as_it_began():
    net = build_net("convnet", 1, 6, 16, seed=0)
    images, _ = next(batches(1))
    before = copies(net.state_dict().values())
    for training in (True, False):
        net.train(training)
        with fast.evaluating(net):
            assert not net(images).requires_grad
            assert not any(layer.training for layer in net.modules())
        assert all(layer.training is training for layer in net.modules())
    assert torch.is_grad_enabled()
    assert_same(net.state_dict().values(), before)


def test_evaluating_ends_as_it_began_when_it_fails():
    net = build_net("convnet", 1, 6, 16, seed=0)
    with pytest.raises(RuntimeError), fast.evaluating(net):
        net(torch.zeros(1, 2, 16, 16))
    assert net.training


def test_rounding_to_bfloat16_gives_slopes_back_in_float32():
    weights = [torch.randn(4, 3, requires_grad=True), torch.randn(5, requires_grad=True)]
    narrow = Narrow.apply(*weights)
    assert_same(narrow, [weight.detach().bfloat16() for weight in weights])
    slopes = [torch.randn(one.shape).bfloat16() for one in narrow]
    torch.autograd.backward(narrow, slopes)
    assert_same([weight.grad for weight in weights], [slope.float() for slope in slopes])


def test_flags_of_cudnn_are_put_back():
    before = torch.backends.cudnn.deterministic
    with fast.steady():
        assert torch.backends.cudnn.deterministic
        assert not torch.backends.cudnn.benchmark
    assert torch.backends.cudnn.deterministic == before


@pytest.mark.parametrize(
    "build", [lambda w: fast.adam(w, 0.1, 0.3), lambda w: fast.sgd(w, 0.1, 0.0, 0.3)]
)
def test_weights_without_slopes_decay_by_their_share(build):
    start = torch.linspace(-1, 1, 5)
    weight = nn.Parameter(start.clone())
    optimizer = build([weight])
    weight.grad = torch.zeros(5)
    for _ in range(4):
        optimizer.step()
    torch.testing.assert_close(weight.detach(), start * (1 - 0.1 * 0.3) ** 4)
