"""Probes side by side learn what each would learn alone."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from everlearn.nets import probe
from everlearn.nets.probe import BATCH, EPOCHS, HIDDEN, RATE, Ensemble, Probes, draw_layers
from everlearn.nets.seeded import chance
from everlearn.philox import Purpose, permutation

N, ITEMS, SEED = 5, 230, 7
CLASSES = {4: 3, 9: 6}


def lessons(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Codes whose class is their largest number of the first few, and whose places are the last two."""
    rng = torch.Generator().manual_seed(seed)
    codes = torch.randn((len(CLASSES), ITEMS, N), generator=rng)
    widths = [min(N, width) for width in CLASSES.values()]
    labels = [one[:, :width].argmax(1) for one, width in zip(codes, widths, strict=True)]
    return codes, torch.stack(labels), codes[..., -2:].sigmoid()


def alone(key: int, lane: int, outputs: int) -> nn.Sequential:
    """A net of torch's own layers with the first weights of a probe."""
    layers = draw_layers(N, outputs, chance(SEED, Purpose.PROBES, key, "cpu", lane))
    net = nn.Sequential(nn.Linear(N, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, outputs))
    with torch.no_grad():
        for weight, first in zip(net.parameters(), layers, strict=True):
            weight.copy_(first.t())  # a bias is as it was
    return net


def study(net: nn.Sequential, loss: object, codes: Tensor, goals: Tensor) -> nn.Sequential:
    """The slow oracle: one net, one optimiser, epoch by epoch."""
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE, fused=False, foreach=False)
    for epoch in range(EPOCHS):
        order = torch.from_numpy(permutation(SEED, Purpose.PROBES, 0, ITEMS, lane=epoch))
        for start in range(0, ITEMS - BATCH + 1, BATCH):
            rows = order[start : start + BATCH]
            optimizer.zero_grad()
            loss(net(codes[rows]), goals[rows]).backward()
            optimizer.step()
    return net


def test_probes_side_by_side_are_separate_nets_with_separate_optimisers() -> None:
    codes, labels, places = lessons()
    probes = Probes(CLASSES, N, ITEMS, SEED, "cpu")
    probes.learn(codes, labels, places)
    asked = torch.randn((50, N), generator=torch.Generator().manual_seed(1))
    for number, (key, width) in enumerate(CLASSES.items()):
        named = study(alone(key, 0, width), cross_entropy, codes[number], labels[number])
        placed = study(alone(key, 1, 2), mse_loss, codes[number], places[number])
        found, where = probes.answer(number, asked)
        assert torch.equal(found, named(asked).argmax(1))
        torch.testing.assert_close(where, placed(asked), rtol=1e-4, atol=1e-5)


def test_learning_begins_anew_each_time_and_ends_with_the_same_bits() -> None:
    probes, asked = Probes(CLASSES, N, ITEMS, SEED, "cpu"), torch.ones((4, N))
    probes.learn(*lessons())
    first = probes.answer(0, asked)
    probes.learn(*lessons(1))
    assert not torch.equal(probes.answer(0, asked)[1], first[1])
    probes.learn(*lessons())
    assert torch.equal(probes.answer(0, asked)[1], first[1])
    other = Probes(CLASSES, N, ITEMS, SEED, "cpu")
    other.learn(*lessons())
    assert torch.equal(other.answer(0, asked)[1], first[1])


def test_a_data_set_has_the_same_probe_whichever_others_are_there() -> None:
    codes, labels, places = lessons()
    both, one = Probes(CLASSES, N, ITEMS, SEED, "cpu"), Probes({9: 6}, N, ITEMS, SEED, "cpu")
    both.learn(codes, labels, places)
    one.learn(codes[1:], labels[1:], places[1:])
    torch.testing.assert_close(both.answer(1, codes[1])[1], one.answer(0, codes[1])[1])


def test_what_can_be_read_is_read_and_torch_s_own_chance_is_left_alone() -> None:
    rng = torch.Generator().manual_seed(3)
    codes = torch.randn((1, 4000, N), generator=rng)
    before = torch.random.get_rng_state()
    probes = Probes({0: 3}, N, 3000, SEED, "cpu")
    labels, places = codes[..., :3].argmax(2), codes[..., -2:].sigmoid()
    probes.learn(codes[:, :3000], labels[:, :3000], places[:, :3000])
    found, where = probes.answer(0, codes[0, 3000:])
    assert (found == labels[0, 3000:]).float().mean() > 0.95
    assert (where - places[0, 3000:]).square().mean() < 0.003
    assert torch.equal(torch.random.get_rng_state(), before)


def test_first_weights_are_drawn_as_those_of_torch_s_linear_layers() -> None:
    layers = draw_layers(N, 400, torch.Generator().manual_seed(0))
    for weight, inputs in zip(layers, (N, N, HIDDEN, HIDDEN), strict=True):
        bound = 1 / math.sqrt(inputs)
        assert weight.abs().max() <= bound
        assert weight.std() == pytest.approx(bound / math.sqrt(3), rel=0.1)


def test_a_net_with_fewer_outputs_than_others_never_gives_the_rest() -> None:
    rng = torch.Generator().manual_seed(0)
    nets = Ensemble([draw_layers(N, outputs, rng) for outputs in (2, 4)])
    answers = nets(torch.randn((2, 10, N), generator=rng))
    assert answers.shape == (2, 10, 4)
    assert answers[0, :, 2:].eq(-math.inf).all()
    assert answers[0, :, :2].isfinite().all()
    assert answers[1].isfinite().all()


def test_every_epoch_shows_every_item_at_most_once_and_fills_its_batches() -> None:
    rows = probe._shuffle(ITEMS, SEED)
    steps = ITEMS // BATCH
    assert rows.shape == (EPOCHS * steps, BATCH)
    for epoch in rows.split(steps):
        assert len(epoch.unique()) == steps * BATCH
    assert probe._shuffle(7, SEED).shape == (EPOCHS, 7)


@pytest.mark.gpu
def test_on_a_gpu_probes_learn_the_same_and_give_the_same_bits_twice() -> None:
    asked, answers = torch.randn((50, N), generator=torch.Generator().manual_seed(1)), []
    for device in ("cpu", "cuda", "cuda"):
        probes = Probes(CLASSES, N, ITEMS, SEED, device)
        probes.learn(*(part.to(device) for part in lessons()))
        answers.append(probes.answer(1, asked.to(device))[1].cpu())
    assert torch.equal(answers[1], answers[2])
    torch.testing.assert_close(answers[0], answers[1], rtol=1e-3, atol=1e-4)
