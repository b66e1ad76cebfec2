"""AR1 and generative negative replay: what a step changes, what is consolidated, and the toy stream."""

from __future__ import annotations

import hashlib
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear, relu

from everlearn.core.settings import change_settings
from everlearn.evaluation.conformance import CONFORMANCE
from everlearn.methods import ar1
from everlearn.methods.ar1.patterns import draw_labels, find_bound
from everlearn.runs.presets import PRESETS
from everlearn.stream import Latents, Task

from ..conftest import IMAGES, STREAM, assert_resumes, learn, same_net

pytestmark = pytest.mark.integration

SMALL = {
    "net": "mlp", "batch_size": 16, "epochs": 2, "buffer_size": 24, "replay_fraction": 0.25,
    "latent_dim": 8,
}  # fmt: skip
# Which mode is best depends on the learning rates and on the mean that is subtracted from the head's rows
# (docs/methods/gnr.md): these are the protocol's.
NC = PRESETS["latents-nc"].settings_of("gnr") | {"mean_shift": "global"}
NIC = PRESETS["latents-nic"].settings_of("gnr") | {"mean_shift": "global"}


def make(stream: Any = STREAM, **changes: Any) -> ar1.AR1:
    return ar1.AR1(stream, change_settings(ar1.Settings(), SMALL | changes, "ar1"), "cpu")


def digest(net: nn.Module) -> str:
    content = b"".join(tensor.numpy().tobytes() for tensor in net.state_dict().values())
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("mode", ["nr-od", "nr-gd", "nr-rd"])
def test_negative_replay_keeps_the_rows_of_old_classes(mode: str) -> None:
    learner = learn(make(replay_mode=mode), [STREAM[0]])
    before = learner.head.consolidated.clone()
    learn(learner, [STREAM[1]])
    old = list(STREAM[0].classes)
    assert torch.equal(learner.head.consolidated[old], before[old])
    assert learner.head.past_counts[old].tolist() == [40.0, 40.0]


@pytest.mark.parametrize("mode", ["pr-od", "pr-gd", "pr-rd"])
def test_positive_replay_moves_the_rows_of_old_classes(mode: str) -> None:
    learner = learn(make(replay_mode=mode), [STREAM[0]])
    before = learner.head.consolidated.clone()
    learn(learner, [STREAM[1]])
    old = list(STREAM[0].classes)
    assert not torch.equal(learner.head.consolidated[old], before[old])
    # What the second task added to the memory is no pattern of an old class.
    replayed = 24 if learner.settings.replay_data == "od" else learner.replay.patterns.filled
    assert learner.head.past_counts[old].sum() == 80 + replayed


