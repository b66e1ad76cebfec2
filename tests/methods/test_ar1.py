"""AR1 and generative negative replay: what a step may change, what is kept, and the toy stream."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear, relu

from everlearn.checks import CHECKS
from everlearn.methods import ar1
from everlearn.methods.ar1.patterns import draw_labels, find_bound
from everlearn.presets import PRESETS
from everlearn.settings import change_settings
from everlearn.stream import Latents, Task

from .conftest import IMAGES, STREAM, learn, same_net

FEW = {"net": "mlp", "batch_size": 16, "epochs": 2, "memory": 24, "share": 0.25, "z": 8}
# Which mode is ahead depends on the rates (docs/methods/gnr.md): these are the protocol's.
NC, NIC = (PRESETS[name].settings_of("gnr") for name in ("latents-nc", "latents-nic"))


def make(stream: Any = STREAM, **changes: Any) -> ar1.AR1:
    return ar1.AR1(stream, change_settings(ar1.Settings(), FEW | changes, "ar1"), "cpu")


def digest(net: nn.Module) -> str:
    content = b"".join(tensor.numpy().tobytes() for tensor in net.state_dict().values())
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("mode", ["nr-od", "nr-gd", "nr-rd"])
def test_negative_replay_keeps_the_rows_of_old_classes(mode: str) -> None:
    """N1, in the whole loop."""
    learner = learn(make(mode=mode), [STREAM[0]])
    before = learner.head.kept.clone()
    learn(learner, [STREAM[1]])
    old = list(STREAM[0].classes)
    assert torch.equal(learner.head.kept[old], before[old])
    assert learner.head.past[old].tolist() == [40.0, 40.0]


@pytest.mark.parametrize("mode", ["pr-od", "pr-gd", "pr-rd"])
def test_positive_replay_moves_the_rows_of_old_classes(mode: str) -> None:
    learner = learn(make(mode=mode), [STREAM[0]])
    before = learner.head.kept.clone()
    learn(learner, [STREAM[1]])
    old = list(STREAM[0].classes)
    assert not torch.equal(learner.head.kept[old], before[old])
    assert learner.head.past[old].sum() == 80 + learner.patterns.filled - _kept_of(learner, old)


def _kept_of(learner: ar1.AR1, old: list[int]) -> int:
    """What came to the memory from the second task is no pattern of an old class."""
    if learner.settings.data != "od":
        return 0
    return learner.patterns.filled - 24


def test_a_step_of_one_changes_no_weight_of_the_other() -> None:
    """N7: the generator learns when the classifier has ended, and neither touches the other."""
    learner, seen = make(mode="nr-gd"), []
    assert learner.generator is not None
    steps = 2 * (40 * 2 // 16)
    for _ in learner.learn(STREAM[0]):
        seen.append((digest(learner.model.net), digest(learner.generator.net)))
    nets, generators = zip(*seen, strict=True)
    assert len(set(nets[:steps])) == steps
    assert len(set(generators[:steps])) == 1
    assert len(set(nets[steps:])) == 1
    assert len(set(generators[steps:])) == len(seen) - steps == 4 * (40 * 2 // 16)


def test_what_the_classifier_says_reaches_the_generator() -> None:
    """Pitfall 7: eta's term has slopes, and they end in the generator."""
    apart = [
        digest(learn(make(mode="nr-gd", eta=eta), [STREAM[0]]).generator.net) for eta in (0, 1)
    ]
    assert apart[0] != apart[1]


@pytest.mark.parametrize(("share", "replayed"), [(0.11, 14), (0.5, 64), (0.16, 20)])
def test_a_batch_is_always_of_one_size(share: float, replayed: int) -> None:
    """N8, with the paper's numbers."""
    settings = ar1.Settings(share=share)
    assert settings.parts(1000, 300) == (128 - replayed, replayed)
    assert settings.parts(1000, 0) == (128, 0)


