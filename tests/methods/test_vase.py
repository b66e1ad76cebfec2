"""VASE: its loss by hand, what masks, dreams and environments change, and what may move what."""

from __future__ import annotations

import hashlib
import math
from copy import deepcopy
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Bernoulli, Normal, kl_divergence
from torch.nn.functional import binary_cross_entropy, cross_entropy

from everlearn.exam.costs import tensors
from everlearn.learner import Encodes, Masks, Reconstructs
from everlearn.methods import build
from everlearn.nets import fast
from everlearn.nets.coder import Code, Lent
from everlearn.nets.divergence import entropy
from everlearn.nets.seeded import chance
from everlearn.philox import Purpose

from .conftest import IMAGES, learn, same

STREAM = IMAGES.with_changes(tasks=3)  # eight steps a task
TASKS = list(STREAM)
FEW = {
    "net": "vase-flat", "z": 5, "most": 3, "batch_size": 16, "epochs": 1, "rate": 1e-3,
    "gamma": 20.0, "reach": True, "capacity": 3.0, "capacity_steps": 6, "tau": 3, "patience": 2,
    "encoder_weight": 1.0, "decoder_weight": 1.0,
}  # fmt: skip
TOLD = {"switches": "told"}
# So easily surprised that every task, and more, opens an environment.
NERVOUS = {"kappa": 1.0, "spreads": 0.0, "patience": 1, "quiet": 3}
# A batch is kept at every step and looked back on after four.
LOOKING = {"quiet": 4, "slow": 4, "tau": None}
ONE = torch.tensor(1)


def make(stream: Any = STREAM, method: str = "vase", device: str = "cpu", **changes: Any) -> Any:
    return build(method, stream, device, **FEW | changes)


