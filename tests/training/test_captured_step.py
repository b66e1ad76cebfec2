"""A step on a CPU is the plain step; Adam is torch's Adam with its state allocated."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from everlearn.nets import build_net
from everlearn.nets.precision import ToBFloat16, deterministic, eval_mode, forward_pass, to_device
from everlearn.training.adam import Adam
from everlearn.training.captured_step import CapturedStep
from everlearn.training.optimizer_step import (
    load_optimizer_state,
    optimizer_state,
    optimizer_step,
    reset_optimizer,
    set_learning_rate,
)
from everlearn.training.optimizers import sgd


def batches(count, size=8, seed=0):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        yield (
            torch.rand(size, 1, 16, 16, generator=generator),
            torch.rand(size, 6, generator=generator),
        )


class Learning:
    """A small net that learns to regress six numbers."""

    def __init__(self, seed=0):
        self.net = to_device(build_net("convnet", 1, 6, 16, seed), "cpu")
        self.optimizer = Adam(self.net.parameters(), 1e-3)
        self.state = [*self.net.state_dict().values(), *optimizer_state(self.optimizer)]

    def train_step(self, images, targets):
        loss = (forward_pass(self.net, images) - targets).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


def copies(tensors):
    return [one.clone() for one in tensors]


def assert_same(found, expected):
    assert all(torch.equal(one, two) for one, two in zip(found, expected, strict=True))


def test_a_step_on_a_cpu_is_the_plain_step():
    stepped, plain = Learning(), Learning()
    step = CapturedStep(stepped.train_step, stepped.state)
    for images, targets in batches(3):
        loss = step(images, targets)
        assert torch.equal(loss, plain.train_step(images, targets).detach())
        assert not loss.requires_grad
    assert_same(stepped.state, plain.state)


def test_a_step_changes_its_whole_state_in_place():
    one = Learning()
    addresses = [value.data_ptr() for value in one.state]
    before = copies(one.state)
    for batch in batches(2):
        one.train_step(*batch)
    assert all(not torch.equal(old, new) for old, new in zip(before, one.state, strict=True))
    now = [*one.net.state_dict().values(), *optimizer_state(one.optimizer)]
    assert [value.data_ptr() for value in now] == addresses


def test_adam_is_torchs_adam():
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(shape, generator=generator) for shape in [(5, 3), (7,), ()]]
    ours, theirs = ([nn.Parameter(one.clone()) for one in start] for _ in range(2))
    fused = Adam(iter(ours), 1e-2)
    plain = torch.optim.Adam(theirs, lr=1e-2)
    for step in range(10):
        set_learning_rate(fused, 1e-2 / (step + 1))
        plain.param_groups[0]["lr"] = 1e-2 / (step + 1)
        for one, two in zip(ours, theirs, strict=True):
            one.grad = torch.randn(one.shape, generator=generator)
            two.grad = one.grad.clone()
        fused.step()
        plain.step()
    for one, two, first in zip(ours, theirs, start, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-7)
        assert not torch.equal(one, first)


def test_a_reset_adam_is_a_new_adam():
    old, new = Learning(), Learning()
    for batch in batches(3):
        old.train_step(*batch)
    new.net.load_state_dict(old.net.state_dict())
    reset_optimizer(old.optimizer)
    assert not any(one.any() for one in optimizer_state(old.optimizer))
    for batch in batches(2, seed=1):
        old.train_step(*batch)
        new.train_step(*batch)
    assert_same(old.state, new.state)


def test_sgd_without_momentum_has_no_state_to_reset():
    weight = torch.ones(3, requires_grad=True)
    optimizer = sgd([weight], 0.5, momentum=0.0)
    reset_optimizer(optimizer)
    load_optimizer_state(optimizer, optimizer_state(optimizer))
    optimizer_step(optimizer, weight.sum())
    assert weight.tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize("restore", [True, False])
def test_a_restored_optimizer_continues_as_the_saved_one(restore):
    old, new = Learning(), Learning(seed=1)
    for batch in batches(3):
        old.train_step(*batch)
        new.train_step(*batch)
    new.net.load_state_dict(old.net.state_dict())
    load_optimizer_state(new.optimizer, copies(optimizer_state(old.optimizer)) if restore else [])
    if not restore:
        reset_optimizer(old.optimizer)
    for batch in batches(2, seed=1):
        old.train_step(*batch)
        new.train_step(*batch)
    assert_same(old.state, new.state)


def test_eval_mode_has_no_gradients_changes_nothing_and_restores_the_mode():
    net = build_net("convnet", 1, 6, 16, seed=0)
    images, _ = next(batches(1))
    before = copies(net.state_dict().values())
    for training in (True, False):
        net.train(training)
        with eval_mode(net):
            assert not net(images).requires_grad
            assert not any(layer.training for layer in net.modules())
        assert all(layer.training is training for layer in net.modules())
    assert torch.is_grad_enabled()
    assert_same(net.state_dict().values(), before)


def test_eval_mode_restores_the_mode_after_an_error():
    net = build_net("convnet", 1, 6, 16, seed=0)
    with pytest.raises(RuntimeError), eval_mode(net):
        net(torch.zeros(1, 2, 16, 16))
    assert net.training


def test_rounding_to_bfloat16_gives_gradients_in_float32():
    weights = [torch.randn(4, 3, requires_grad=True), torch.randn(5, requires_grad=True)]
    rounded = ToBFloat16.apply(*weights)
    assert_same(rounded, [weight.detach().bfloat16() for weight in weights])
    gradients = [torch.randn(one.shape).bfloat16() for one in rounded]
    torch.autograd.backward(rounded, gradients)
    assert_same([weight.grad for weight in weights], [gradient.float() for gradient in gradients])


def test_the_flags_of_cudnn_are_restored():
    before = torch.backends.cudnn.deterministic
    with deterministic():
        assert torch.backends.cudnn.deterministic
        assert not torch.backends.cudnn.benchmark
    assert torch.backends.cudnn.deterministic == before


@pytest.mark.parametrize("build", [lambda w: Adam(w, 0.1, 0.3), lambda w: sgd(w, 0.1, 0.0, 0.3)])
def test_weight_decay_shrinks_weights_without_gradients(build):
    start = torch.linspace(-1, 1, 5)
    weight = nn.Parameter(start.clone())
    optimizer = build([weight])
    weight.grad = torch.zeros(5)
    for _ in range(4):
        optimizer.step()
    torch.testing.assert_close(weight.detach(), start * (1 - 0.1 * 0.3) ** 4)