def test_steps_of_classifier_and_generator_leave_each_other_alone() -> None:
    """The generator learns after the classifier."""
    learner = make(replay_mode="nr-gd")
    seen = []
    assert learner.replay.generator is not None
    steps = 2 * (40 * 2 // 16)
    for _ in learner.learn(STREAM[0]):
        seen.append((digest(learner.model.net), digest(learner.replay.generator.net)))
    nets, generators = zip(*seen, strict=True)
    assert len(set(nets[:steps])) == steps
    assert len(set(generators[:steps])) == 1
    assert len(set(nets[steps:])) == 1
    assert len(set(generators[steps:])) == len(seen) - steps == 4 * (40 * 2 // 16)


def test_gradients_of_the_classifier_reach_the_generator() -> None:
    """The term of eta has gradients, and they end in the generator."""
    digests = [
        digest(learn(make(replay_mode="nr-gd", eta=eta), [STREAM[0]]).replay.generator.net)
        for eta in (0, 1)
    ]
    assert digests[0] != digests[1]


@pytest.mark.parametrize(("fraction", "replayed"), [(0.11, 14), (0.5, 64), (0.16, 20)])
def test_a_batch_has_the_papers_number_of_replayed_patterns(fraction: float, replayed: int) -> None:
    settings = ar1.Settings(replay_fraction=fraction)
    assert settings.split_batch(1000, 300) == (128 - replayed, replayed)
    assert settings.split_batch(1000, 0) == (128, 0)


def test_without_a_fraction_an_epoch_shows_new_and_old_patterns_once() -> None:
    """The rule of the AR1 code: n_cur = N // ((N + R) // B)."""
    new, old = ar1.Settings(replay_fraction=None).split_batch(3000, 1500)
    assert (new, old) == (3000 // (4500 // 128), 128 - 3000 // (4500 // 128))
    assert abs(3000 / new - 1500 / old) < 3


@pytest.mark.parametrize("mode", ["pr-od", "nr-gd", "pr-rd"])
def test_a_fraction_that_rounds_to_zero_is_no_replay(mode: str) -> None:
    """No row of a class without patterns is loaded or consolidated."""
    none = learn(make(replay_mode="none"), STREAM)
    for fraction in (0.0, 0.01):
        replaying = make(replay_mode=mode, replay_fraction=fraction)
        assert same_net(learn(replaying, STREAM), none)


@pytest.mark.parametrize(("fraction", "new"), [(0.99, 1000), (None, 3)])
def test_a_batch_has_at_least_one_new_pattern(fraction: float | None, new: int) -> None:
    settings = ar1.Settings(replay_fraction=fraction, batch_size=32)
    assert settings.split_batch(new, 1500) == (1, 31)
    changes = {"replay_fraction": fraction, "generator_replay_fraction": 0.99}
    learn(make(replay_mode="nr-gd", buffer_size=2000, **changes), STREAM)


def test_replay_is_uniform_over_the_classes_of_earlier_experiences() -> None:
    learner = make(replay_mode="nr-gd", buffer_size=600)
    for task in STREAM:
        known = set(learner.known)
        for _ in learner.learn(task):
            assert set(learner.replay.patterns.labels.tolist()) <= known
            assert (
                set(learner.replay.patterns.targets[: learner.replay.patterns.filled].tolist())
                <= known
            )
    counts = np.bincount(draw_labels(0, 5, [2, 7], 10_000), minlength=8)
    assert abs(int(counts[2]) - 5000) < 200
    assert counts[2] + counts[7] == 10_000


def test_random_latents_lie_below_the_ninetieth_percentile() -> None:
    assert find_bound(torch.arange(1000.0).reshape(10, 100)).item() == 899
    learner = learn(make(replay_mode="nr-rd", buffer_size=200), [STREAM[0], STREAM[1]])
    images = STREAM[0].train.batch(slice(None)).images
    assert learner.replay.bound == find_bound(images)
    held = learner.replay.patterns.latents
    assert held.min() >= 0
    assert learner.replay.bound * 0.99 < held.max() <= learner.replay.bound


def plain_cwr(tasks: list[Task], shift: str, include_unseen: bool) -> Tensor:
    """Return the consolidated rows of CWR* in a plain loop, without replay and with a frozen upper half."""
    learner = make(replay_mode="none", learning_rate=0.0, later_learning_rate=0.0, weight_decay=0.0)
    upper, kept = learner.top[0], torch.zeros(6, 64)
    past = torch.zeros(6)
    for task in tasks:
        rows = torch.zeros(6, 64, requires_grad=True)
        with torch.no_grad():
            for label in task.classes:
                rows[label] = kept[label]
        optimizer = torch.optim.SGD([rows], lr=0.05, momentum=0.9)
        here = list(task.classes)
        absent = torch.tensor([label not in here and not include_unseen for label in range(6)])
        for epoch in range(2):
            order = task.order(epoch)
            for start in range(0, len(order) - 15, 16):
                batch = task.train.batch(order[start : start + 16])
                logits = linear(upper(batch.images), rows)
                loss = cross_entropy(logits.masked_fill(absent, -torch.inf), batch.labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        rows = rows.detach()
        rows = rows - (rows[here].mean() if shift == "global" else rows.mean(1, keepdim=True))
        for label in here:
            count = int((task.train.labels == label).sum())
            w = float((past[label] / count).sqrt())
            kept[label] = (kept[label] * w + rows[label]) / (w + 1) if past[label] else rows[label]
            past[label] += count
    return kept


@pytest.mark.parametrize(("shift", "include_unseen"), [("per_class", False), ("global", True)])
def test_the_head_equals_that_of_a_plain_loop(shift: str, include_unseen: bool) -> None:
    tasks = [STREAM[0], STREAM[1], STREAM[0]]
    changes = {
        "learning_rate": 0.0,
        "later_learning_rate": 0.0,
        "head_learning_rate": 0.05,
        "later_head_learning_rate": 0.05,
        "weight_decay": 0.0,
    }
    head = {"mean_shift": shift, "include_unseen": include_unseen}
    learner = learn(make(replay_mode="none", **changes, **head), tasks)
    torch.testing.assert_close(learner.head.consolidated, plain_cwr(tasks, shift, include_unseen))


def test_synaptic_intelligence_equals_a_plain_loop() -> None:
    """Gradients of the total loss, importances between 0 and their bound, lambda / 2."""
    changes = {
        "learning_rate": 0.02,
        "later_learning_rate": 0.02,
        "head_learning_rate": 0.02,
        "later_head_learning_rate": 0.02,
    }
    changes |= {
        "weight_decay": 0.0,
        "strength": 50.0,
        "max_importance": 0.05,
        "importance_scale": 0.3,
        "head": "plain",
        "include_unseen": True,
    }
    learner = learn(make(replay_mode="none", **changes), STREAM)
    start = make(replay_mode="none", **changes)
    weight, bias = (w.detach().clone().requires_grad_() for w in start.top[0].parameters())
    rows = torch.zeros(6, 64, requires_grad=True)
    body = [weight, bias]
    total, importance = [torch.zeros_like(w) for w in body], [torch.zeros_like(w) for w in body]
    for task in STREAM:
        begin = [w.detach().clone() for w in body]
        way = [torch.zeros_like(w) for w in body]
        optimizer = torch.optim.SGD([*body, rows], lr=0.02, momentum=0.9)
        for epoch in range(2):
            order = task.order(epoch)
            for first in range(0, len(order) - 15, 16):
                batch = task.train.batch(order[first : first + 16])
                seen = relu(linear(batch.images.flatten(1), weight, bias))
                loss = cross_entropy(linear(seen, rows), batch.labels)
                parts = zip(importance, body, begin, strict=True)
                loss = loss + 25.0 * sum((f * (w - b).square()).sum() for f, w, b in parts)
                optimizer.zero_grad()
                loss.backward()
                old = [w.detach().clone() for w in body]
                gradients = [w.grad.clone() for w in body if w.grad is not None]
                optimizer.step()
                for o, g, w, b in zip(way, gradients, body, old, strict=True):
                    o += g * (w.detach() - b)
        for t, o, w, b in zip(total, way, body, begin, strict=True):
            t += 0.3 * o / ((w.detach() - b).square() + 1e-7)
        importance = [(-t).clamp(0, 0.05) for t in total]
    torch.testing.assert_close(learner.top[0].state_dict()["1.weight"], weight.detach())
    torch.testing.assert_close(learner.head.weight.detach(), rows.detach())


def test_a_frozen_net_keeps_its_bits_after_the_first_experience() -> None:
    learner = learn(make(replay_mode="none", later_learning_rate=0.0), [STREAM[0]])
    before = digest(learner.top[0])
    learn(learner, [STREAM[1], STREAM[2]])
    assert digest(learner.top[0]) == before


def test_predictions_between_steps_leave_a_frozen_net_with_running_statistics_unchanged() -> None:
    """Its upper half normalises by running statistics, whether or not it predicts within an experience."""
    stream = Latents(dimensions=128, classes=6, first=2, classes_per_task=2, train=5)
    consolidated = []
    for predicts in (False, True):
        learner = learn(
            make(stream, net="convnet-pooled", replay_mode="none", later_learning_rate=0.0),
            [stream[0]],
        )
        before = digest(learner.top[0])
        for _ in learner.learn(stream[1]):
            assert not learner.top[0].training
            if predicts:
                learner.predict(stream[1].test.batch(slice(0, 2)).images)
        assert digest(learner.top[0]) == before
        consolidated.append(learner.head.consolidated.clone())
    assert torch.equal(*consolidated)


def test_a_frozen_upper_half_is_in_eval_mode_while_the_head_trains() -> None:
    changes = {"net": "convnet-pooled", "replay_mode": "none", "later_learning_rate": 0.0}
    learner = learn(make(IMAGES, **changes), [IMAGES[0]])
    next(iter(learner.learn(IMAGES[1])))
    assert not learner.top[0].training
    assert learner.head.training


def test_negative_replay_with_a_plain_head_has_no_gradient_at_old_rows() -> None:
    """A step on old patterns alone moves the rows of current classes only."""
    learner = learn(make(replay_mode="nr-od", head="plain"), [STREAM[0]])
    next(iter(learner.learn(STREAM[1])))
    old, new = list(STREAM[0].classes), list(STREAM[1].classes)
    empty = STREAM[1].train.batch(slice(0, 0))
    rows = torch.arange(learner.replay.patterns.filled)
    learner.steps._learn_latents(False, empty.images, empty.labels, rows)
    gradients = learner.head.weight.grad
    assert not gradients[old].any()
    assert gradients[new].any(1).all()


@pytest.mark.parametrize("mode", ["nr-od", "pr-gd", "nr-rd"])
@pytest.mark.parametrize("check", CONFORMANCE)
def test_unnamed_replay_modes_are_conformant(mode: str, check: str) -> None:
    CONFORMANCE[check](lambda stream: make(stream, replay_mode=mode), STREAM)


def test_kept_optimizers_are_part_of_the_state() -> None:
    assert_resumes(partial(make, replay_mode="nr-gd", reset_optimizer=False), STREAM)
    kept, reset = (learn(make(reset_optimizer=value), STREAM) for value in (False, True))
    assert not same_net(kept, reset)


def test_diagnostics_are_the_norms_of_rows_and_the_fraction_recognised() -> None:
    learner = learn(
        make(replay_mode="pr-od", learning_rate=0.05, head_learning_rate=0.05), [STREAM[0]]
    )
    found = learner.diagnostics()
    assert (
        found["new_norm"] == learner.head.consolidated[list(STREAM[0].classes)].norm(dim=1).mean()
    )
    assert found["old_norm"] == 0
    assert found["recognised"].isnan()  # nothing was replayed
    filled = slice(0, learner.replay.patterns.filled)
    latents = learner.replay.patterns.latents[filled].clone()
    correct = learner.predict(latents) == learner.replay.patterns.targets[filled]
    learn(learner, [STREAM[1]])
    assert learner.diagnostics()["recognised"] == correct.float().mean()


def test_later_learning_rates_decay_to_a_tenth() -> None:
    """Our reading of eq. 16: 1.1 at the start, 0.6 in the middle, 0.1 in the end."""
    rates = ar1.LearningRates(later_learning_rate=1.0, decay_later_learning_rates=True)
    assert rates.at(1)[0] == pytest.approx(1.0985, abs=1e-3)
    assert rates.at(10**6)[0] == pytest.approx(0.1)
    assert ar1.LearningRates(later_learning_rate=1.0).at(7)[0] == 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"replay_mode": "nr-xd"}, "unknown replay_mode 'nr-xd'; known: none, pr-od"),
        ({"head": "cwr**"}, "unknown head"),
        ({"replay_fraction": 1.5}, "replay_fraction"),
        ({"net": "nonsense"}, "unknown split net"),
    ],
)
def test_settings_out_of_range_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**changes)