def test_without_a_share_new_and_old_are_passed_once_an_epoch() -> None:
    """The rule of the AR1 codes: n_cur = N // ((N + R) // B)."""
    new, old = ar1.Settings(share=None).parts(3000, 1500)
    assert (new, old) == (3000 // (4500 // 128), 128 - 3000 // (4500 // 128))
    assert abs(3000 / new - 1500 / old) < 3


@pytest.mark.parametrize("mode", ["pr-od", "nr-gd", "pr-rd"])
def test_a_share_of_nothing_is_no_replay(mode: str) -> None:
    """No row of a class that no batch shows is loaded or kept anew."""
    none = learn(make(mode="none"), STREAM)
    for share in (0.0, 0.01):
        assert same_net(learn(make(mode=mode, share=share), STREAM), none)


@pytest.mark.parametrize(("share", "new"), [(0.99, 1000), (None, 3)])
def test_one_pattern_of_a_batch_at_least_is_new(share: float | None, new: int) -> None:
    assert ar1.Settings(share=share, batch_size=32).parts(new, 1500) == (1, 31)
    learn(make(mode="nr-gd", share=share, memory=2000, generator_share=0.99), STREAM)


def test_replayed_classes_were_met_in_earlier_experiences() -> None:
    """N8 and pitfall 8: uniform over the classes of previous experiences."""
    learner = make(mode="nr-gd", memory=600)
    for task in STREAM:
        known = set(learner.known)
        for _ in learner.learn(task):
            assert set(learner.patterns.labels.tolist()) <= known
            assert set(learner.patterns.units[: learner.patterns.filled].tolist()) <= known
    counts = np.bincount(draw_labels(0, 5, [2, 7], 10_000), minlength=8)
    assert abs(int(counts[2]) - 5000) < 200
    assert counts[2] + counts[7] == 10_000


def test_random_latents_lie_below_the_ninetieth_percentile() -> None:
    assert find_bound(torch.arange(1000.0).reshape(10, 100)).item() == 899
    learner = learn(make(mode="nr-rd", memory=200), [STREAM[0], STREAM[1]])
    images = STREAM[0].train.batch(slice(None)).images
    assert learner.bound == find_bound(images)
    held = learner.patterns.latents
    assert held.min() >= 0
    assert learner.bound * 0.99 < held.max() <= learner.bound


def plain_cwr(tasks: list[Task], rate: float, epochs: int) -> Tensor:
    """CWR* without replay in a plain loop, the upper half standing still: the kept rows."""
    learner = make(mode="none", rate=0.0, later_rate=0.0, decay=0.0)
    upper, kept = learner.top[0], torch.zeros(6, 64)
    past = torch.zeros(6)
    for task in tasks:
        rows = torch.zeros(6, 64, requires_grad=True)
        with torch.no_grad():
            for label in task.classes:
                rows[label] = kept[label]
        optimizer = torch.optim.SGD([rows], lr=rate, momentum=0.9)
        for epoch in range(epochs):
            order = task.order(epoch)
            for start in range(0, len(order) - 15, 16):
                batch = task.train.batch(order[start : start + 16])
                loss = cross_entropy(linear(upper(batch.images), rows), batch.labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        here = list(task.classes)
        rows = rows.detach() - rows.detach()[here].mean()
        for label in here:
            count = int((task.train.labels == label).sum())
            w = float((past[label] / count).sqrt())
            kept[label] = (kept[label] * w + rows[label]) / (w + 1) if past[label] else rows[label]
            past[label] += count
    return kept


def test_the_head_ends_where_a_plain_loop_ends() -> None:
    tasks = [STREAM[0], STREAM[1], STREAM[0]]
    own = {"rate": 0.0, "later_rate": 0.0, "head_rate": 0.05, "later_head_rate": 0.05, "decay": 0.0}
    learner = learn(make(mode="none", **own), tasks)
    torch.testing.assert_close(learner.head.kept, plain_cwr(tasks, 0.05, 2))


def test_synaptic_intelligence_ends_where_a_plain_loop_ends() -> None:
    """Slopes of the total loss, importances between 0 and the clip, lambda / 2."""
    own = {"rate": 0.02, "later_rate": 0.02, "head_rate": 0.02, "later_head_rate": 0.02}
    own |= {"decay": 0.0, "strength": 50.0, "clip": 0.05, "multiplier": 0.3, "head": "plain"}
    learner = learn(make(mode="none", **own), STREAM)
    start = make(mode="none", **own)
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
                slopes = [w.grad.clone() for w in body if w.grad is not None]
                optimizer.step()
                for o, g, w, b in zip(way, slopes, body, old, strict=True):
                    o += g * (w.detach() - b)
        for t, o, w, b in zip(total, way, body, begin, strict=True):
            t += 0.3 * o / ((w.detach() - b).square() + 1e-7)
        importance = [(-t).clamp(0, 0.05) for t in total]
    torch.testing.assert_close(learner.top[0].state_dict()["1.weight"], weight.detach())
    torch.testing.assert_close(learner.head.weight.detach(), rows.detach())


def test_a_frozen_net_keeps_its_bits_after_the_first_experience() -> None:
    learner = learn(make(mode="none", later_rate=0.0), [STREAM[0]])
    before = digest(learner.top[0])
    learn(learner, [STREAM[1], STREAM[2]])
    assert digest(learner.top[0]) == before


def test_a_frozen_net_with_moments_learns_the_same_whoever_asks_between_steps() -> None:
    """Its upper half normalises by what it keeps, and a test within an experience changes nothing."""
    stream = Latents(dimensions=128, classes=6, first=2, classes_per_task=2, train=5)
    kept = []
    for asked in (False, True):
        learner = learn(
            make(stream, net="convnet-pooled", mode="none", later_rate=0.0), [stream[0]]
        )
        before = digest(learner.top[0])
        for _ in learner.learn(stream[1]):
            assert not learner.top[0].training
            if asked:
                learner.predict(stream[1].test.batch(slice(0, 2)).images)
        assert digest(learner.top[0]) == before
        kept.append(learner.head.kept.clone())
    assert torch.equal(*kept)


def test_a_frozen_net_answers_alike_while_rows_are_learned_and_later() -> None:
    own = {"net": "convnet-pooled", "mode": "none", "later_rate": 0.0}
    learner = learn(make(IMAGES, **own), [IMAGES[0]])
    next(iter(learner.learn(IMAGES[1])))
    assert not learner.top[0].training
    assert learner.head.training


def test_naive_negative_replay_leaves_the_rows_of_old_classes_alone() -> None:
    """N4 in the loop: a step of old patterns alone moves current rows, and no other."""
    learner = learn(make(mode="nr-od", head="plain"), [STREAM[0]])
    next(iter(learner.learn(STREAM[1])))
    old, new = list(STREAM[0].classes), list(STREAM[1].classes)
    nothing = STREAM[1].train.batch(slice(0, 0))
    rows = torch.arange(learner.patterns.filled)
    learner._learn_latents(False, nothing.images, nothing.labels, rows)
    slopes = learner.head.weight.grad
    assert not slopes[old].any()
    assert slopes[new].any(1).all()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["nr-od", "pr-gd", "nr-rd"])
@pytest.mark.parametrize("check", CHECKS)
def test_modes_without_a_name_of_their_own_pass_the_exam(mode: str, check: str) -> None:
    CHECKS[check](lambda stream: make(stream, mode=mode), STREAM)


def test_notes_tell_the_lengths_of_rows_and_what_is_recognised() -> None:
    learner = learn(make(mode="pr-od", rate=0.05, head_rate=0.05), [STREAM[0]])
    told = learner.notes()
    assert told["new_norm"] == learner.head.kept[list(STREAM[0].classes)].norm(dim=1).mean()
    assert told["old_norm"] == 0
    assert told["recognised"].isnan()  # nothing was replayed
    kept = learner.patterns.latents[: learner.patterns.filled].clone()
    named = learner.predict(kept) == learner.patterns.units[: learner.patterns.filled]
    learn(learner, [STREAM[1]])
    assert learner.notes()["recognised"] == named.float().mean()


def test_rates_fade_from_about_one_to_a_tenth() -> None:
    """Eq. 16 in our reading: 1.1 at the start, 0.6 in the middle, 0.1 in the end."""
    rates = ar1.Rates(later_rate=1.0, fade=True)
    assert rates.at(1)[0] == pytest.approx(1.0985, abs=1e-3)
    assert rates.at(10**6)[0] == pytest.approx(0.1)
    assert ar1.Rates(later_rate=1.0).at(7)[0] == 1.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mode": "nr-xd"}, "unknown mode 'nr-xd'; known: none, pr-od"),
        ({"head": "cwr**"}, "unknown head"),
        ({"share": 1.5}, "share"),
        ({"net": "nonsense"}, "unknown net"),
    ],
)
def test_wrong_settings_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make(**changes)


