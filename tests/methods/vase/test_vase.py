"""VASE: its loss by hand, the effects of masks, dreams and environments, assignment and state."""

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

from everlearn.core.random import Purpose
from everlearn.evaluation.costs import tensors
from everlearn.learner import Encodes, InfersEnvironments, Reconstructs
from everlearn.losses.divergences import bernoulli_entropy
from everlearn.methods import build
from everlearn.methods.vase.assignment import assignment_errors
from everlearn.methods.vase.atypicality import atypicality
from everlearn.nets.precision import deterministic
from everlearn.nets.seeded import seeded_generator
from everlearn.nets.vae import BorrowedWeights, Code

from ..conftest import IMAGES, learn, same

pytestmark = pytest.mark.integration

STREAM = IMAGES.with_changes(tasks=3)  # eight steps a task
TASKS = list(STREAM)
SMALL = {
    "net": "vase-flat", "latent_dim": 5, "max_environments": 3, "batch_size": 16, "epochs": 1,
    "learning_rate": 1e-3, "gamma": 20.0, "force_capacity": True, "capacity": 3.0, "capacity_steps": 6,
    "snapshot_steps": 3, "patience": 2, "encoder_weight": 1.0, "decoder_weight": 1.0,
}  # fmt: skip
GIVEN = {"environment_switches": "given"}
# So easily surprised that every task opens an environment.
SENSITIVE = {"kappa": 1.0, "num_deviations": 0.0, "patience": 1, "min_environment_steps": 3}
# Every batch becomes a reference, and is compared with after four.
REFERENCES = {"min_environment_steps": 4, "running_mean_batches": 4, "snapshot_steps": None}
ONE = torch.tensor(1)


def make(stream: Any = STREAM, method: str = "vase", device: str = "cpu", **changes: Any) -> Any:
    return build(method, stream, device, **SMALL | changes)