@pytest.mark.parametrize("name", ["epochs", "generator_epochs"])
def test_an_online_stream_allows_one_epoch(name: str) -> None:
    stream = STREAM.with_changes(online=True)
    once = {"epochs": 1, "generator_epochs": 1}
    make(stream, **once)
    with pytest.raises(ValueError, match=f"found {name}=2; give {name}=1"):
        make(stream, **once | {name: 2})


@lru_cache
def tasks_of(scenario: str, seed: int) -> list[Task]:
    return list(Latents(seed=seed, scenario=scenario))


def toy_accuracy(scenario: str, mode: str, seed: int, **changes: Any) -> float:
    """Accuracy on all 50 classes at the end."""
    changes = (NC if scenario == "nc" else NIC) | {"replay_mode": mode} | changes
    settings = change_settings(ar1.Settings(), changes, "ar1")
    stream = Latents(seed=seed, scenario=scenario)
    learner = learn(ar1.AR1(stream, settings, "cpu"), tasks_of(scenario, seed))
    tests = [task.test.batch(slice(None)) for task in tasks_of("nc", seed)]
    correct = [learner.predict(batch.images) == batch.labels for batch in tests]
    return float(torch.cat(correct).float().mean())


def mean_of_seeds(scenario: str) -> dict[str, float]:
    modes = [mode for mode in ar1.REPLAY_MODES if mode != "nr-od"]
    return {
        mode: (toy_accuracy(scenario, mode, 0) + toy_accuracy(scenario, mode, 1)) / 2
        for mode in modes
    }


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "gain"), [("nc", 0.0), ("nic", 0.3)])
def test_generated_and_random_data_help_as_negatives_more_than_as_positives(
    scenario: str, gain: float
) -> None:
    """One class at a time (nic) needs negatives."""
    at = mean_of_seeds(scenario)
    assert at["nr-gd"] >= at["pr-gd"] + 0.05
    assert at["nr-rd"] >= at["pr-rd"] + 0.03
    assert at["pr-od"] >= at["nr-gd"]
    assert at["nr-gd"] > at["none"] + gain


@pytest.mark.slow
def test_the_best_fraction_of_random_data_is_at_most_30_percent() -> None:
    fractions = (0.0, 0.1, 0.3, 0.5)
    found = {f: toy_accuracy("nc", "nr-rd", 0, replay_fraction=f) for f in fractions}
    assert max(found, key=lambda fraction: found[fraction]) <= 0.3


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["none", "pr-gd", "nr-gd"])
def test_the_mean_of_each_row_is_better_than_that_of_all(mode: str) -> None:
    of_each, of_all = (
        toy_accuracy("nc", mode, 0, mean_shift=shift) for shift in ("per_class", "global")
    )
    assert of_each > of_all + 0.1
