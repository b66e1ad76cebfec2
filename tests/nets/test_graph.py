"""On a GPU: a step as a captured graph is the eager step, bit by bit."""

from __future__ import annotations

import pytest
import torch

from everlearn.nets import build_net, fast
from everlearn.nets.classifier import Classifier

pytestmark = pytest.mark.gpu


class Learning:
    """A net on a GPU that learns to tell six numbers, as a graph or eagerly."""

    def __init__(self, name="resnet18", rate=1e-3, seed=0):
        self.net = fast.place(build_net(name, 1, 6, 32, seed), "cuda")
        self.optimizer = fast.adam(self.net.parameters(), rate)
        self.changed = [*self.net.state_dict().values(), *fast.moments(self.optimizer)]
        self.step = fast.Step(self.work, self.changed)

    def work(self, images, goals):
        loss = (fast.forward(self.net, images) - goals).square().mean()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss

    def eager(self, images, goals):
        with fast.steady():
            return self.work(images, goals).detach()

    def kept(self):
        return [one.clone() for one in self.changed]


def batches(sizes, seed=0):
    rng = torch.Generator().manual_seed(seed)
    for size in sizes:
        images = torch.rand(size, 1, 32, 32, generator=rng)
        yield images.cuda(), torch.rand(size, 6, generator=rng).cuda()


def assert_same(ones, twos):
    assert all(torch.equal(one, two) for one, two in zip(ones, twos, strict=True))


@pytest.mark.parametrize("name", ["resnet18", "resnet18-small", "convnet"])
def test_twenty_steps_as_a_graph_are_the_eager_steps_to_the_bit(name):
    graph, eager = Learning(name), Learning(name)
    for number, batch in enumerate(batches([32] * 20)):
        for one in (graph, eager):
            fast.set_rate(one.optimizer, 1e-3 / (number + 1))
        assert torch.equal(graph.step(*batch), eager.eager(*batch)), number
        assert_same(graph.changed, eager.changed)


def test_a_changed_rate_reaches_the_graph():
    still, moving = Learning(), Learning()
    for number, batch in enumerate(batches([32] * 2)):
        fast.set_rate(still.optimizer, 1e-3 * (number == 0))
        before = [weight.detach().clone() for weight in still.net.parameters()]
        still.step(*batch)
        moving.step(*batch)
    assert_same(still.net.parameters(), before)
    assert not torch.equal(still.net.head.weight, moving.net.head.weight)


def test_capturing_leaves_everything_as_it_was():
    one, eager = Learning(rate=0.0), Learning(rate=0.0)
    weights = [weight.detach().clone() for weight in one.net.parameters()]
    batch = next(batches([32]))
    one.step(*batch)
    eager.eager(*batch)
    assert_same(one.net.parameters(), weights)
    counts = [state["step"].item() for state in one.optimizer.state.values()]
    assert counts == [1.0] * len(weights)
    assert_same(one.changed, eager.changed)


def test_two_sizes_of_input_in_turn_are_two_graphs():
    graph, eager = Learning(), Learning()
    for batch in batches([32, 20] * 5):
        assert torch.equal(graph.step(*batch), eager.eager(*batch))
    assert_same(graph.changed, eager.changed)


def test_losses_given_stay_as_they_were():
    one = Learning()
    first = one.step(*next(batches([32])))
    value = first.clone()
    for batch in batches([32] * 3, seed=1):
        one.step(*batch)
    assert torch.equal(first, value)
    assert not first.requires_grad


def test_forgetting_reaches_the_graph():
    graph, eager = Learning(), Learning()
    for number, batch in enumerate(batches([32] * 6)):
        if number == 3:
            fast.forget(graph.optimizer)
            fast.forget(eager.optimizer)
            assert not any(one.any() for one in fast.moments(graph.optimizer))
        graph.step(*batch)
        eager.eager(*batch)
    assert_same(graph.changed, eager.changed)


def test_a_state_put_back_goes_on_to_the_same_bits():
    old, new = Learning(), Learning(seed=1)
    for batch in batches([32] * 3):
        old.step(*batch)
        new.step(*batch)
    weights = {key: value.clone() for key, value in old.net.state_dict().items()}
    moments = [one.clone() for one in fast.moments(old.optimizer)]
    later = list(batches([32] * 3, seed=1))
    for batch in later:
        old.step(*batch)
    new.net.load_state_dict(weights)
    fast.load_moments(new.optimizer, moments)
    for batch in later:
        new.step(*batch)
    assert_same(new.changed, old.changed)


def test_two_runs_give_the_same_bits():
    one, two = Learning(), Learning()
    for batch in batches([256] * 10):
        one.step(*batch)
    for batch in batches([256] * 10):
        two.step(*batch)
    assert_same(one.changed, two.changed)


def test_evaluation_between_steps_changes_nothing():
    plain, tested = Learning(), Learning()
    for batch in batches([32] * 4):
        plain.step(*batch)
        tested.step(*batch)
        with fast.evaluating(tested.net):
            fast.forward(tested.net, batch[0])
    assert_same(tested.changed, plain.changed)


def test_a_classifier_answers_there_as_on_a_cpu():
    images = next(batches([64]))[0]
    here, there = (
        Classifier(build_net("resnet18", 1, 10, 32, 0), range(5, 15), device)
        for device in ("cpu", "cuda")
    )
    for model in (here, there):
        assert model.predict(images.to(model.met.device)).tolist() == [-1] * 64
        model.meet([6, 9])
        assert set(model.predict(images.to(model.met.device)).tolist()) <= {6, 9}
        assert set(model.predict(images.to(model.met.device), among=[14]).tolist()) == {14}
    there.load_state(here.state())
    with fast.evaluating(here.net), fast.evaluating(there.net):
        one, two = here.logits(images.cpu()), there.logits(images).cpu()
    assert (one - two).norm() <= 1e-2 * one.norm()
