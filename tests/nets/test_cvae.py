"""The conditional VAE of latents: its loss by hand, conditioning on classes, outputs above zero."""

from __future__ import annotations

import copy

import pytest
import torch

from everlearn.nets.cvae import CVAE, default_hidden, generator_loss, kl_divergence, reparameterize
from everlearn.nets.seeded import seeded
from everlearn.training.adam import Adam
from everlearn.training.captured_step import CapturedStep
from everlearn.training.optimizer_step import optimizer_step, training_state

SHAPE = (3, 2, 2)


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def build(shape=SHAPE, classes=4, hidden=(16, 8), latent_dim=5, straight_through=False):
    with seeded(0):
        return CVAE(shape, classes, hidden, latent_dim, straight_through)


def test_the_divergence_is_zero_at_the_prior():
    assert torch.equal(kl_divergence(torch.zeros(3, 7), torch.zeros(3, 7)), torch.zeros(3))


def test_the_divergence_equals_its_monte_carlo_estimate():
    mean, log_variance = normal(1, 6, seed=1), 0.7 * normal(1, 6, seed=2)
    noise = normal(400_000, 6, seed=3)
    z = reparameterize(mean, log_variance, noise)
    log_q = -0.5 * (noise.square() + log_variance).sum(1)
    log_p = -0.5 * z.square().sum(1)
    assert kl_divergence(mean, log_variance).item() == pytest.approx(
        (log_q - log_p).mean().item(), rel=0.01
    )


def test_codes_have_the_mean_and_variance_they_were_given():
    mean, log_variance = torch.tensor([[1.0, -2.0]]), torch.tensor([[0.0, 2.0]]).log1p()
    z = reparameterize(mean, log_variance, normal(100_000, 2))
    torch.testing.assert_close(z.mean(0), mean[0], atol=0.02, rtol=0)
    torch.testing.assert_close(z.var(0), torch.tensor([1.0, 3.0]), atol=0.05, rtol=0)


def test_the_loss_is_summed_over_elements_and_averaged_over_latents():
    latents, found = torch.zeros(2, 2, 1, 1), torch.tensor([1.0, 2.0, 0.0, 3.0]).reshape(2, 2, 1, 1)
    mean, log_variance = torch.tensor([[2.0], [0.0]]), torch.zeros(2, 1)
    # Squared errors 1 + 4 and 0 + 9; divergences 2 and 0.
    loss = generator_loss(latents, found, mean, log_variance, beta=0.1)
    assert loss.item() == pytest.approx(((5 + 0.1 * 2) + 9) / 2)


def test_shapes_are_those_of_latents_and_codes():
    net, latents, targets = build(), normal(6, *SHAPE).relu(), torch.arange(6) % 4
    mean, log_variance = net.encode(latents)
    assert mean.shape == log_variance.shape == (6, 5)
    found, *posterior = net(latents, targets, torch.zeros(6, 5))
    assert found.shape == latents.shape
    assert torch.equal(found, net.decode(mean, targets))
    assert all(map(torch.equal, posterior, (mean, log_variance)))


def test_latents_are_never_below_zero():
    found = build().decode(3 * normal(200, 5), torch.arange(200) % 4)
    assert (found >= 0).all()
    assert (found > 0).any()


def test_the_class_changes_the_latent():
    net, z = build(), normal(1, 5).expand(4, 5)
    found = net.decode(z, torch.arange(4)).flatten(1)
    assert torch.pdist(found).min() > 1e-4


def test_the_class_adds_its_row_to_the_first_layer_of_the_decoder():
    """This equals a linear layer of the code and the one-hot class, with the row as its last columns."""
    net, z, targets = build(), normal(3, 5), torch.tensor([2, 0, 3])
    first, *later = net.decoder
    weight = torch.cat([first.weight, net.class_rows.T], 1)
    conditioned = torch.cat([z, torch.nn.functional.one_hot(targets, 4)], 1)
    out = torch.nn.functional.linear(conditioned, weight, first.bias)
    for layer in later:
        out = layer(out)
    torch.testing.assert_close(net.decode(z, targets), out.relu().reshape(3, *SHAPE))


@pytest.mark.parametrize(
    ("straight_through", "gradients"), [(True, [-6.0, 0.0]), (False, [0.0, 0.0])]
)
def test_an_output_of_zero_learns_only_with_a_straight_through_relu(straight_through, gradients):
    net = build(shape=(2, 1, 1), straight_through=straight_through)
    latents = torch.tensor([3.0, 0.0]).reshape(1, 2, 1, 1)
    last = net.decoder[-1]
    with torch.no_grad():
        last.bias.fill_(-9.0)
    found = net.decode(torch.zeros(1, 5), torch.tensor([1]))
    assert not found.any()
    (gradient,) = torch.autograd.grad((found - latents).square().sum(), last.bias)
    assert gradient.tolist() == gradients


def test_the_state_holds_weights_only():
    assert set(build().state_dict()) == {name for name, _ in build().named_parameters()}


@pytest.mark.parametrize(
    ("shape", "widths"), [((128, 4, 4), (1024, 512)), ((256, 1, 1), (256,)), ((8, 1, 1), (256,))]
)
def test_default_widths_depend_on_the_size(shape, widths):
    assert default_hidden(shape) == widths


def learn(net, optimizer, latents, targets, noise):
    """One step, as a learner would take it."""
    found, mean, log_variance = net(latents, targets, noise)
    return optimizer_step(optimizer, generator_loss(latents, found, mean, log_variance, 0.1))


def test_one_latent_per_class_is_memorised_and_generated():
    net, targets = build(hidden=(64,), straight_through=True), torch.arange(4)
    latents = 2 * normal(4, *SHAPE, seed=5).relu()
    optimizer = Adam(net.parameters(), 1e-2)
    for step in range(400):
        learn(net, optimizer, latents, targets, normal(4, 5, seed=step))
    generated = (
        net.decode(normal(400, 5, seed=999), targets.repeat(100)).unflatten(0, (100, 4)).mean(0)
    )
    # With one latent per class, the code carries nothing, and every sample of a class is that latent.
    worst = (generated - latents).flatten(1).norm(dim=1).max()
    assert worst < 0.1 * latents.flatten(1).norm(dim=1).min()


@pytest.mark.gpu
def test_a_captured_step_is_the_eager_step_to_the_bit():
    graph = build().cuda()
    eager = copy.deepcopy(graph)
    optimizers = [Adam(net.parameters(), 1e-3) for net in (graph, eager)]
    step = CapturedStep(
        lambda *batch: learn(graph, optimizers[0], *batch), training_state(graph, optimizers[0])
    )
    for seed in range(5):
        latents, targets = normal(32, *SHAPE, seed=seed).relu().cuda(), torch.arange(32).cuda() % 4
        noise = normal(32, 5, seed=seed + 100).cuda()
        loss = learn(eager, optimizers[1], latents, targets, noise)
        assert torch.equal(step(latents, targets, noise), loss.detach())
    assert all(map(torch.equal, graph.parameters(), eager.parameters()))