def noises(learner: Any, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return the noise and the uniform numbers of one step."""
    noise, draws = learner._draw_noise(torch.Generator().manual_seed(seed))
    return noise[0], draws[0]


def images_of(task: int = 0, count: int = 16) -> Tensor:
    images: Tensor = TASKS[task].train.batch(slice(0, count)).images
    return images


def digest(net: nn.Module) -> str:
    parts = b"".join(one.detach().numpy().tobytes() for one in net.state_dict().values())
    return hashlib.sha256(parts).hexdigest()


def encoder(learner: Any) -> list[Tensor]:
    net = learner.net
    return [*net.encoder.parameters(), *net.mean.parameters(), *net.log_variance.parameters()]


def error_of(images: Tensor, logits: Tensor) -> Tensor:
    each = binary_cross_entropy(logits.sigmoid(), images, reduction="none")
    return each.sum((1, 2, 3)).mean()


def divergence(code: Code) -> Tensor:
    """Return the mean KL of each latent over a batch, in nats."""
    normal = Normal(code.mean, (code.log_variance / 2).exp())
    return kl_divergence(normal, Normal(0.0, 1.0)).mean(0)


def test_it_encodes_reconstructs_and_infers_environments() -> None:
    learner = make()
    assert isinstance(learner, Encodes)
    assert isinstance(learner, Reconstructs)
    assert isinstance(learner, InfersEnvironments)


@pytest.mark.parametrize("force_capacity", [True, False])
def test_with_every_latent_masked_the_kl_is_zero_and_noise_is_decoded(force_capacity: bool) -> None:
    learner = learn(make(**GIVEN, dreams=False, force_capacity=force_capacity), TASKS[:1])
    learner.environments.state.masks.zero_()
    images = images_of()
    noise, draws = noises(learner)
    classified = learner.net.environment_logits(learner.net.encode(images).features)
    classifier_loss = cross_entropy(classified, torch.zeros(16).long())
    error = error_of(images, learner.net.decode(noise[1], torch.tensor(0)))
    expected = error + force_capacity * 20 * (0 - 3.0) ** 2 + classifier_loss
    torch.testing.assert_close(
        learner.training_step.learn_batch(False, images, noise, draws), expected
    )
    assert not any(weight.grad.any() for weight in encoder(learner))
    assert all(weight.grad.any() for weight in learner.net.decoder.parameters())


@pytest.mark.parametrize(
    ("method", "changes"), [("vase", {"dreams": False, **GIVEN}), ("cci-vae", {})]
)
@pytest.mark.parametrize("force_capacity", [True, False])
def test_one_environment_without_masks_and_dreams_is_a_cci_vae(
    force_capacity: bool, method: str, changes: dict[str, Any]
) -> None:
    """A plain loop: error + gamma (KL - C)^2 with growing C."""
    learner = make(method=method, max_environments=1, force_capacity=force_capacity, **changes)
    net, task = deepcopy(learner.net), TASKS[0]
    noise, _ = learner._draw_noise(seeded_generator(STREAM.seed, Purpose.VASE, 0, "cpu"))
    optimizer, expected, above = torch.optim.Adam(net.parameters(), 1e-3), [], []
    for step, batch in enumerate(task.batches(16, drop_last=True)):
        code = net.encode(batch.images)
        z = code.mean + (code.log_variance / 2).exp() * noise[step, 0]
        gap = divergence(code).sum() - 3.0 * min(1, step / 6)
        above += [bool(gap > 0)]
        gap = gap if force_capacity else gap.clamp(min=0)
        loss = error_of(batch.images, net.decode(z, torch.tensor(0))) + 20 * gap**2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        expected.append(loss.detach())
    assert len(expected) == 8
    assert set(above) == {True, False}
    torch.testing.assert_close(list(learner.learn(task)), expected)


def test_a_beta_vae_weights_the_kl() -> None:
    for method, beta in [("beta-vae", 4.0), ("cci-vae", 1.0)]:
        learner = make(method=method, max_environments=1, beta=beta)
        images, (noise, draws) = images_of(), noises(learner)
        code = learner.net.encode(images)
        z = code.mean + (code.log_variance / 2).exp() * noise[0]
        error = error_of(images, learner.net.decode(z, torch.tensor(0)))
        expected = error + beta * divergence(code).sum()
        torch.testing.assert_close(
            learner.training_step.learn_batch(False, images, noise, draws), expected
        )


def dreaming(**changes: Any) -> Any:
    """Return a learner in its third environment, far from its snapshot, with masked latents."""
    learner, source = learn(make(**GIVEN, **changes), TASKS), torch.Generator().manual_seed(0)
    learner.environments.state.masks[0, 2] = 0.0
    learner.environments.state.masks[2, 1] = 0.0
    with torch.no_grad():
        for weight in learner.net.parameters():
            weight.add_(0.05 * torch.randn(weight.shape, generator=source))
    return learner


@pytest.mark.parametrize(("encoding", "decoding"), [(1.0, 1.0), (2.0, 0.5), (1.0, 0.0)])
def test_the_loss_of_a_step_with_dreams(encoding: float, decoding: float) -> None:
    """Of the batch: error, KL penalty, classifier. Of dreams: proximity to the snapshot, classifier."""
    learner = dreaming(encoder_weight=encoding, decoder_weight=decoding)
    net = learner.net
    snapshot = learner.dreamer.snapshot
    state = learner.environments.state
    images = images_of(2)
    noise, draws = noises(learner)
    code = net.encode(images)
    mask = state.masks[2]
    z = mask * (code.mean + (code.log_variance / 2).exp() * noise[0]) + (1 - mask) * noise[1]
    gap = (mask * divergence(code)).sum() - learner.environments.capacity()
    expected = error_of(images, net.decode(z, torch.tensor(2))) + 20 * gap**2
    expected = expected + cross_entropy(net.environment_logits(code.features), torch.full((16,), 2))
    dreamt = (draws >= 0.5).long()  # the first environment or the second
    mask = state.masks[dreamt]
    z = mask * (state.mean[dreamt] + state.variance[dreamt].sqrt() * noise[2])
    z = z + (1 - mask) * noise[3]
    logits = snapshot.decode(z, dreamt)
    dreams = logits.sigmoid()
    new = net.encode(dreams)
    old = snapshot.encode(dreams)
    deviations = (new.log_variance / 2).exp() - (old.log_variance / 2).exp()
    encoder_distance = (new.mean - old.mean).square() + deviations.square()
    decoder_distance = kl_divergence(
        Bernoulli(logits=logits), Bernoulli(logits=net.decode(z, dreamt))
    )
    proximity = encoding * encoder_distance.sum(1) + decoding * decoder_distance.sum((1, 2, 3))
    expected = expected + proximity.mean()
    expected = expected + cross_entropy(net.environment_logits(new.features), dreamt)
    assert proximity.mean() > 0.1
    torch.testing.assert_close(
        learner.training_step.learn_batch(True, images, noise, draws), expected
    )


def test_the_snapshot_is_the_net_of_the_last_sync() -> None:
    learner = make(**GIVEN)
    nets, olds = [digest(learner.net)], []
    for task in TASKS:
        for _ in learner.learn(task):
            olds.append(digest(learner.dreamer.snapshot))
            nets.append(digest(learner.net))
    assert olds == [nets[step // 3 * 3] for step in range(24)]
    assert len(set(nets)) == 25
    assert digest(learner.dreamer.snapshot) == nets[24]


@pytest.mark.parametrize("changes", [GIVEN, SENSITIVE])
def test_without_snapshot_steps_a_new_environment_syncs_the_snapshot(
    changes: dict[str, Any],
) -> None:
    learner = make(snapshot_steps=None, max_environments=5, **changes)
    kept, began = digest(learner.dreamer.snapshot), {1}
    for task in TASKS:
        for _ in learner.learn(task):
            environments, now = learner.environments, digest(learner.net)
            opened = learner.steps + 1 in environments.state.opened_at.tolist()
            if opened:
                began.add(int(environments.state.count))
                kept = now
            else:
                assert now != digest(learner.dreamer.snapshot)
            assert digest(learner.dreamer.snapshot) == kept
            assert int(learner.dreamer.known) == (
                int(environments.state.count) if len(began) > 1 else 0
            )
    assert len(began) >= 3


def test_without_environments_the_snapshot_is_synced_every_500_steps() -> None:
    assert make(snapshot_steps=None, environments=False).settings.snapshot_period == 500
    assert make(snapshot_steps=None).settings.snapshot_period is None
    assert make(snapshot_steps=7).settings.snapshot_period == 7


def test_capacity_never_falls_in_an_environment_and_the_first_has_no_mask() -> None:
    learner, seen = make(**SENSITIVE), []
    for task in TASKS:
        for _ in learner.learn(task):
            seen.append(
                (int(learner.environments.state.active), float(learner.environments.capacity()))
            )
            assert learner.environments.state.masks[0].all()
            assert learner.environments.state.masks.any(1).all()
    assert [environment for environment, _ in seen] == sorted(
        environment for environment, _ in seen
    )
    assert {environment for environment, _ in seen} == {0, 1, 2}
    for (environment, before), (next_environment, after) in pairwise(seen):
        assert after >= before or next_environment > environment
    assert seen[0][1] == pytest.approx(3 / 6)
    assert max(capacity for _, capacity in seen) <= 3


def test_the_latent_of_a_factor_fixed_off_centre_is_masked() -> None:
    """Latents are the first pixels, which are uniform, so that they match the prior."""
    learner = make(learning_rate=0.0, min_environment_steps=30, batch_size=64, dreams=False)
    images = torch.rand(40, 64, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    noise, draws = noises(learner)

    def encode(given: Tensor) -> Code:
        mean = (12 * 0.99) ** 0.5 * (given[:, 0, 0, :5] - 0.5)
        return Code(mean, torch.full_like(mean, 0.01).log(), torch.zeros(len(given), 128))

    learner.net.encode = encode
    for batch in images:
        learner._step(batch, noise, draws)
    assert learner.environments.state.count == 1
    images[..., 0, 0, 2] = 0.95
    for batch in images[:2]:
        learner._step(batch, noise, draws)
    assert learner.environments.state.count == 2
    assert learner.environments.state.masks[1].tolist() == [1, 1, 0, 1, 1]
    assert learner.environments.state.masks[0].all()


def test_with_given_switches_every_task_is_an_environment() -> None:
    learner = make(**GIVEN)
    for number, task in enumerate(STREAM):
        active = [int(learner.environments.state.active) for _ in learner.learn(task)]
        assert active == [number] * 8
    found = {name: float(value) for name, value in learner.diagnostics().items()}
    assert found == {
        "environments": 3,
        "active": 2,
        "switches": 2,
        "surprises": 0,
        "opened_1": 9,
        "opened_2": 17,
    }
    assert learner.environments.state.age.tolist() == [
        8,
        7,
        7,
    ]  # the batch that opens one is not learned


def surprised(**changes: Any) -> Any:
    """Return a learner to which every batch is surprising."""
    learner = learn(make(num_deviations=0.0, min_environment_steps=8, **changes), TASKS[:1])
    learner.environments.state.error.fill_(0.01)
    learner.environments.state.error_deviation.zero_()
    learner.environments.state.visit_age.zero_()  # no valid reference
    return learner


def test_a_surprising_batch_has_no_gradients() -> None:
    learner = surprised(dreams=False)
    images, (noise, draws) = images_of(1), noises(learner)
    assert learner.training_step.learn_batch(False, images, noise, draws) == 0
    assert learner.environments.state.surprises_in_a_row == 1
    assert not any(weight.grad.any() for weight in learner.net.parameters())


@pytest.mark.parametrize("forgets", [False, True])
def test_a_changed_net_is_not_taken_for_a_new_environment(forgets: bool) -> None:
    learner = learn(make(min_environment_steps=8, running_mean_batches=8, dreams=False), TASKS[:1])
    assert (
        learner.environments.state.reference_sizes.tolist(),
        learner.environments.state.visit_age,
    ) == ([16] * 4, 8)
    with torch.no_grad():
        learner.net.mean.bias += 3
    if forgets:
        learner.environments.state.visit_age.zero_()
    learner.training_step.learn_batch(False, images_of(count=16), *noises(learner))
    assert learner.environments.state.surprises_in_a_row == forgets


def test_reference_statistics_are_of_the_active_environment() -> None:
    learner = learn(make(**GIVEN, dreams=False), TASKS)
    learner.training_step.reference_images.zero_()
    learner.training_step.reference_images[learner.environments.slot] = images_of(2)
    learner.environments.state.masks[2, 1] = 0.0
    noise, _ = noises(learner)
    code = learner.net.encode(images_of(2))
    z = code.mean + (code.log_variance / 2).exp() * noise[0]
    z[:, 1] = noise[1, :, 1]
    error = (
        error_of(images_of(2), learner.net.decode(z, torch.tensor(2)))
        - bernoulli_entropy(images_of(2)).mean()
    )
    found = learner.training_step._reference_stats(BorrowedWeights(learner.net), noise)
    torch.testing.assert_close(found.error, error)
    torch.testing.assert_close(found.atypicality, atypicality(code.mean, code.log_variance))


def test_only_learned_images_become_references() -> None:
    learner = surprised(dreams=False, running_mean_batches=4)
    before = learner.training_step.reference_images.clone()
    assert before.any()
    learner.training_step.learn_batch(False, images_of(1), *noises(learner))
    assert torch.equal(learner.training_step.reference_images, before)
    learner = learn(
        make(min_environment_steps=100, running_mean_batches=8, dreams=False), TASKS[:1]
    )
    for number, slot in [(1, None), (2, 1), (0, None), (1, 2)]:
        before = learner.training_step.reference_images.clone()
        learner.training_step.learn_batch(False, images_of(number), *noises(learner))
        for stored in range(4):
            expected = images_of(number) if stored == slot else before[stored]
            assert torch.equal(learner.training_step.reference_images[stored], expected)


def test_a_new_environment_starts_with_the_decoder_of_the_nearest_one() -> None:
    learner = surprised(dreams=False, patience=1)
    z = noises(learner)[0][0]
    assert not torch.allclose(learner.decode(z, ONE), learner.decode(z, ONE - 1), atol=1e-4)
    learner.training_step.learn_batch(False, images_of(1), *noises(learner))
    assert learner.environments.opened.tolist() == [False, True, False]
    torch.testing.assert_close(learner.decode(z, ONE), learner.decode(z, ONE - 1))
    learner.training_step.learn_batch(False, images_of(1), *noises(learner))
    assert not torch.allclose(learner.decode(z, ONE), learner.decode(z, ONE - 1), atol=1e-4)


def test_with_max_environments_open_learning_continues() -> None:
    learner = surprised(max_environments=1, masks=False)
    losses = [float(loss) for loss in learner.learn(TASKS[1])]
    assert losses[:2] == [0, 0]  # it would have opened one by now
    assert all(loss > 0 for loss in losses[2:])
    assert (learner.environments.state.count, learner.environments.state.active) == (1, 0)


def test_dreams_are_of_known_environments_except_the_active_one() -> None:
    learner = make(max_environments=5)
    dreamer, environments = learner.dreamer, learner.environments
    z, noise = torch.randn(2, 3000, 5, generator=torch.Generator().manual_seed(0))
    draws = torch.rand(3000, generator=torch.Generator().manual_seed(1))
    for count, active, expected in [(4, 2, {0, 1, 3}), (2, 0, {1}), (5, 4, {0, 1, 2, 3})]:
        environments.state.count.fill_(count)
        environments.state.active.fill_(active)
        dreamer.sync()
        dream = dreamer.dream(z, noise, draws)
        counts = torch.bincount(dream.environments, minlength=5)
        assert dream.weight == 1
        assert set(counts.nonzero().flatten().tolist()) == expected
        # Uniform, within five standard deviations.
        assert (counts[list(expected)] - 3000 / len(expected)).abs().max() < 5 * 750**0.5


def test_dreams_are_of_environments_that_the_snapshot_knows() -> None:
    learner = make(max_environments=5)
    dreamer, environments = learner.dreamer, learner.environments
    inputs = (*torch.zeros(2, 9, 5), torch.linspace(0, 0.99, 9))
    environments.state.count.fill_(2)
    dreamer.sync()
    environments.state.count.fill_(3)
    environments.state.active.fill_(2)
    assert set(dreamer.dream(*inputs).environments.tolist()) <= {0, 1}
    environments.state.active.fill_(0)
    assert set(dreamer.dream(*inputs).environments.tolist()) == {1}


def test_masked_latents_of_dreams_are_noise() -> None:
    learner = make()
    dreamer, environments = learner.dreamer, learner.environments
    environments.state.count.fill_(2)
    environments.state.active.fill_(1)
    environments.state.masks[0] = torch.tensor([1.0, 0.0, 1.0, 0.0, 1.0])
    dreamer.sync()
    z, noise = torch.arange(90.0).reshape(2, 9, 5)
    dream = dreamer.dream(z, noise, torch.zeros(9))
    assert torch.equal(
        dream.z, torch.stack([z[:, 0], noise[:, 1], z[:, 2], noise[:, 3], z[:, 4]], 1)
    )
    assert torch.equal(dream.images, dreamer.snapshot.decode(dream.z, torch.tensor(0)).sigmoid())
    assert not dream.images.requires_grad


@pytest.mark.parametrize("inferred", [True, False])
def test_dreamt_codes_have_the_statistics_of_their_environment(inferred: bool) -> None:
    learner = make(environments=inferred, max_environments=3 if inferred else 1)
    dreamer = learner.dreamer
    state = learner.environments.state
    state.count.fill_(2)
    state.active.fill_(inferred)
    state.mean[0] = torch.arange(5.0)
    state.variance[0] = 4.0
    dreamer.sync()
    z, noise = torch.randn(2, 9, 5, generator=torch.Generator().manual_seed(0))
    expected = torch.arange(5.0) + 2 * z if inferred else z
    torch.testing.assert_close(dreamer.dream(z, noise, torch.zeros(9)).z, expected)


def test_entering_a_known_environment_syncs_the_snapshot_once() -> None:
    learner = learn(make(**GIVEN, snapshot_steps=None), TASKS[:2])
    steps, changes = learner.learn(TASKS[0]), []
    for _ in steps:
        changes.append(digest(learner.dreamer.snapshot))
        if len(changes) == 1:
            assert changes[0] == digest(learner.net)
    assert learner.environments.state.active == 0
    assert len(set(changes)) == 1


def test_there_are_no_dreams_before_the_first_snapshot() -> None:
    """Dreams of an untrained net would do harm."""
    for changes, first in [
        (GIVEN, 8),
        (GIVEN | {"snapshot_steps": 10}, 10),
        ({"min_environment_steps": 5}, 5),
        ({"min_environment_steps": 1}, 3),
        ({"min_environment_steps": 5, "snapshot_steps": None}, 5),
        ({"environments": False}, 3),
    ]:
        learner = make(**changes)
        when = []
        for task in TASKS[:2]:
            for _ in learner.learn(task):
                when += [learner.steps] if learner._can_dream(task.index > 0) else []
        assert when == list(range(first, 16))
    assert not make(dreams=False, snapshot_steps=1)._can_dream(True)


def test_a_step_with_nothing_to_dream_of_equals_a_step_without_dreams() -> None:
    one, two = (learn(make(**GIVEN, snapshot_steps=100), TASKS[:1]) for _ in range(2))
    images, (noise, draws) = images_of(), noises(one)
    losses = [
        learner.training_step.learn_batch(dreams, images, noise, draws)
        for learner, dreams in ((one, False), (two, True))
    ]
    torch.testing.assert_close(*losses)
    for ours, theirs in zip(one.net.parameters(), two.net.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def test_all_ablations_learn_the_first_environment_alike() -> None:
    """Without surprises there is nothing to mask, to switch to or to dream of."""
    plain = learn(make(method="cci-vae"), TASKS[:1])
    for changes in (GIVEN, {"masks": False, **GIVEN}, {"min_environment_steps": 99}):
        learner = learn(make(**changes), TASKS[:1])
        for ours, theirs in zip(learner.net.parameters(), plain.net.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def test_the_environment_classifier_has_no_gradients_into_encoder_and_decoder() -> None:
    one, two = make(**GIVEN), make(**GIVEN)
    with torch.no_grad():
        two.net.environment_head.weight.mul_(-3)
        two.dreamer.snapshot.environment_head.weight.mul_(-3)
    ours, theirs = (learn(learner, TASKS).net.state_dict() for learner in (one, two))
    differ = {name for name, weight in ours.items() if not torch.equal(weight, theirs[name])}
    assert differ == {"environment_head.weight", "environment_head.bias"}


def test_the_environment_classifier_learns_from_batches_and_dreams() -> None:
    learner = make(**GIVEN, assign_by="classifier")
    learn(learner, TASKS)
    learner.training_step.learn_batch(True, images_of(2), *noises(learner))
    assert all(learner.net.environment_head.bias.grad != 0)


@pytest.mark.parametrize("assign_by", ["error", "classifier"])
def test_only_known_environments_are_assigned(assign_by: str) -> None:
    learner = learn(make(**GIVEN, max_environments=9, assign_by=assign_by), TASKS)
    with torch.no_grad():
        learner.net.environment_head.bias[3:] = 9.0
    for number in range(3):
        found = learner.environment(images_of(number))
        assert found.ndim == 0
        assert found.dtype == torch.int64
        assert 0 <= found < 3


def test_images_are_assigned_by_error_or_by_classifier() -> None:
    learner = learn(make(**GIVEN, masks=False), TASKS)
    learner.environments.state.error.fill_(1e6)  # nothing surprises
    images = images_of(0)
    errors = [
        float(learner.errors_in(images, environment).mean()) for environment in torch.arange(3)
    ]
    assert learner.environment(images) == errors.index(min(errors))
    other = make(**GIVEN, masks=False, assign_by="classifier")
    other.load_state(learner.state())
    with torch.no_grad():
        other.net.environment_head.weight.zero_()
        other.net.environment_head.bias.copy_(torch.tensor([0.0, 2.0, 1.0]))
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
def test_images_are_not_assigned_where_they_are_surprising_unless_everywhere(
    alphas: tuple[float, ...], errors: tuple[float, ...], factors: tuple[float, ...]
) -> None:
    """Codes whose variance is 0.01: their atypicality is (0.01 - 1 - log 0.01) / 2 = 1.81."""
    learner, images = learn(make(**GIVEN), TASKS), images_of(2)
    net, environments = learner.net, learner.environments
    with torch.no_grad():
        for head, bias in ((net.mean, 0.0), (net.log_variance, math.log(0.01))):
            head.weight.zero_()
            head.bias.fill_(bias)
    environments.state.kl.fill_(1.0)
    for spread in (environments.state.atypicality_deviation, environments.state.error_deviation):
        spread.zero_()
    environments.state.atypicality.copy_(torch.tensor(alphas)[:, None])
    environments.state.error.copy_(torch.tensor(errors))
    excess = [
        float((learner.errors_in(images, environment) - bernoulli_entropy(images)).mean())
        for environment in torch.arange(3)
    ]
    expected = [error * factor for error, factor in zip(excess, factors, strict=True)]
    assert assignment_errors(learner, images).tolist() == pytest.approx(expected, rel=1e-4)
    assert learner.environment(images) == expected.index(min(expected))


def test_reconstruction_errors_are_of_sampled_codes_in_the_assigned_environment() -> None:
    learner = learn(make(**GIVEN), TASKS)
    images = images_of(0)
    environment = learner.environment(images)
    z = learner.sample(*learner.codes(images), environment)
    expected = [
        binary_cross_entropy(drawn, image, reduction="sum")
        for drawn, image in zip(learner.decode(z, environment).sigmoid(), images, strict=True)
    ]
    torch.testing.assert_close(learner.reconstruction_errors(images), torch.stack(expected))
    assert torch.equal(learner.reconstruction_errors(images), learner.reconstruction_errors(images))


def test_sampled_codes_have_mean_and_deviation_and_masked_ones_are_noise() -> None:
    """Zeros would tell the decoder what is masked."""
    learner = learn(make(**GIVEN), TASKS[:1])
    learner.environments.state.masks[0, 2] = 0.0
    images = images_of(0, 1).expand(20_000, -1, -1, -1)
    mean, deviation = (one[0] for one in learner.codes(images))
    mean[2], deviation[2] = 0.0, 1.0
    z = learner.sample(*learner.codes(images), torch.tensor(0))
    torch.testing.assert_close(z.mean(0), mean, atol=0.05, rtol=0)
    torch.testing.assert_close(z.std(0), deviation, atol=0.05, rtol=0)


def test_the_mask_is_that_of_the_assigned_environment() -> None:
    learner = learn(make(**GIVEN, assign_by="classifier"), TASKS)
    with torch.no_grad():
        learner.net.environment_head.bias[1] = 99.0
    learner.environments.state.masks[1] = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0])
    assert learner.mask(images_of(0)).tolist() == [True, False, True, True, False]


def test_used_latents_are_unmasked_and_needed_by_the_decoder() -> None:
    """The decoder ignores all latents but the first two, of which one is masked."""
    learner = learn(make(**GIVEN), TASKS)
    with torch.no_grad():
        learner.net.condition.weight[:, 2:5] = 0.0
        learner.net.condition.weight[:, :2] *= 50
    assert learner.used(images_of(1)).tolist() == [True, True, False, False, False]
    learner.environments.state.masks[:, 1] = 0.0
    assert learner.used(images_of(1)).tolist() == [True, False, False, False, False]


def test_predictions_are_the_nearest_class_means_of_codes() -> None:
    learner = learn(make(**GIVEN), TASKS)
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
        expected = [few[nearest] for nearest in far.argmin(0)]
        assert learner.predict(images, among).tolist() == expected


def make_codes(learner: Any, index: int) -> Any:
    """Return the encoder of a learner as it was at the end of a task."""
    before = learn(make(**GIVEN), TASKS[: index + 1])
    return lambda images: before.codes(images)[0]


def test_the_means_of_recurring_classes_are_replaced() -> None:
    learner = learn(make(**GIVEN), [TASKS[0], TASKS[1], TASKS[0]])
    batch = TASKS[0].train.batch(slice(None))
    codes = learner.codes(batch.images)[0]
    for label in TASKS[0].classes:
        found = learner.class_means.sums[label] / learner.class_means.counts[label]
        expected = codes[batch.labels == label].double().mean(0)
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


def test_class_means_leave_the_net_alone() -> None:
    one, two = make(**GIVEN), make(**GIVEN)
    two.class_means.update = lambda *_: None
    learn(one, TASKS)
    learn(two, TASKS)
    assert digest(one.net) == digest(two.net)
    assert set(two.predict(images_of()).tolist()) == {-1}


@pytest.mark.parametrize("changes", [GIVEN, SENSITIVE, SENSITIVE | {"patience": 3}, REFERENCES])
@pytest.mark.parametrize("stop", [1, 2])
def test_a_loaded_state_continues_to_the_same_bits(changes: dict[str, Any], stop: int) -> None:
    whole, second = learn(make(**changes), TASKS), learn(make(**changes), TASKS[2:])
    second.load_state(learn(make(**changes), TASKS[:stop]).state())
    learn(second, TASKS[stop:])
    assert whole.environments.state.count > 1 or changes is REFERENCES
    assert same(tensors(whole.state()), tensors(second.state()))


@pytest.mark.parametrize(
    ("parts", "changes"),
    [
        *((parts, {}) for parts in ("", "S", "D", "A", "SD", "SA", "DA", "SDA")),
        ("SD", {"decoder_weight": 0.0}),
        ("SDA", {"beta": 1.0}),
        ("SDA", GIVEN),
    ],
)
def test_all_ablations_learn(parts: str, changes: dict[str, Any]) -> None:
    names = {"S": "environments", "D": "dreams", "A": "masks"}
    switches = {name: letter in parts for letter, name in names.items()}
    always_masks = {
        "atypicality_threshold": 0.0,
        "atypicality_rise": 0.0,
        "mask_low": 0.1,
        "mask_high": 0.1,
        "min_latent_kl": 0.0,
    }
    learner = make(**SENSITIVE, **always_masks, **switches, **changes)
    losses = []
    for task in TASKS:
        losses += [float(loss) for loss in learner.learn(task)]
    assert all(torch.tensor(losses).isfinite())
    assert (learner.environments.state.count > 1) == ("S" in parts)
    assert (not learner.environments.state.masks.all()) == ("A" in parts)
    assert learner._can_dream(True) == ("D" in parts)
    assert learner.reconstruction_errors(images_of()).isfinite().all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("latent_dim", 0), ("max_environments", 0), ("snapshot_steps", 0), ("encoder_weight", -1.0),
        ("decoder_weight", -1.0), ("beta", -1.0), ("gamma", -1.0), ("capacity", -1.0),
        ("capacity_steps", 0), ("kappa", 0.5), ("atypicality_threshold", -1.0), ("mask_high", 0.1),
        ("patience", 0), ("running_mean_batches", 0), ("min_environment_steps", -1),
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        make(**{name: value})


@pytest.mark.parametrize(
    ("name", "known"), [("environment_switches", "given"), ("assign_by", "classifier")]
)
def test_unknown_options_are_refused_with_the_known_ones(name: str, known: str) -> None:
    with pytest.raises(ValueError, match=f"unknown {name} 'often'; known: .*{known}"):
        make(**{name: "often"})


@pytest.mark.gpu
@pytest.mark.parametrize(
    "changes", [GIVEN, SENSITIVE, SENSITIVE | {"running_mean_batches": 4, "snapshot_steps": None}]
)
def test_captured_steps_equal_eager_steps_to_the_bit(changes: dict[str, Any]) -> None:
    graph, eager = (make(device="cuda", net="vase-small", **changes) for _ in range(2))
    learn_batch = eager.training_step.learn_batch
    eager._step = lambda *inputs: learn_batch(False, *inputs).detach()
    eager._step_with_dreams = lambda *inputs: learn_batch(True, *inputs).detach()
    with deterministic():
        for task in TASKS:
            losses = list(graph.learn(task)), list(eager.learn(task))
            assert same(*losses)
    assert graph.environments.state.count == 3
    assert same(tensors(graph.state()), tensors(eager.state()))


@pytest.mark.gpu
def test_steps_never_wait_for_the_gpu_while_environments_open() -> None:
    learner = learn(make(device="cuda", max_environments=9, **SENSITIVE), TASKS[:1])
    steps = iter(learner.learn(TASKS[1]))
    next(steps)  # captures
    before = int(learner.environments.state.count)
    learner.environments.state.error.zero_()  # so that any batch is too hard
    learner.environments.state.error_deviation.zero_()
    learner.environments.state.age.fill_(9)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(6):
            next(steps)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert learner._can_dream(True)
    assert learner.environments.state.count > before
