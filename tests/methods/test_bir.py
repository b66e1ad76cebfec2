"""Brain-inspired replay: its loss by hand, what it replays, and that replay prevents forgetting."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.distributions import Independent, Normal
from torch.nn.functional import cross_entropy, softmax

from everlearn.evaluation.conformance import CONFORMANCE
from everlearn.methods import bir, build
from everlearn.nets.precision import deterministic
from everlearn.stream import Gaussians
from everlearn.training.schedule import Schedule

from .conftest import STREAM, TOY, learn, same, toy_accuracy

pytestmark = pytest.mark.integration

POINTS = Gaussians(tasks=3, classes_per_task=3, dimensions=8, train=40, val=4, test=10)
SCHEDULE = Schedule(batch_size=16, epochs=2, learning_rate=1e-3)


def make(stream: Any, device: str = "cpu", **changes: Any) -> bir.BIR:
    settings = bir.Settings(**{"schedule": SCHEDULE, "hidden_units": 24, "latent_dim": 5} | changes)
    return bir.BIR(stream, settings, device)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("check", CONFORMANCE)
def test_it_is_conformant(check: str) -> None:
    CONFORMANCE[check](make, POINTS)


@pytest.mark.parametrize("sum_reconstruction", [False, True])
def test_the_loss_of_new_images_is_classification_reconstruction_and_divergence(
    sum_reconstruction: bool,
) -> None:
    learner = learn(make(STREAM, sum_reconstruction=sum_reconstruction), [STREAM[0]])
    batch = STREAM[0].train.batch(slice(0, 7))
    noise = normal(7, 5)
    net = learner.net
    code = net.encode(batch.images)
    z = code.mean + noise * (code.log_variance / 2).exp()
    truth = torch.eye(6)[batch.labels]
    total = cross_entropy(code.logits[:, :2], batch.labels)  # only classes 0 and 1 were seen
    error = (net.decode(z, truth) - batch.images).flatten(1).square().sum(1) / 2
    posterior = Independent(Normal(code.mean, (code.log_variance / 2).exp()), 1)
    deviations = (net.prior_log_variances[batch.labels] / 2).exp()
    prior = Independent(Normal(net.prior_means[batch.labels], deviations), 1)
    kl = posterior.log_prob(z) - prior.log_prob(z)
    total = total + (error + kl).mean() / (1 if sum_reconstruction else 8)
    torch.testing.assert_close(learner._loss(batch.images, truth, noise, 1.0), total.float())


def test_every_task_weighs_the_same_in_the_loss() -> None:
    learner = learn(make(STREAM), STREAM)
    batch = STREAM[2].train.batch(slice(0, 6))
    targets = torch.tensor([0, 1, 2, 3, 0, 1])
    noise, image_noise, code_noise = normal(3, 6, 5)
    generated, soft = learner._generate(targets, image_noise)
    new = learner._loss(batch.images, torch.eye(6)[batch.labels], noise, 1.0)
    old = learner._loss(generated, soft, code_noise, 2.0)
    assert learner.learned == 3
    found = learner._learn_batch(
        batch.images, batch.labels, torch.tensor(1 / 4), noise, targets, image_noise, code_noise
    )
    torch.testing.assert_close(found, new / 4 + 3 * old / 4)


def test_the_teacher_is_the_net_before_the_task() -> None:
    learner = learn(make(STREAM), [STREAM[0]])
    before = [weight.clone() for weight in learner.net.state_dict().values()]
    for step, _ in enumerate(learner.learn(STREAM[1])):
        assert same(learner.teacher.state_dict().values(), before), step
        assert learner.past.tolist() == [True, True, False, False, False, False]
    assert not same(learner.net.state_dict().values(), before)
    assert same(learner.net.state_dict().values(), learner.teacher.state_dict().values())
    assert learner.past.tolist() == [True] * 4 + [False] * 2


def test_soft_targets_are_the_teachers_probabilities_of_past_classes() -> None:
    learner = learn(make(STREAM), [STREAM[0], STREAM[1]])
    targets = torch.tensor([0, 3, 2])
    next(learner.learn(STREAM[2]))  # from here on the net is not its teacher
    images, soft = learner._generate(targets, normal(3, 5))
    assert torch.equal(images, learner.teacher.generate(targets, normal(3, 5)))
    expected = softmax(learner.teacher(images)[:, :4] / 2, 1)
    torch.testing.assert_close(soft[:, :4], expected)
    assert not soft[:, 4:].any()
    assert not images.requires_grad


def test_the_distillation_loss_is_scaled_by_the_squared_temperature() -> None:
    learner = learn(make(STREAM), STREAM)
    images, soft = learner._generate(torch.tensor([0, 3, 2]), normal(3, 5))
    hot, cold = (learner._loss(images, soft, normal(3, 5), t) for t in (2.0, 1.0))
    logits = learner.net(images)
    expected = 4 * cross_entropy(logits / 2, soft) - cross_entropy(logits, soft)
    torch.testing.assert_close(hot - cold, expected.float())


def test_replayed_classes_are_uniform_over_the_past() -> None:
    learner = make(STREAM)
    old = torch.tensor([0, 2, 5])
    noise, targets, *more = learner._draw(30_000, old, torch.Generator().manual_seed(0))
    counts = torch.bincount(targets, minlength=6)
    assert counts[[1, 3, 4]].sum() == 0
    assert (counts[old] - 10_000).abs().max() < 500  # a standard deviation of 82
    assert len(more) == 2
    assert not torch.equal(noise, more[0])
    assert len(list(learner._draw(4, old[:0], torch.Generator()))) == 1


def test_unseen_classes_stay_as_they_were() -> None:
    learner = make(STREAM)
    before = learner.net.head.weight[2:].clone(), learner.net.prior_means[2:].clone()
    learn(learner, [STREAM[0]])
    assert same((learner.net.head.weight[2:], learner.net.prior_means[2:]), before)


def test_replay_keeps_more_than_fine_tuning() -> None:
    schedule = Schedule(batch_size=32, epochs=2, learning_rate=2e-3)
    changes = {"schedule": schedule, "hidden_units": 100, "latent_dim": 20}
    assert toy_accuracy(lambda stream: make(stream, **changes)) > 0.85
    assert toy_accuracy(lambda stream: build("fine-tuning", stream, "cpu", **TOY)) < 0.4


@pytest.mark.parametrize(
    ("name", "value"), [("hidden_units", 0), ("latent_dim", 0), ("gated_fraction", 1.5)]
)
def test_settings_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        bir.Settings(**{name: value})


@pytest.mark.gpu
def test_captured_steps_are_the_eager_steps_to_the_bit() -> None:
    graph, eager = make(STREAM, "cuda"), make(STREAM, "cuda")
    eager._step = lambda *inputs: eager._learn_batch(*inputs).detach()
    with deterministic():
        for task in STREAM:
            losses = list(graph.learn(task)), list(eager.learn(task))
            assert same(*losses)
    assert same(graph.state()["net"].values(), eager.state()["net"].values())
