"""Brain-inspired replay: its loss by hand, what it replays, and that it remembers by it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.distributions import Independent, Normal
from torch.nn.functional import cross_entropy, softmax

from everlearn.checks import CHECKS
from everlearn.learner import Pace
from everlearn.methods import bir, build
from everlearn.nets import fast
from everlearn.stream import Gaussians

from .conftest import STREAM, TOY, learn, same, toy_accuracy

pytestmark = pytest.mark.slow

POINTS = Gaussians(tasks=3, classes_per_task=3, dimensions=8, train=40, val=4, test=10)
PACE = Pace(batch_size=16, epochs=2, rate=1e-3)


def make(stream: Any, device: str = "cpu", **changes: Any) -> bir.BIR:
    settings = bir.Settings(**{"pace": PACE, "units": 24, "z": 5} | changes)
    return bir.BIR(stream, settings, device)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("check", CHECKS)
def test_it_passes_the_exam(check: str) -> None:
    CHECKS[check](make, POINTS)


@pytest.mark.parametrize("summed", [False, True])
def test_the_loss_of_new_images_is_classification_reconstruction_and_divergence(
    summed: bool,
) -> None:
    learner = learn(make(STREAM, summed=summed), [STREAM[0]])
    batch, noise = STREAM[0].train.batch(slice(0, 7)), normal(7, 5)
    net, seen = learner.net, learner.net.see(batch.images)
    z = seen.mean + noise * (seen.log_variance / 2).exp()
    truth = torch.eye(6)[batch.labels]
    total = cross_entropy(seen.logits[:, :2], batch.labels)  # only classes 0 and 1 were met
    error = (net.decode(z, truth) - batch.images).flatten(1).square().sum(1) / 2
    own = Independent(Normal(seen.mean, (seen.log_variance / 2).exp()), 1)
    modes = Normal(net.modes[batch.labels], (net.log_variances[batch.labels] / 2).exp())
    excess = own.log_prob(z) - Independent(modes, 1).log_prob(z)
    total = total + (error + excess).mean() / (1 if summed else 8)
    torch.testing.assert_close(learner._loss(batch.images, truth, noise, 1.0), total)


def test_new_images_count_one_part_in_so_many_tasks_and_replay_the_rest() -> None:
    learner = learn(make(STREAM), STREAM)
    batch, units = STREAM[2].train.batch(slice(0, 6)), torch.tensor([0, 1, 2, 3, 0, 1])
    truth, noise, source, code = torch.eye(6)[batch.labels], *normal(3, 6, 5)
    drawn, soft = learner._recall(units, source)
    new = learner._loss(batch.images, truth, noise, 1.0)
    old = learner._loss(drawn, soft, code, 2.0)
    assert learner.learned == 3
    found = learner._learn_batch(
        batch.images, batch.labels, torch.tensor(1 / 4), noise, units, source, code
    )
    torch.testing.assert_close(found, new / 4 + 3 * old / 4)


def test_what_is_replayed_is_drawn_and_judged_by_the_net_of_before() -> None:
    learner = learn(make(STREAM), [STREAM[0]])
    before = [one.clone() for one in learner.net.state_dict().values()]
    for step, _ in enumerate(learner.learn(STREAM[1])):
        assert same(learner.teacher.state_dict().values(), before), step
        assert learner.past.tolist() == [True, True, False, False, False, False]
    assert not same(learner.net.state_dict().values(), before)
    assert same(learner.net.state_dict().values(), learner.teacher.state_dict().values())
    assert learner.past.tolist() == [True] * 4 + [False] * 2


def test_soft_targets_are_the_teachers_of_past_classes_at_the_temperature() -> None:
    learner, units = learn(make(STREAM), [STREAM[0], STREAM[1]]), torch.tensor([0, 3, 2])
    next(learner.learn(STREAM[2]))  # from here on the net is not its teacher
    drawn, soft = learner._recall(units, normal(3, 5))
    assert torch.equal(drawn, learner.teacher.draw(units, normal(3, 5)))
    expected = softmax(learner.teacher(drawn)[:, :4] / 2, 1)
    torch.testing.assert_close(soft[:, :4], expected)
    assert not soft[:, 4:].any()
    assert not drawn.requires_grad


def test_the_classifiers_loss_on_replay_is_the_cross_entropy_at_the_temperature_times_its_square() -> (
    None
):
    learner = learn(make(STREAM), STREAM)
    drawn, soft = learner._recall(torch.tensor([0, 3, 2]), normal(3, 5))
    hot, cold = (learner._loss(drawn, soft, normal(3, 5), one) for one in (2.0, 1.0))
    logits = learner.net(drawn)
    expected = 4 * cross_entropy(logits / 2, soft) - cross_entropy(logits, soft)
    torch.testing.assert_close(hot - cold, expected)


def test_only_units_of_the_past_are_drawn_and_all_equally_often() -> None:
    learner = make(STREAM)
    old = torch.tensor([0, 2, 5])
    noise, units, *more = learner._draw(30_000, old, torch.Generator().manual_seed(0))
    counts = torch.bincount(units, minlength=6)
    assert counts[[1, 3, 4]].sum() == 0
    assert (counts[old] - 10_000).abs().max() < 500  # a standard deviation of 82
    assert len(more) == 2
    assert not torch.equal(noise, more[0])
    assert len(list(learner._draw(4, old[:0], torch.Generator()))) == 1


def test_classes_not_met_are_left_alone() -> None:
    learner = make(STREAM)
    before = learner.net.head.weight[2:].clone(), learner.net.modes[2:].clone()
    learn(learner, [STREAM[0]])
    assert same((learner.net.head.weight[2:], learner.net.modes[2:]), before)


def test_it_remembers_by_what_it_draws() -> None:
    pace = Pace(batch_size=32, epochs=2, rate=2e-3)
    found = toy_accuracy(lambda stream: make(stream, pace=pace, units=100, z=20))
    assert found > 0.85
    assert toy_accuracy(lambda stream: build("fine-tuning", stream, "cpu", **TOY)) < 0.4


@pytest.mark.parametrize(("name", "value"), [("units", 0), ("z", 0), ("gated", 1.5)])
def test_settings_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        bir.Settings(**{name: value})


@pytest.mark.gpu
def test_captured_steps_are_the_eager_steps_to_the_bit() -> None:
    graph, eager = make(STREAM, "cuda"), make(STREAM, "cuda")
    eager._step = lambda *inputs: eager._learn_batch(*inputs).detach()
    with fast.steady():
        for task in STREAM:
            losses = list(graph.learn(task)), list(eager.learn(task))
            assert same(*losses)
    assert same(graph.state()["net"].values(), eager.state()["net"].values())