@pytest.mark.parametrize("name", ["epochs", "generator_epochs"])
def test_what_may_be_seen_once_is_passed_once(name: str) -> None:
    stream = STREAM.with_changes(online=True)
    once = {"epochs": 1, "generator_epochs": 1}
    make(stream, **once)
    with pytest.raises(ValueError, match=f"found {name}=2; give {name}=1"):
        make(stream, **once | {name: 2})


@lru_cache
def tasks_of(scenario: str, seed: int) -> list[Task]:
    return list(Latents(seed=seed, scenario=scenario))


def toy(scenario: str, mode: str, seed: int, **changes: Any) -> float:
    """Accuracy on all 50 classes at the end."""
    own = (NC if scenario == "nc" else NIC) | {"mode": mode} | changes
    settings = change_settings(ar1.Settings(), own, "ar1")
    stream = Latents(seed=seed, scenario=scenario)
    learner = learn(ar1.AR1(stream, settings, "cpu"), tasks_of(scenario, seed))
    tests = [task.test.batch(slice(None)) for task in tasks_of("nc", seed)]
    right = [learner.predict(batch.images) == batch.labels for batch in tests]
    return float(torch.cat(right).float().mean())


def mean_of_seeds(scenario: str) -> dict[str, float]:
    modes = [mode for mode in ar1.MODES if mode != "nr-od"]
    return {mode: (toy(scenario, mode, 0) + toy(scenario, mode, 1)) / 2 for mode in modes}


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "gain"), [("nc", 0.0), ("nic", 0.3)])
def test_negatives_serve_where_positives_harm(scenario: str, gain: float) -> None:
    """N10; and N11: one class at a time needs negatives."""
    at = mean_of_seeds(scenario)
    assert at["nr-gd"] >= at["pr-gd"] + 0.05
    assert at["nr-rd"] >= at["pr-rd"] + 0.03
    assert at["pr-od"] >= at["nr-gd"]
    assert at["nr-gd"] > at["none"] + gain


@pytest.mark.slow
def test_random_data_serve_best_in_small_shares() -> None:
    """N14: the best share of random data is at most 30 %."""
    found = {share: toy("nc", "nr-rd", 0, share=share) for share in (0.0, 0.1, 0.3, 0.5)}
    assert max(found, key=lambda share: found[share]) <= 0.3
