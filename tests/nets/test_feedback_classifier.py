"""The net of brain-inspired replay: a prior with one Gaussian per class, and gates in its decoder."""

from __future__ import annotations

import torch
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal

from everlearn.nets.feedback_classifier import FeedbackClassifier, log_normal, one_hot
from everlearn.nets.seeded import seeded

CLASSES = 4
WIDTH = 50
Z = 3


def build(gated=0.7, width=WIDTH):
    with seeded(0):
        return FeedbackClassifier((2, 3, 1), CLASSES, width, Z, gated)


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_the_prior_is_the_mixture_weighted_by_class_probabilities():
    net, z, probabilities = build(), normal(5, Z), normal(5, CLASSES, seed=1).softmax(1)
    gaussians = Independent(Normal(net.prior_means, (0.5 * net.prior_log_variances).exp()), 1)
    constant = 0.5 * Z * torch.tensor(2 * torch.pi).log()
    for row, weights, found in zip(z, probabilities, net.log_prior(z, probabilities), strict=True):
        mixture = MixtureSameFamily(Categorical(weights), gaussians)
        torch.testing.assert_close(found, mixture.log_prob(row) + constant)


def test_the_prior_of_a_certain_class_is_its_gaussian_alone():
    net, z, targets = build(), normal(4, Z), torch.tensor([2, 0, 3, 3])
    expected = log_normal(z, net.prior_means[targets], net.prior_log_variances[targets])
    found = net.log_prior(z, one_hot(targets, CLASSES))
    torch.testing.assert_close(found, expected)
    gradient = torch.autograd.grad(found.sum(), net.prior_means)[0]
    assert gradient.isfinite().all()
    assert gradient.any(1).tolist() == [True, False, True, True]


def test_gated_units_do_not_affect_the_images_of_their_class():
    net, z, targets = build(), normal(20, Z), torch.full((20,), 1)
    before = net.decode(z, one_hot(targets, CLASSES))
    with torch.no_grad():
        for layer, gates in zip(net.decoder, net.gates, strict=True):
            layer.weight[gates[1] == 0] += 5.0
    assert torch.equal(net.decode(z, one_hot(targets, CLASSES)), before)
    other = one_hot(torch.zeros_like(targets), CLASSES)
    assert not torch.allclose(net.decode(z, other), build().decode(z, other))


def test_gates_differ_between_classes_and_are_closed_at_the_given_fraction():
    gates = build(width=2000).gates
    assert set(gates.unique().tolist()) == {0.0, 1.0}
    # 16,000 gates: a standard deviation of 0.004.
    assert abs(gates.mean().item() - 0.3) < 0.02
    assert (gates[:, 0] != gates[:, 1]).any()
    assert (build(gated=0.0).gates == 1).all()


def test_gates_are_averaged_by_class_probability():
    net, z = build(), normal(6, Z)
    half = (one_hot(torch.zeros(6), CLASSES) + one_hot(torch.ones(6), CLASSES)) / 2
    hidden = z
    for layer, gates in zip(net.decoder, net.gates, strict=True):
        hidden = (0.5 * (gates[0] + gates[1]).float() * layer(hidden)).relu()
    torch.testing.assert_close(net.decode(z, half), net.out(hidden).reshape(6, 2, 3, 1))


def test_images_of_a_class_are_generated_from_its_gaussian():
    net, targets, noise = build(), torch.tensor([0, 3]), normal(2, Z)
    z = net.prior_means[targets] + noise * (0.5 * net.prior_log_variances[targets]).exp()
    assert torch.equal(net.generate(targets, noise), net.decode(z, one_hot(targets, CLASSES)))


def test_the_state_holds_weights_but_not_gates_which_the_seed_determines():
    assert set(build().state_dict()) == {name for name, _ in build().named_parameters()}
    assert torch.equal(build().gates, build().gates)
