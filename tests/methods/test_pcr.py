"""PCR and HPCR: a softmax over the classes of a batch, beside what was said of old images."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, mse_loss

from everlearn import Canvas, Stream
from everlearn.evaluation.costs import count_bytes
from everlearn.losses.proxy import loss_scale_at
from everlearn.memory import Reservoir, draw_replay_rows
from everlearn.methods import build
from everlearn.stream import Gaussians

from .conftest import TOY, assert_resumes, learn, same, toy_accuracy

pytestmark = pytest.mark.integration

TAU = 0.09
SMALL = TOY | {"momentum": 0.9, "batch_size": 16, "epochs": 2, "buffer_size": 20}
POINTS = Gaussians(tasks=3, classes_per_task=2, dimensions=8, train=40)
IMAGES = Stream(
    tasks=2, classes_per_task=2, values_per_factor=3, canvas=Canvas(size=16), first_class=100
)
CONVNET = {"net": "convnet-pooled", "batch_size": 32, "epochs": 2, "buffer_size": 60}
HOLISTIC = {"cosine_loss_scale": True, "alpha": 0.1, "beta": 0.5}


class Plain:
    """The definition in the words of the paper: proxies are picked one by one, images row by row."""

    def __init__(self, net: Any, wave: bool, alpha: float, beta: float) -> None:
        self.net, self.wave, self.alpha, self.beta = net, wave, alpha, beta
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        self.sampler, self.kept = Reservoir(20, POINTS.seed), dict[int, Any]()

    def learn(self, task: Any) -> list[float]:
        rows = draw_replay_rows(POINTS.seed, task.index, len(self.kept), 10, 16)
        losses = []
        for step, batch in enumerate(task.batches(16, epochs=2)):
            old = [self.kept[row] for row in rows[step]] if len(rows) else []
            loss = self.loss(batch, old, loss_scale_at(step) if self.wave else 1.0)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        batch = task.train.batch(slice(None))
        for item, slot in zip(*self.sampler.insert(task.index, batch.labels), strict=True):
            seen = self.net.features(batch.images[item][None])[0].detach()
            logits = cosine_similarity(seen, self.net.head.weight.detach()) / TAU
            self.kept[slot] = batch.images[item], batch.labels[item], seen, logits
        return losses

    def loss(self, batch: Any, old: list[Any], wave: float) -> Any:
        images = torch.stack([*batch.images, *(one[0] for one in old)])
        labels = torch.stack([*batch.labels, *(one[1] for one in old)])
        features, proxies = self.net.features(images), self.net.head.weight[labels]
        logits = cosine_similarity(features[:, None], proxies, dim=2) / TAU
        loss = -wave * logits.log_softmax(1).diagonal().mean()
        if old:
            now, then = logits[16:], torch.stack([one[3][labels] for one in old])
            loss = loss + self.alpha * mse_loss(now, then)
            loss = loss + self.beta * similarity_distance(
                features[16:], torch.stack([one[2] for one in old])
            )
        return loss


def similarity_distance(features: Tensor, stored: Tensor) -> Tensor:
    """The cross-entropy of how alike each is to the others, under how alike it was."""
    total = torch.zeros(())
    for row in range(len(features)):
        others = torch.arange(len(features)) != row
        now = cosine_similarity(features[row], features[others]) / TAU
        was = cosine_similarity(stored[row], stored[others]) / TAU
        total = total - (was.softmax(0) * now.log_softmax(0)).sum()
    return total / len(features)


@pytest.mark.parametrize(
    ("name", "wave", "alpha", "beta"),
    [
        ("pcr", False, 0.0, 0.0),
        ("pcr", True, 0.0, 0.0),
        ("pcr", False, 0.3, 0.0),
        ("pcr", False, 0.0, 0.5),
        ("hpcr", True, 0.1, 0.5),
    ],
)
def test_matches_a_plain_loop(name: str, wave: bool, alpha: float, beta: float) -> None:
    changes = {"cosine_loss_scale": wave, "alpha": alpha, "beta": beta} if name == "pcr" else {}
    learner: Any = build(name, POINTS, "cpu", **SMALL, **changes)
    plain = Plain(deepcopy(learner.trainer.net), wave, alpha, beta)
    for task in POINTS:
        losses = [float(loss) for loss in learner.learn(task)]
        np.testing.assert_allclose(losses, plain.learn(task), rtol=1e-4)
    for one, two in zip(learner.trainer.weights, plain.net.parameters(), strict=True):
        torch.testing.assert_close(one, two, atol=1e-5, rtol=1e-4)


def test_stores_the_outputs_of_the_net_after_the_task() -> None:
    learner: Any = build("hpcr", IMAGES, "cpu", **CONVNET)
    rows, first = torch.arange(60), outputs_after(learner, 0)
    before = learner.buffer.logits(rows)
    torch.testing.assert_close(before, first)
    second = outputs_after(learner, 1)
    now, new = learner.buffer.logits(rows), learner.buffer.targets(rows) >= 2
    assert 0 < new.sum() < 60
    torch.testing.assert_close(now[new], second[new])
    assert torch.equal(now[~new], before[~new])


def outputs_after(learner: Any, index: int) -> Tensor:
    """Features and logits of all that is kept once a task has been learned, by the kept moments."""
    learn(learner, [IMAGES[index]])
    net = deepcopy(learner.trainer.net).eval()
    with torch.no_grad():
        features = net.features(learner.buffer.images(torch.arange(60)))
    logits = cosine_similarity(features[:, None], net.head.weight.detach(), dim=2) / TAU
    return torch.cat([features, logits], 1)


@pytest.mark.parametrize("name", ["pcr", "hpcr"])
def test_predicts_the_nearest_proxy_of_seen_classes(name: str) -> None:
    learner: Any = build(name, IMAGES, "cpu", **CONVNET)
    images = IMAGES[0].test.batch(slice(None)).images
    assert (learner.predict(images) == -1).all()
    learn(learner, [IMAGES[0]])
    net = deepcopy(learner.trainer.net).eval()
    cosines = cosine_similarity(net.features(images)[:, None], net.head.weight, dim=2)
    assert torch.equal(learner.predict(images), 100 + cosines[:, :2].argmax(1))
    assert torch.equal(learner.predict(images, [101, 103]), 101 + 2 * cosines[:, 1::2].argmax(1))


def test_predictions_ignore_proxy_lengths_and_biases() -> None:
    learner: Any = learn(build("pcr", POINTS, "cpu", **SMALL), POINTS)
    images, head = POINTS[0].test.batch(slice(None)).images, learner.trainer.net.head
    answers = learner.predict(images)
    assert {0, 1} <= set(answers.tolist())
    with torch.no_grad():
        head.weight[::2] *= 100.0
        head.bias[1] += 1e3
    assert torch.equal(learner.predict(images), answers)


def test_proxies_of_classes_outside_the_batch_do_not_move() -> None:
    learner: Any = build("pcr", POINTS, "cpu", **SMALL)
    before = learner.trainer.net.head.weight.detach().clone()
    learn(learner, [POINTS[0]])
    same = (learner.trainer.net.head.weight == before).all(1)
    assert same.tolist() == [False, False, True, True, True, True]


@pytest.mark.parametrize(("changes", "numbers"), [({}, 0), (HOLISTIC, 64 + 6)])
def test_buffer_never_exceeds_its_size(changes: dict[str, Any], numbers: int) -> None:
    learner: Any = build("pcr", POINTS, "cpu", **SMALL | {"buffer_size": 90}, **changes)
    for number, task in enumerate(POINTS):
        learn(learner, [task])
        held = min(90, 80 * (number + 1))
        assert learner.buffer.filled == len(learner.sampler.used) == held
        # A point of 8 numbers, its class, and what was said of it.
        assert count_bytes(learner.state()["memory"]) == held * (8 * 4 + 8 + 4 * numbers)


def test_resumes_bit_for_bit() -> None:
    whole, second = assert_resumes(partial(build, "hpcr", POINTS, "cpu", **SMALL), POINTS)
    assert same(whole.state()["memory"].values(), second.state()["memory"].values())


def test_a_single_replayed_image_gives_finite_losses() -> None:
    learner: Any = build("hpcr", POINTS, "cpu", **SMALL | {"batch_size": 1, "epochs": 1})
    learn(learner, [POINTS[0]])
    assert all(loss.isfinite() for loss in learner.learn(POINTS[1]))


def test_learns_returning_classes() -> None:
    learner: Any = build("hpcr", IMAGES.with_changes(scenario="domain"), "cpu", **CONVNET)
    for task in IMAGES.with_changes(scenario="domain"):
        assert all(loss.isfinite() for loss in learner.learn(task))


@pytest.mark.parametrize(
    ("name", "value"), [("buffer_size", 0), ("temperature", 0), ("alpha", -1), ("beta", -1)]
)
def test_settings_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must"):
        build("pcr", POINTS, "cpu", **{name: value})


@pytest.mark.integration
@pytest.mark.parametrize("name", ["pcr", "hpcr"])
def test_remembers_the_toy_stream_better_than_plain_replay(name: str) -> None:
    own, replay = (
        toy_accuracy(partial(build, one, device="cpu", **TOY, buffer_size=50))
        for one in (name, "er")
    )
    assert own > replay + 0.05


def test_hpcr_refuses_an_online_stream() -> None:
    with pytest.raises(ValueError, match="online"):
        build("hpcr", Gaussians(online=True), "cpu", net="mlp", epochs=1)
