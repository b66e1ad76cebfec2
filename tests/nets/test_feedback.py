"""The net of brain-inspired replay: a prior with a mode a class, and gates in its decoder."""

from __future__ import annotations

import torch
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal

from everlearn.nets.feedback import Feedback, log_normal, one_hot
from everlearn.nets.seeded import seeded

CLASSES, WIDTH, Z = 4, 50, 3


def build(gated=0.7, width=WIDTH):
    with seeded(0):
        return Feedback((2, 3, 1), CLASSES, width, Z, gated)


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_the_prior_is_the_mixture_of_the_classes_by_their_chances():
    net, z, chances = build(), normal(5, Z), normal(5, CLASSES, seed=1).softmax(1)
    modes = Independent(Normal(net.modes, (0.5 * net.log_variances).exp()), 1)
    constant = 0.5 * Z * torch.tensor(2 * torch.pi).log()
    for row, share, found in zip(z, chances, net.log_prior(z, chances), strict=True):
        mixture = MixtureSameFamily(Categorical(share), modes)
        torch.testing.assert_close(found, mixture.log_prob(row) + constant)


def test_the_prior_of_a_class_for_sure_is_its_mode_alone():
    net, z, units = build(), normal(4, Z), torch.tensor([2, 0, 3, 3])
    expected = log_normal(z, net.modes[units], net.log_variances[units])
    found = net.log_prior(z, one_hot(units, CLASSES))
    torch.testing.assert_close(found, expected)
    slope = torch.autograd.grad(found.sum(), net.modes)[0]
    assert slope.isfinite().all()
    assert slope.any(1).tolist() == [True, False, True, True]


def test_units_that_are_shut_for_a_class_have_no_part_in_what_is_drawn_of_it():
    net, z, units = build(), normal(20, Z), torch.full((20,), 1)
    before = net.decode(z, one_hot(units, CLASSES))
    with torch.no_grad():
        for layer, gates in zip(net.down, net.gates, strict=True):
            layer.weight[gates[1] == 0] += 5.0
    assert torch.equal(net.decode(z, one_hot(units, CLASSES)), before)
    other = one_hot(torch.zeros_like(units), CLASSES)
    assert not torch.allclose(net.decode(z, other), build().decode(z, other))


def test_gates_differ_between_classes_and_are_shut_as_often_as_told():
    gates = build(width=2000).gates
    assert set(gates.unique().tolist()) == {0.0, 1.0}
    # 16,000 gates: a standard deviation of 0.004.
    assert abs(gates.mean().item() - 0.3) < 0.02
    assert (gates[:, 0] != gates[:, 1]).any()
    assert (build(gated=0.0).gates == 1).all()


def test_gates_are_as_open_as_the_classes_are_likely():
    net, z = build(), normal(6, Z)
    half = (one_hot(torch.zeros(6), CLASSES) + one_hot(torch.ones(6), CLASSES)) / 2
    hidden = z
    for layer, gates in zip(net.down, net.gates, strict=True):
        hidden = (0.5 * (gates[0] + gates[1]) * layer(hidden)).relu()
    torch.testing.assert_close(net.decode(z, half), net.out(hidden).reshape(6, 2, 3, 1))


def test_what_is_drawn_of_a_class_comes_from_its_mode():
    net, units, noise = build(), torch.tensor([0, 3]), normal(2, Z)
    z = net.modes[units] + noise * (0.5 * net.log_variances[units]).exp()
    assert torch.equal(net.draw(units, noise), net.decode(z, one_hot(units, CLASSES)))


def test_weights_are_kept_and_gates_are_not_for_they_follow_from_the_seed():
    assert set(build().state_dict()) == {name for name, _ in build().named_parameters()}
    assert torch.equal(build().gates, build().gates)
