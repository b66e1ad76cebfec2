"""On a GPU: a step as a captured graph is the eager step, bit by bit."""

from __future__ import annotations

import pytest
import torch

from everlearn.nets import build_net
from everlearn.nets.classifier import Classifier
from everlearn.nets.precision import deterministic, eval_mode, forward_pass, to_device
from everlearn.training.adam import Adam
from everlearn.training.captured_step import CapturedStep
from everlearn.training.optimizer_step import (
    load_optimizer_state,
    optimizer_state,
    reset_optimizer,
    set_learning_rate,
)

pytestmark = pytest.mark.gpu


class Learning:
    """A net on a GPU that learns to regress six numbers, as a graph or eagerly."""

    def __init__(self, name="resnet18", learning_rate=1e-3, seed=0):
        self.net = to_device(build_net(name, 1, 6, 32, seed), "cuda")
        self.optimizer = Adam(self.net.parameters(), learning_rate)
        self.state = [*self.net.state_dict().values(), *optimizer_state(self.optimizer)]
        self.step = CapturedStep(self.train_step, self.state)

    def train_step(self, images, targets):
        loss = (forward_pass(self.net, images) - targets).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def eager(self, images, targets):
        with deterministic():
            return self.train_step(images, targets).detach()


def batches(sizes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    for size in sizes:
        images = torch.rand(size, 1, 32, 32, generator=generator)
        yield images.cuda(), torch.rand(size, 6, generator=generator).cuda()


def assert_same(found, expected):
    assert all(torch.equal(one, two) for one, two in zip(found, expected, strict=True))


@pytest.mark.parametrize("name", ["resnet18", "resnet18-small", "convnet"])
def test_twenty_steps_as_a_graph_are_the_eager_steps_to_the_bit(name):
    graph, eager = Learning(name), Learning(name)
    for number, batch in enumerate(batches([32] * 20)):
        for one in (graph, eager):
            set_learning_rate(one.optimizer, 1e-3 / (number + 1))
        assert torch.equal(graph.step(*batch), eager.eager(*batch)), number
        assert_same(graph.state, eager.state)


def test_a_changed_learning_rate_reaches_the_graph():
    stopped, training = Learning(), Learning()
    for number, batch in enumerate(batches([32] * 2)):
        set_learning_rate(stopped.optimizer, 1e-3 * (number == 0))
        before = [weight.detach().clone() for weight in stopped.net.parameters()]
        stopped.step(*batch)
        training.step(*batch)
    assert_same(stopped.net.parameters(), before)
    assert not torch.equal(stopped.net.head.weight, training.net.head.weight)


def test_capturing_restores_the_state():
    one, eager = Learning(learning_rate=0.0), Learning(learning_rate=0.0)
    weights = [weight.detach().clone() for weight in one.net.parameters()]
    batch = next(batches([32]))
    one.step(*batch)
    eager.eager(*batch)
    assert_same(one.net.parameters(), weights)
    counts = [state["step"].item() for state in one.optimizer.state.values()]
    assert counts == [1.0] * len(weights)
    assert_same(one.state, eager.state)


def test_alternating_input_sizes_use_two_graphs():
    graph, eager = Learning(), Learning()
    for batch in batches([32, 20] * 5):
        assert torch.equal(graph.step(*batch), eager.eager(*batch))
    assert_same(graph.state, eager.state)


def test_returned_losses_are_not_overwritten():
    one = Learning()
    first = one.step(*next(batches([32])))
    value = first.clone()
    for batch in batches([32] * 3, seed=1):
        one.step(*batch)
    assert torch.equal(first, value)
    assert not first.requires_grad


def test_resetting_the_optimizer_reaches_the_graph():
    graph, eager = Learning(), Learning()
    for number, batch in enumerate(batches([32] * 6)):
        if number == 3:
            reset_optimizer(graph.optimizer)
            reset_optimizer(eager.optimizer)
            assert not any(one.any() for one in optimizer_state(graph.optimizer))
        graph.step(*batch)
        eager.eager(*batch)
    assert_same(graph.state, eager.state)


def test_a_restored_state_continues_to_the_same_bits():
    old, new = Learning(), Learning(seed=1)
    for batch in batches([32] * 3):
        old.step(*batch)
        new.step(*batch)
    weights = {key: value.clone() for key, value in old.net.state_dict().items()}
    optimizer = [one.clone() for one in optimizer_state(old.optimizer)]
    later = list(batches([32] * 3, seed=1))
    for batch in later:
        old.step(*batch)
    new.net.load_state_dict(weights)
    load_optimizer_state(new.optimizer, optimizer)
    for batch in later:
        new.step(*batch)
    assert_same(new.state, old.state)


def test_two_runs_give_the_same_bits():
    one, two = Learning(), Learning()
    for batch in batches([256] * 10):
        one.step(*batch)
    for batch in batches([256] * 10):
        two.step(*batch)
    assert_same(one.state, two.state)


def test_evaluation_between_steps_changes_nothing():
    plain, tested = Learning(), Learning()
    for batch in batches([32] * 4):
        plain.step(*batch)
        tested.step(*batch)
        with eval_mode(tested.net):
            forward_pass(tested.net, batch[0])
    assert_same(tested.state, plain.state)


def test_a_classifier_predicts_as_on_a_cpu():
    images = next(batches([64]))[0]
    on_cpu, on_gpu = (
        Classifier(build_net("resnet18", 1, 10, 32, 0), range(5, 15), device)
        for device in ("cpu", "cuda")
    )
    for model in (on_cpu, on_gpu):
        assert model.predict(images.to(model.seen.device)).tolist() == [-1] * 64
        model.add_classes([6, 9])
        assert set(model.predict(images.to(model.seen.device)).tolist()) <= {6, 9}
        assert set(model.predict(images.to(model.seen.device), among=[14]).tolist()) == {14}
    on_gpu.load_state(on_cpu.state())
    with eval_mode(on_cpu.net), eval_mode(on_gpu.net):
        expected = on_cpu.logits(images.cpu())
        found = on_gpu.logits(images).cpu()
    assert (expected - found).norm() <= 1e-2 * expected.norm()