def noises(learner: Any, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Noise and numbers of one step."""
    noise, draws = learner._draw(torch.Generator().manual_seed(seed))
    return noise[0], draws[0]


def some(number: int = 0, count: int = 16) -> Tensor:
    images: Tensor = TASKS[number].train.batch(slice(0, count)).images
    return images


def digest(net: nn.Module) -> str:
    parts = b"".join(one.detach().numpy().tobytes() for one in net.state_dict().values())
    return hashlib.sha256(parts).hexdigest()


def encoder(learner: Any) -> list[Tensor]:
    net = learner.net
    return [*net.eyes.parameters(), *net.mean.parameters(), *net.log_variance.parameters()]


def error_of(images: Tensor, logits: Tensor) -> Tensor:
    each = binary_cross_entropy(logits.sigmoid(), images, reduction="none")
    return each.sum((1, 2, 3)).mean()


def divergence(code: Code) -> Tensor:
    """Nats that each number of a code says, over a batch."""
    normal = Normal(code.mean, (code.log_variance / 2).exp())
    return kl_divergence(normal, Normal(0.0, 1.0)).mean(0)


def test_it_encodes_reconstructs_and_masks() -> None:
    learner = make()
    assert isinstance(learner, Encodes)
    assert isinstance(learner, Reconstructs)
    assert isinstance(learner, Masks)


@pytest.mark.parametrize("reach", [True, False])
def test_v2_with_nothing_unmasked_codes_say_nothing_and_noise_is_drawn(reach: bool) -> None:
    learner = learn(make(**TOLD, dreams=False, reach=reach), TASKS[:1])
    learner.world.masks.zero_()
    images, (noise, draws) = some(), noises(learner)
    named = cross_entropy(
        learner.net.guess(learner.net.encode(images).seen), torch.zeros(16).long()
    )
    error = error_of(images, learner.net.decode(noise[1], torch.tensor(0)))
    expected = error + reach * 20 * (0 - 3.0) ** 2 + named
    torch.testing.assert_close(learner._learn_batch(False, images, noise, draws), expected)
    assert not any(weight.grad.any() for weight in encoder(learner))
    assert all(weight.grad.any() for weight in learner.net.brush.parameters())


@pytest.mark.parametrize(
    ("method", "changes"), [("vase", {"dreams": False, **TOLD}), ("cci-vae", {})]
)
@pytest.mark.parametrize("reach", [True, False])
def test_v3_alone_and_unmasked_it_is_a_cci_vae(
    reach: bool, method: str, changes: dict[str, Any]
) -> None:
    """The plain loop: error + gamma (KL - C)^2, where C grows a step at a time."""
    learner = make(method=method, most=1, reach=reach, **changes)
    net, task = deepcopy(learner.net), TASKS[0]
    noise, _ = learner._draw(chance(STREAM.seed, Purpose.VASE, 0, "cpu"))
    optimizer, expected, above = torch.optim.Adam(net.parameters(), 1e-3), [], []
    for step, batch in enumerate(task.batches(16, drop_last=True)):
        code = net.encode(batch.images)
        z = code.mean + (code.log_variance / 2).exp() * noise[step, 0]
        gap = divergence(code).sum() - 3.0 * min(1, step / 6)
        above += [bool(gap > 0)]
        gap = gap if reach else gap.clamp(min=0)
        loss = error_of(batch.images, net.decode(z, torch.tensor(0))) + 20 * gap**2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        expected.append(loss.detach())
    assert len(expected) == 8
    assert set(above) == {True, False}
    torch.testing.assert_close(list(learner.learn(task)), expected)


def test_a_beta_vae_weighs_what_codes_say() -> None:
    for method, beta in [("beta-vae", 4.0), ("cci-vae", 1.0)]:
        learner = make(method=method, most=1, beta=beta)
        images, (noise, draws) = some(), noises(learner)
        code = learner.net.encode(images)
        z = code.mean + (code.log_variance / 2).exp() * noise[0]
        error = error_of(images, learner.net.decode(z, torch.tensor(0)))
        expected = error + beta * divergence(code).sum()
        torch.testing.assert_close(learner._learn_batch(False, images, noise, draws), expected)


def dreaming(**changes: Any) -> Any:
    """A learner in its third environment and far from its snapshot; some latents are masked."""
    learner, source = learn(make(**TOLD, **changes), TASKS), torch.Generator().manual_seed(0)
    learner.world.masks[0, 2] = 0.0
    learner.world.masks[2, 1] = 0.0
    with torch.no_grad():
        for weight in learner.net.parameters():
            weight.add_(0.05 * torch.randn(weight.shape, generator=source))
    return learner


@pytest.mark.parametrize(("encoding", "drawing"), [(1.0, 1.0), (2.0, 0.5), (1.0, 0.0)])
def test_a_step_by_hand(encoding: float, drawing: float) -> None:
    """Of the batch: error, gap and name. Of dreams: distances to the snapshot, and names."""
    learner = dreaming(encoder_weight=encoding, decoder_weight=drawing)
    net, old, masks = learner.net, learner.dreamer.old, learner.world.masks
    images, (noise, draws) = some(2), noises(learner)
    code = net.encode(images)
    z = (
        masks[2] * (code.mean + (code.log_variance / 2).exp() * noise[0])
        + (1 - masks[2]) * noise[1]
    )
    gap = (masks[2] * divergence(code)).sum() - learner.world.capacity()
    expected = error_of(images, net.decode(z, torch.tensor(2))) + 20 * gap**2
    expected = expected + cross_entropy(net.guess(code.seen), torch.full((16,), 2))
    places = (draws >= 0.5).long()  # the first or the second
    world = learner.world
    met = world.centre[places] + world.variance[places].sqrt() * noise[2]
    z = masks[places] * met + (1 - masks[places]) * noise[3]
    logits = old.decode(z, places)
    dreams = logits.sigmoid()
    ours, theirs = net.encode(dreams), old.encode(dreams)
    wider = (ours.log_variance / 2).exp() - (theirs.log_variance / 2).exp()
    apart = (ours.mean - theirs.mean).square() + wider.square()
    drawn = kl_divergence(Bernoulli(logits=logits), Bernoulli(logits=net.decode(z, places)))
    far = encoding * apart.sum(1) + drawing * drawn.sum((1, 2, 3))
    expected = expected + far.mean() + cross_entropy(net.guess(ours.seen), places)
    assert far.mean() > 0.1
    torch.testing.assert_close(learner._learn_batch(True, images, noise, draws), expected)


def test_v5_the_snapshot_stands_still_and_then_is_the_net() -> None:
    learner = make(**TOLD)
    nets, olds = [digest(learner.net)], []
    for task in TASKS:
        for _ in learner.learn(task):
            olds.append(digest(learner.dreamer.old))
            nets.append(digest(learner.net))
    assert olds == [nets[step // 3 * 3] for step in range(24)]
    assert len(set(nets)) == 25
    assert digest(learner.dreamer.old) == nets[24]


@pytest.mark.parametrize("changes", [TOLD, NERVOUS])
def test_v5_without_a_period_the_snapshot_is_the_net_as_an_environment_began(
    changes: dict[str, Any],
) -> None:
    learner = make(tau=None, most=5, **changes)
    kept, began = digest(learner.dreamer.old), {1}
    for task in TASKS:
        for _ in learner.learn(task):
            world, now = learner.world, digest(learner.net)
            opened = learner.steps + 1 in world.opened.tolist()
            if opened:
                began.add(int(world.count))
                kept = now
            else:
                assert now != digest(learner.dreamer.old)
            assert digest(learner.dreamer.old) == kept
            assert int(learner.dreamer.knew) == (int(world.count) if len(began) > 1 else 0)
    assert len(began) >= 3


def test_without_environments_there_is_a_snapshot_every_500_steps() -> None:
    assert make(tau=None, environments=False).settings.period == 500
    assert make(tau=None).settings.period is None
    assert make(tau=7).settings.period == 7


def test_v6_and_v11_capacity_never_falls_in_an_environment_and_all_applies_in_the_first() -> None:
    learner, seen = make(**NERVOUS), []
    for task in TASKS:
        for _ in learner.learn(task):
            seen.append((int(learner.world.active), float(learner.world.capacity())))
            assert learner.world.masks[0].all()
            assert learner.world.masks.any(1).all()
    assert [place for place, _ in seen] == sorted(place for place, _ in seen)
    assert {place for place, _ in seen} == {0, 1, 2}
    for (place, before), (next_place, after) in pairwise(seen):
        assert after >= before or next_place > place
    assert seen[0][1] == pytest.approx(3 / 6)
    assert max(capacity for _, capacity in seen) <= 3


def test_v9_the_latent_of_a_factor_that_stands_still_off_centre_is_masked() -> None:
    """An encoder whose latents are the first pixels, which are uniform, so that they fill the prior."""
    learner = make(rate=0.0, quiet=30, batch_size=64, dreams=False)
    images = torch.rand(40, 64, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    noise, draws = noises(learner)

    def encode(given: Tensor) -> Code:
        mean = (12 * 0.99) ** 0.5 * (given[:, 0, 0, :5] - 0.5)
        return Code(mean, torch.full_like(mean, 0.01).log(), torch.zeros(len(given), 128))

    learner.net.encode = encode
    for batch in images:
        learner._awake(batch, noise, draws)
    assert learner.world.count == 1
    images[..., 0, 0, 2] = 0.95
    for batch in images[:2]:
        learner._awake(batch, noise, draws)
    assert learner.world.count == 2
    assert learner.world.masks[1].tolist() == [1, 1, 0, 1, 1]
    assert learner.world.masks[0].all()


def test_told_every_task_is_an_environment() -> None:
    learner = make(**TOLD)
    for number, task in enumerate(STREAM):
        active = [int(learner.world.active) for _ in learner.learn(task)]
        assert active == [number] * 8
    notes = {name: float(value) for name, value in learner.notes().items()}
    assert notes == {
        "environments": 3,
        "active": 2,
        "switches": 2,
        "surprises": 0,
        "opened_1": 9,
        "opened_2": 17,
    }
    assert learner.world.age.tolist() == [8, 7, 7]  # what opens one is not learned


def surprised(**changes: Any) -> Any:
    """A learner to which any batch is far too hard."""
    learner = learn(make(spreads=0.0, quiet=8, **changes), TASKS[:1])
    learner.world.error.fill_(0.01)
    learner.world.error_spread.zero_()
    learner.world.stay.zero_()  # nothing to look back on
    return learner


def test_a_batch_that_surprises_has_no_slopes() -> None:
    learner = surprised(dreams=False)
    images, (noise, draws) = some(1), noises(learner)
    assert learner._learn_batch(False, images, noise, draws) == 0
    assert learner.world.doubt == 1
    assert not any(weight.grad.any() for weight in learner.net.parameters())


@pytest.mark.parametrize("forgets", [False, True])
def test_a_net_that_moves_is_not_taken_for_another_environment(forgets: bool) -> None:
    learner = learn(make(quiet=8, slow=8, dreams=False), TASKS[:1])
    assert (learner.world.kept.tolist(), learner.world.stay) == ([16] * 4, 8)
    with torch.no_grad():
        learner.net.mean.bias += 3
    if forgets:
        learner.world.stay.zero_()
    learner._learn_batch(False, some(count=16), *noises(learner))
    assert learner.world.doubt == forgets


def test_images_are_looked_back_on_in_the_environment_that_is_active() -> None:
    learner = learn(make(**TOLD, dreams=False), TASKS)
    learner.kept.zero_()
    learner.kept[learner.world.slot] = some(2)
    learner.world.masks[2, 1] = 0.0
    noise, _ = noises(learner)
    code = learner.net.encode(some(2))
    z = code.mean + (code.log_variance / 2).exp() * noise[0]
    z[:, 1] = noise[1, :, 1]
    error = error_of(some(2), learner.net.decode(z, torch.tensor(2))) - entropy(some(2)).mean()
    found = learner._look_back(Lent(learner.net), noise)
    torch.testing.assert_close(found.error, error)
    torch.testing.assert_close(found.centre, code.mean.mean(0))


def test_some_images_that_were_learned_are_kept() -> None:
    learner = surprised(dreams=False, slow=4)
    before = learner.kept.clone()
    assert before.any()
    learner._learn_batch(False, some(1), *noises(learner))
    assert torch.equal(learner.kept, before)
    learner = learn(make(quiet=100, slow=8, dreams=False), TASKS[:1])
    for number, slot in [(1, None), (2, 1), (0, None), (1, 2)]:
        before = learner.kept.clone()
        learner._learn_batch(False, some(number), *noises(learner))
        for place in range(4):
            expected = some(number) if place == slot else before[place]
            assert torch.equal(learner.kept[place], expected)


def test_a_new_environment_is_drawn_at_first_as_the_one_that_was_least_wrong() -> None:
    learner = surprised(dreams=False, patience=1)
    z = noises(learner)[0][0]
    assert not torch.allclose(learner.draw(z, ONE), learner.draw(z, ONE - 1), atol=1e-4)
    learner._learn_batch(False, some(1), *noises(learner))
    assert learner.world.opened_now().tolist() == [False, True, False]
    torch.testing.assert_close(learner.draw(z, ONE), learner.draw(z, ONE - 1))
    learner._learn_batch(False, some(1), *noises(learner))
    assert not torch.allclose(learner.draw(z, ONE), learner.draw(z, ONE - 1), atol=1e-4)


def test_when_there_are_as_many_environments_as_may_be_learning_goes_on() -> None:
    learner = surprised(most=1, masks=False)
    losses = [float(loss) for loss in learner.learn(TASKS[1])]
    assert losses[:2] == [0, 0]  # it would have opened one by now
    assert all(loss > 0 for loss in losses[2:])
    assert (learner.world.count, learner.world.active) == (1, 0)


def test_dreams_are_of_known_environments_but_the_active_one() -> None:
    learner = make(most=5)
    dreamer, world = learner.dreamer, learner.world
    z, noise = torch.randn(2, 3000, 5, generator=torch.Generator().manual_seed(0))
    draws = torch.rand(3000, generator=torch.Generator().manual_seed(1))
    for count, active, expected in [(4, 2, {0, 1, 3}), (2, 0, {1}), (5, 4, {0, 1, 2, 3})]:
        world.count.fill_(count)
        world.active.fill_(active)
        dreamer.sync()
        dream = dreamer.dream(z, noise, draws)
        counts = torch.bincount(dream.places, minlength=5)
        assert dream.there == 1
        assert set(counts.nonzero().flatten().tolist()) == expected
        # Alike, within five standard deviations.
        assert (counts[list(expected)] - 3000 / len(expected)).abs().max() < 5 * 750**0.5


def test_an_environment_is_not_dreamt_of_before_a_snapshot_knows_it() -> None:
    learner = make(most=5)
    dreamer, world = learner.dreamer, learner.world
    inputs = (*torch.zeros(2, 9, 5), torch.linspace(0, 0.99, 9))
    world.count.fill_(2)
    dreamer.sync()
    world.count.fill_(3)
    world.active.fill_(2)
    assert set(dreamer.dream(*inputs).places.tolist()) <= {0, 1}
    world.active.fill_(0)
    assert set(dreamer.dream(*inputs).places.tolist()) == {1}


def test_masked_numbers_of_dreams_are_noise() -> None:
    learner = make()
    dreamer, world = learner.dreamer, learner.world
    world.count.fill_(2)
    world.active.fill_(1)
    world.masks[0] = torch.tensor([1.0, 0.0, 1.0, 0.0, 1.0])
    dreamer.sync()
    z, noise = torch.arange(90.0).reshape(2, 9, 5)
    dream = dreamer.dream(z, noise, torch.zeros(9))
    assert torch.equal(
        dream.z, torch.stack([z[:, 0], noise[:, 1], z[:, 2], noise[:, 3], z[:, 4]], 1)
    )
    assert torch.equal(dream.images, dreamer.old.decode(dream.z, torch.tensor(0)).sigmoid())
    assert not dream.images.requires_grad


@pytest.mark.parametrize("environments", [True, False])
def test_dreams_are_of_codes_as_they_were_where_environments_are_told_apart(
    environments: bool,
) -> None:
    learner = make(environments=environments, most=3 if environments else 1)
    dreamer, world = learner.dreamer, learner.world
    world.count.fill_(2)
    world.active.fill_(environments)
    world.centre[0] = torch.arange(5.0)
    world.variance[0] = 4.0
    dreamer.sync()
    z, noise = torch.randn(2, 9, 5, generator=torch.Generator().manual_seed(0))
    expected = torch.arange(5.0) + 2 * z if environments else z
    torch.testing.assert_close(dreamer.dream(z, noise, torch.zeros(9)).z, expected)


def test_the_snapshot_is_taken_when_a_known_environment_comes_back_and_not_while_it_stays() -> None:
    learner = learn(make(**TOLD, tau=None), TASKS[:2])
    steps, changes = learner.learn(TASKS[0]), []
    for _ in steps:
        changes.append(digest(learner.dreamer.old))
        if len(changes) == 1:
            assert changes[0] == digest(learner.net)
    assert learner.world.active == 0
    assert len(set(changes)) == 1


def test_nothing_is_dreamt_before_there_is_a_snapshot() -> None:
    """Pitfall 8: dreams of an unlearned net would poison it."""
    for changes, first in [
        (TOLD, 8), (TOLD | {"tau": 10}, 10), ({"quiet": 5}, 5), ({"quiet": 1}, 3),
        ({"quiet": 5, "tau": None}, 5), ({"environments": False}, 3),
    ]:  # fmt: skip
        learner, when = make(**changes), []
        for task in TASKS[:2]:
            for _ in learner.learn(task):
                when += [learner.steps] if learner._may_dream(task.index > 0) else []
        assert when == list(range(first, 16))
    assert not make(dreams=False, tau=1)._may_dream(True)


def test_a_step_with_nothing_to_dream_of_is_a_step_without_dreams() -> None:
    one, two = (learn(make(**TOLD, tau=100), TASKS[:1]) for _ in range(2))
    images, (noise, draws) = some(), noises(one)
    losses = [
        learner._learn_batch(dreams, images, noise, draws)
        for learner, dreams in ((one, False), (two, True))
    ]
    torch.testing.assert_close(*losses)
    for ours, theirs in zip(one.net.parameters(), two.net.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def test_in_the_first_environment_all_ablations_learn_alike() -> None:
    """Where nothing surprises there is nothing to mask or to tell apart, and of itself none dreams."""
    plain = learn(make(method="cci-vae"), TASKS[:1])
    for changes in (TOLD, {"masks": False, **TOLD}, {"quiet": 99}):
        learner = learn(make(**changes), TASKS[:1])
        for ours, theirs in zip(learner.net.parameters(), plain.net.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def test_what_the_classifier_says_moves_neither_encoder_nor_decoder() -> None:
    """Pitfall 5."""
    one, two = make(**TOLD), make(**TOLD)
    with torch.no_grad():
        two.net.place.weight.mul_(-3)
        two.dreamer.old.place.weight.mul_(-3)
    ours, theirs = (learn(learner, TASKS).net.state_dict() for learner in (one, two))
    differ = {name for name, weight in ours.items() if not torch.equal(weight, theirs[name])}
    assert differ == {"place.weight", "place.bias"}


def test_the_classifier_learns_environments_from_batches_and_dreams() -> None:
    learner = make(**TOLD, guess="classifier")
    learn(learner, TASKS)
    learner._learn_batch(True, some(2), *noises(learner))
    assert all(learner.net.place.bias.grad != 0)


@pytest.mark.parametrize("guess", ["error", "classifier"])
def test_only_known_environments_are_found(guess: str) -> None:
    learner = learn(make(**TOLD, most=9, guess=guess), TASKS)
    with torch.no_grad():
        learner.net.place.bias[3:] = 9.0
    for number in range(3):
        found = learner.environment(some(number))
        assert found.ndim == 0
        assert found.dtype == torch.int64
        assert 0 <= found < 3


def test_images_are_placed_by_their_error_or_by_the_classifier() -> None:
    learner = learn(make(**TOLD, masks=False), TASKS)
    learner.world.error.fill_(1e6)  # nothing surprises
    images = some(0)
    errors = [float(learner._errors_in(images, place).mean()) for place in torch.arange(3)]
    assert learner.environment(images) == errors.index(min(errors))
    other = make(**TOLD, masks=False, guess="classifier")
    other.load_state(learner.state())
    with torch.no_grad():
        other.net.place.weight.zero_()
        other.net.place.bias.copy_(torch.tensor([0.0, 2.0, 1.0]))
    assert other.environment(images) == 1


STRANGE, USUAL = 1.4, 1.6  # a mean of atypicality, to which 0.3 is added, beside one of 1.81
EASY, HARD = 1e6, 1.0  # a mean of errors


@pytest.mark.parametrize(
    ("alphas", "errors", "factors"),
    [
        ((USUAL, USUAL, USUAL), (EASY, EASY, EASY), (1, 1, 1)),
        ((USUAL, USUAL, STRANGE), (EASY, EASY, EASY), (1, 1, math.inf)),
        ((USUAL, USUAL, STRANGE), (HARD, EASY, EASY), (math.inf, 1, math.inf)),
        ((STRANGE, USUAL, STRANGE), (HARD, HARD, EASY), (1.5, 1, 1.5)),
    ],
)
def test_images_are_of_no_environment_where_they_surprise_unless_it_is_everywhere(
    alphas: tuple[float, ...], errors: tuple[float, ...], factors: tuple[float, ...]
) -> None:
    """Codes whose variance is 0.01: their atypicality is (0.01 - 1 - log 0.01) / 2 = 1.81."""
    learner, images = learn(make(**TOLD), TASKS), some(2)
    net, world = learner.net, learner.world
    with torch.no_grad():
        for head, bias in ((net.mean, 0.0), (net.log_variance, math.log(0.01))):
            head.weight.zero_()
            head.bias.fill_(bias)
    world.kl.fill_(1.0)
    for spread in (world.alpha_spread, world.error_spread):
        spread.zero_()
    world.alpha.copy_(torch.tensor(alphas)[:, None])
    world.error.copy_(torch.tensor(errors))
    excess = [
        float((learner._errors_in(images, place) - entropy(images)).mean())
        for place in torch.arange(3)
    ]
    expected = [error * factor for error, factor in zip(excess, factors, strict=True)]
    assert learner._misfits(images).tolist() == pytest.approx(expected, rel=1e-4)
    assert learner.environment(images) == expected.index(min(expected))


def test_errors_are_those_of_images_drawn_from_codes_in_their_environment() -> None:
    learner = learn(make(**TOLD), TASKS)
    images = some(0)
    place = learner.environment(images)
    z = learner.sample(images, place)
    expected = [
        binary_cross_entropy(drawn, image, reduction="sum")
        for drawn, image in zip(learner.draw(z, place).sigmoid(), images, strict=True)
    ]
    torch.testing.assert_close(learner.errors(images), torch.stack(expected))
    assert torch.equal(learner.errors(images), learner.errors(images))


def test_codes_drawn_from_have_their_moments_and_noise_where_they_are_masked() -> None:
    """Pitfall 4: zeros would tell the decoder what is masked."""
    learner = learn(make(**TOLD), TASKS[:1])
    learner.world.masks[0, 2] = 0.0
    images = some(0, 1).expand(20_000, -1, -1, -1)
    mean, deviation = (one[0] for one in learner.codes(images))
    mean[2], deviation[2] = 0.0, 1.0
    z = learner.sample(images, torch.tensor(0))
    torch.testing.assert_close(z.mean(0), mean, atol=0.05, rtol=0)
    torch.testing.assert_close(z.std(0), deviation, atol=0.05, rtol=0)


def test_masks_are_those_of_the_environment_found() -> None:
    learner = learn(make(**TOLD, guess="classifier"), TASKS)
    with torch.no_grad():
        learner.net.place.bias[1] = 99.0
    learner.world.masks[1] = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0])
    assert learner.mask(some(0)).tolist() == [True, False, True, True, False]


def test_latents_are_used_that_the_decoder_needs_and_that_apply() -> None:
    """A decoder that heeds the first two latents alone, one of which is masked."""
    learner = learn(make(**TOLD), TASKS)
    with torch.no_grad():
        learner.net.told.weight[:, 2:5] = 0.0
        learner.net.told.weight[:, :2] *= 50
    assert learner.used(some(1)).tolist() == [True, True, False, False, False]
    learner.world.masks[:, 1] = 0.0
    assert learner.used(some(1)).tolist() == [True, False, False, False, False]


def test_the_class_is_that_of_the_nearest_mean_of_codes() -> None:
    learner = learn(make(**TOLD), TASKS)
    means = {}
    for task in TASKS:
        batch = task.train.batch(slice(None))
        codes = make_codes(learner, task.index)(batch.images)
        means |= {label: codes[batch.labels == label].mean(0) for label in task.classes}
    images = TASKS[2].test.batch(slice(None)).images
    codes = learner.codes(images)[0]
    for among in (None, [4, 5], [0, 3]):
        few = list(among or means)
        far = torch.stack([(codes - means[label]).square().sum(1) for label in few])
        expected = [few[place] for place in far.argmin(0)]
        assert learner.predict(images, among).tolist() == expected


def make_codes(learner: Any, index: int) -> Any:
    """Codes as a learner made them when it had ended a task."""
    before = learn(make(**TOLD), TASKS[: index + 1])
    return lambda images: before.codes(images)[0]


def test_the_means_of_classes_that_come_back_are_made_anew() -> None:
    learner = learn(make(**TOLD), [TASKS[0], TASKS[1], TASKS[0]])
    batch = TASKS[0].train.batch(slice(None))
    codes = learner.codes(batch.images)[0]
    for label in TASKS[0].classes:
        found = learner.readout.sums[label] / learner.readout.counts[label]
        expected = codes[batch.labels == label].double().mean(0)
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


def test_the_class_means_move_nothing() -> None:
    one, two = make(**TOLD), make(**TOLD)
    two.readout.look = lambda *_: None
    learn(one, TASKS)
    learn(two, TASKS)
    assert digest(one.net) == digest(two.net)
    assert set(two.predict(some()).tolist()) == {-1}


@pytest.mark.slow
@pytest.mark.parametrize("changes", [TOLD, NERVOUS, NERVOUS | {"patience": 3}, LOOKING])
@pytest.mark.parametrize("stop", [1, 2])
def test_it_goes_on_from_its_state_with_several_environments(
    changes: dict[str, Any], stop: int
) -> None:
    whole, second = learn(make(**changes), TASKS), learn(make(**changes), TASKS[2:])
    second.load_state(learn(make(**changes), TASKS[:stop]).state())
    learn(second, TASKS[stop:])
    assert whole.world.count > 1 or changes is LOOKING
    assert same(tensors(whole.state()), tensors(second.state()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "changes"),
    [
        *((parts, {}) for parts in ("", "S", "D", "A", "SD", "SA", "DA", "SDA")),
        ("SD", {"decoder_weight": 0.0}),
        ("SDA", {"beta": 1.0}),
        ("SDA", TOLD),
    ],
)
def test_all_ablations_learn(parts: str, changes: dict[str, Any]) -> None:
    names = {"S": "environments", "D": "dreams", "A": "masks"}
    own = {name: letter in parts for letter, name in names.items()}
    learner, losses = (
        make(**NERVOUS, limit=0.0, high=0.1, low=0.1, rise=0.0, least=0.0, **own, **changes),
        [],
    )
    for task in TASKS:
        losses += [float(loss) for loss in learner.learn(task)]
    assert all(torch.tensor(losses).isfinite())
    assert (learner.world.count > 1) == ("S" in parts)
    assert (not learner.world.masks.all()) == ("A" in parts)
    assert learner._may_dream(True) == ("D" in parts)
    assert learner.errors(some()).isfinite().all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("z", 0), ("most", 0), ("tau", 0), ("encoder_weight", -1.0), ("decoder_weight", -1.0),
        ("beta", -1.0), ("gamma", -1.0), ("capacity", -1.0), ("capacity_steps", 0),
        ("kappa", 0.5), ("limit", -1.0), ("high", 0.1), ("patience", 0), ("slow", 0), ("quiet", -1),
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        make(**{name: value})


@pytest.mark.parametrize(("name", "known"), [("switches", "told"), ("guess", "classifier")])
def test_unknown_words_are_refused_with_those_known(name: str, known: str) -> None:
    with pytest.raises(ValueError, match=f"unknown {name} 'often'; known: .*{known}"):
        make(**{name: "often"})


@pytest.mark.gpu
@pytest.mark.parametrize("changes", [TOLD, NERVOUS, NERVOUS | {"slow": 4, "tau": None}])
def test_captured_steps_are_the_eager_steps_to_the_bit(changes: dict[str, Any]) -> None:
    graph, eager = (make(device="cuda", net="vase-small", **changes) for _ in range(2))
    eager._awake = lambda *inputs: eager._learn_batch(False, *inputs).detach()
    eager._dreaming = lambda *inputs: eager._learn_batch(True, *inputs).detach()
    with fast.steady():
        for task in TASKS:
            losses = list(graph.learn(task)), list(eager.learn(task))
            assert same(*losses)
    assert graph.world.count == 3
    assert same(tensors(graph.state()), tensors(eager.state()))


@pytest.mark.gpu
def test_no_step_waits_for_the_gpu_while_environments_are_opened_and_dreamt_of() -> None:
    learner = learn(make(device="cuda", most=9, **NERVOUS), TASKS[:1])
    steps = iter(learner.learn(TASKS[1]))
    next(steps)  # captures
    before = int(learner.world.count)
    learner.world.error.zero_()  # so that any batch is too hard
    learner.world.error_spread.zero_()
    learner.world.age.fill_(9)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(6):
            next(steps)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert learner._may_dream(True)
    assert learner.world.count > before
