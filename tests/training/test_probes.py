"""Probes side by side learn what each would learn alone."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from everlearn.core.random import Purpose, permutation
from everlearn.nets.seeded import seeded_generator
from everlearn.training import probes as probe
from everlearn.training.probes import (
    BATCH_SIZE,
    EPOCHS,
    HIDDEN,
    LEARNING_RATE,
    Ensemble,
    Probes,
    draw_weights,
)

N = 5
ITEMS = 230
SEED = 7
CLASSES = {4: 3, 9: 6}


def make_data(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Codes; the class is the index of the largest of the first elements, the position the last two."""
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randn((len(CLASSES), ITEMS, N), generator=generator)
    widths = [min(N, width) for width in CLASSES.values()]
    labels = [one[:, :width].argmax(1) for one, width in zip(codes, widths, strict=True)]
    return codes, torch.stack(labels), codes[..., -2:].sigmoid()


def initial_net(key: int, substream: int, outputs: int) -> nn.Sequential:
    """A net of torch's layers with the initial weights of a probe."""
    weights = draw_weights(
        N, outputs, seeded_generator(SEED, Purpose.PROBES, key, "cpu", substream)
    )
    net = nn.Sequential(nn.Linear(N, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, outputs))
    with torch.no_grad():
        for weight, initial in zip(net.parameters(), weights, strict=True):
            weight.copy_(initial.t())  # a bias stays as it is
    return net


def train(net: nn.Sequential, loss: object, codes: Tensor, targets: Tensor) -> nn.Sequential:
    """The slow oracle: one net, one optimiser, epoch by epoch."""
    optimizer = torch.optim.Adam(net.parameters(), lr=LEARNING_RATE, fused=False, foreach=False)
    for epoch in range(EPOCHS):
        order = torch.from_numpy(permutation(SEED, Purpose.PROBES, 0, ITEMS, substream=epoch))
        for start in range(0, ITEMS - BATCH_SIZE + 1, BATCH_SIZE):
            rows = order[start : start + BATCH_SIZE]
            optimizer.zero_grad()
            loss(net(codes[rows]), targets[rows]).backward()
            optimizer.step()
    return net


def test_probes_side_by_side_are_separate_nets_with_separate_optimisers() -> None:
    codes, labels, positions = make_data()
    probes = Probes(CLASSES, N, ITEMS, SEED, "cpu")
    probes.learn(codes, labels, positions)
    queries = torch.randn((50, N), generator=torch.Generator().manual_seed(1))
    for number, (key, width) in enumerate(CLASSES.items()):
        classifier = train(initial_net(key, 0, width), cross_entropy, codes[number], labels[number])
        regressor = train(initial_net(key, 1, 2), mse_loss, codes[number], positions[number])
        found, found_positions = probes.predict(number, queries)
        assert torch.equal(found, classifier(queries).argmax(1))
        torch.testing.assert_close(found_positions, regressor(queries), rtol=1e-4, atol=1e-5)


def test_every_training_starts_anew_and_gives_the_same_bits() -> None:
    probes, queries = Probes(CLASSES, N, ITEMS, SEED, "cpu"), torch.ones((4, N))
    probes.learn(*make_data())
    first = probes.predict(0, queries)
    probes.learn(*make_data(1))
    assert not torch.equal(probes.predict(0, queries)[1], first[1])
    probes.learn(*make_data())
    assert torch.equal(probes.predict(0, queries)[1], first[1])
    other = Probes(CLASSES, N, ITEMS, SEED, "cpu")
    other.learn(*make_data())
    assert torch.equal(other.predict(0, queries)[1], first[1])


def test_the_probe_of_a_data_set_does_not_depend_on_the_others() -> None:
    codes, labels, positions = make_data()
    both = Probes(CLASSES, N, ITEMS, SEED, "cpu")
    one = Probes({9: 6}, N, ITEMS, SEED, "cpu")
    both.learn(codes, labels, positions)
    one.learn(codes[1:], labels[1:], positions[1:])
    torch.testing.assert_close(both.predict(1, codes[1])[1], one.predict(0, codes[1])[1])


def test_probes_learn_what_codes_contain_without_advancing_the_generator() -> None:
    generator = torch.Generator().manual_seed(3)
    codes = torch.randn((1, 4000, N), generator=generator)
    before = torch.random.get_rng_state()
    probes = Probes({0: 3}, N, 3000, SEED, "cpu")
    labels, positions = codes[..., :3].argmax(2), codes[..., -2:].sigmoid()
    probes.learn(codes[:, :3000], labels[:, :3000], positions[:, :3000])
    found, found_positions = probes.predict(0, codes[0, 3000:])
    assert (found == labels[0, 3000:]).float().mean() > 0.95
    assert (found_positions - positions[0, 3000:]).square().mean() < 0.003
    assert torch.equal(torch.random.get_rng_state(), before)


def test_initial_weights_are_drawn_as_those_of_torch_s_linear_layers() -> None:
    weights = draw_weights(N, 400, torch.Generator().manual_seed(0))
    for weight, inputs in zip(weights, (N, N, HIDDEN, HIDDEN), strict=True):
        bound = 1 / math.sqrt(inputs)
        assert weight.abs().max() <= bound
        assert weight.std() == pytest.approx(bound / math.sqrt(3), rel=0.1)


def test_a_net_with_fewer_outputs_never_predicts_the_padding() -> None:
    generator = torch.Generator().manual_seed(0)
    nets = Ensemble([draw_weights(N, width, generator) for width in (2, 4)])
    outputs = nets(torch.randn((2, 10, N), generator=generator))
    assert outputs.shape == (2, 10, 4)
    assert outputs[0, :, 2:].eq(-math.inf).all()
    assert outputs[0, :, :2].isfinite().all()
    assert outputs[1].isfinite().all()


def test_an_epoch_has_full_batches_without_repeated_items() -> None:
    rows = probe._shuffle(ITEMS, SEED)
    steps = ITEMS // BATCH_SIZE
    assert rows.shape == (EPOCHS * steps, BATCH_SIZE)
    for epoch in rows.split(steps):
        assert len(epoch.unique()) == steps * BATCH_SIZE
    assert probe._shuffle(7, SEED).shape == (EPOCHS, 7)


@pytest.mark.gpu
def test_on_a_gpu_probes_learn_the_same_and_give_the_same_bits_twice() -> None:
    queries = torch.randn((50, N), generator=torch.Generator().manual_seed(1))
    outputs = []
    for device in ("cpu", "cuda", "cuda"):
        probes = Probes(CLASSES, N, ITEMS, SEED, device)
        probes.learn(*(part.to(device) for part in make_data()))
        outputs.append(probes.predict(1, queries.to(device))[1].cpu())
    assert torch.equal(outputs[1], outputs[2])
    torch.testing.assert_close(outputs[0], outputs[1], rtol=1e-3, atol=1e-4)
