"""DER replays old images with their old logits; without its terms it equals fine-tuning."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, mse_loss

from everlearn.core.settings import change_settings
from everlearn.losses.distillation import NOT_STORED
from everlearn.memory import Reservoir, draw_replay_rows
from everlearn.methods import build
from everlearn.methods.der import DER, Settings
from everlearn.nets.precision import eval_mode
from everlearn.stream import Gaussians
from everlearn.training.refresh import Refresh

from .conftest import (
    IMAGES,
    TOY,
    assert_first_task_is_fine_tuning,
    assert_resumes,
    learn,
    same_net,
    toy_accuracy,
)

SCHEDULE = {**TOY, "batch_size": 16, "epochs": 2}
POINTS = Gaussians(seed=1, tasks=3, train=21, test=5)
STREAMS = [(POINTS, SCHEDULE), (IMAGES, {"net": "convnet-pooled", "batch_size": 32, "epochs": 2})]
PLUS = {"beta": 0.5, "buffer_size": 40}


def make(stream: Any, **changes: Any) -> DER:
    return DER(stream, change_settings(Settings(), changes, "der"), "cpu")


@pytest.mark.integration
@pytest.mark.parametrize(("stream", "schedule"), STREAMS)
def test_without_its_terms_equals_fine_tuning(stream: Any, schedule: dict[str, Any]) -> None:
    plain = learn(build("fine-tuning", stream, "cpu", **schedule), stream)
    assert same_net(learn(make(stream, **schedule, alpha=0.0, beta=0.0), stream), plain)


@pytest.mark.parametrize(("stream", "schedule"), STREAMS)
def test_first_task_equals_fine_tuning(stream: Any, schedule: dict[str, Any]) -> None:
    assert_first_task_is_fine_tuning(make(stream, **schedule, **PLUS), stream, schedule)


class PlainDER:
    """Algorithm 1 item by item, with a memory of Python's.

    The softmax and the distance to logits are over the first classes: those seen in the softmax, and those
    seen when the logits were stored in the distance.
    """

    def __init__(
        self, net: torch.nn.Module, alpha: float, beta: float, memory: int, all_known: bool
    ) -> None:
        self.net, self.alpha, self.beta = net, alpha, beta
        self.known = 12 if all_known else 0
        self.memory: list[Any] = [None] * memory
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        self.sampler = Reservoir(memory, POINTS.seed)

    def learn(self, index: int) -> None:
        steps, size, most = 2 * (84 // 16), 16, len(self.memory)
        slots, before = self.sampler.slots(index, 80), self.sampler.seen
        self.known = max(self.known, 4 * (index + 1))
        for step, batch in enumerate(POINTS[index].batches(size, 2, drop_last=True)):
            outputs = self.net(batch.images)[:, : self.known]
            loss = cross_entropy(outputs, batch.labels)
            if before:
                held = np.minimum(before + np.minimum(np.arange(steps) * size, 80), most)
                draws = [
                    draw_replay_rows(1, index, held, steps, size, lane)[step] for lane in (0, 1)
                ]
                loss = loss + self.recall(*draws)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            for item in range(size if step < steps // 2 else 0):
                if slots[size * step + item] < most:
                    kept = batch.images[item], batch.labels[item], outputs[item].detach()
                    self.memory[slots[size * step + item]] = kept
        self.sampler.seen += 80

    def recall(self, first: Any, second: Any) -> Any:
        loss: Any = 0.0
        for image, _, logits in (self.memory[row] for row in first):
            found = self.net(image[None])[0, : len(logits)]
            loss = loss + self.alpha * mse_loss(found, logits) / len(first)
        images, targets = (
            torch.stack([self.memory[row][kind] for row in second]) for kind in range(2)
        )
        return loss + self.beta * cross_entropy(self.net(images)[:, : self.known], targets)


@pytest.mark.parametrize("include_unseen", [False, True])
@pytest.mark.parametrize(
    ("alpha", "beta", "memory"), [(0.3, 0.0, 40), (0.0, 1.0, 40), (0.3, 0.5, 200)]
)
def test_matches_a_plain_loop(alpha: float, beta: float, memory: int, include_unseen: bool) -> None:
    changes = {**SCHEDULE, "momentum": 0.9, "alpha": alpha, "beta": beta, "buffer_size": memory}
    changes["include_unseen"] = include_unseen
    plain = PlainDER(make(POINTS, **changes).trainer.net, alpha, beta, memory, include_unseen)
    learner = make(POINTS, **changes)
    for task in POINTS:
        plain.learn(task.index)
        learn(learner, [task])
        for one, two in zip(learner.trainer.weights, plain.net.parameters(), strict=True):
            torch.testing.assert_close(one, two, atol=1e-4, rtol=1e-3)
    kept = learner.state()["memory"]
    for row, (image, unit, logits) in enumerate(plain.memory):
        assert torch.equal(kept["images"][row], image)
        assert kept["targets"][row] == unit
        known = kept["logits"][row][: len(logits)]
        torch.testing.assert_close(known, logits.float(), atol=1e-3, rtol=1e-3)
        assert (kept["logits"][row][len(logits) :] == NOT_STORED).all()


def test_stores_logits_of_the_first_sight() -> None:
    learner = make(POINTS, **{**SCHEDULE, "epochs": 3, "learning_rate": 0.1}, buffer_size=200)
    steps = learner.learn(POINTS[0])
    next(steps)
    rows = torch.arange(16)
    first = make(POINTS, **SCHEDULE).trainer.logits(learner.buffer.images(rows))
    for _ in steps:
        pass
    assert torch.equal(learner.buffer.logits(rows), first.float())
    assert not torch.allclose(learner.trainer.logits(learner.buffer.images(rows)), first, atol=0.1)


def test_last_image_of_a_batch_wins_its_slot() -> None:
    learner = make(POINTS, **SCHEDULE, buffer_size=3)
    wanted = learner.sampler.slots(0, 80).reshape(5, 16)
    for found, places in zip(learner._find_slots(POINTS[0], 80, 16).tolist(), wanted, strict=True):
        last = {slot: item for item, slot in enumerate(places.tolist()) if slot < 3}
        assert {slot: item for item, slot in enumerate(found) if slot < 3} == last
        assert sum(slot < 3 for slot in found) == len(last)


@pytest.mark.parametrize("memory", [7, 40, 10**3])
def test_buffer_never_exceeds_its_size(memory: int) -> None:
    learner = make(POINTS, **SCHEDULE, buffer_size=memory)
    for number, task in enumerate(POINTS):
        learn(learner, [task])
        kept = learner.state()["memory"]
        assert {len(part) for part in kept.values()} == {min(memory, 80 * (number + 1))}
        seen = {unit for other in POINTS for unit in other.classes if other.index <= number}
        assert set(kept["targets"].tolist()) <= seen


def test_learns_an_online_stream() -> None:
    stream = Gaussians(seed=1, tasks=3, train=21, test=5, online=True)
    learner = learn(make(stream, **{**SCHEDULE, "epochs": 1}, **PLUS), stream)
    assert learner.sampler.seen == 3 * 80
    assert learner.batch_size == 3 * 16


@pytest.mark.parametrize("refresh", [0.0, 1e-2])
def test_resumes_bit_for_bit(refresh: float) -> None:
    whole, second = assert_resumes(
        partial(make, POINTS, **SCHEDULE, **PLUS, refresh=refresh), POINTS
    )
    for name, part in whole.state()["memory"].items():
        assert torch.equal(part, second.state()["memory"][name])


@pytest.mark.integration
def test_refresh_of_zero_changes_nothing() -> None:
    schedule = {**STREAMS[1][1], "epochs": 1}
    plain, refreshed = make(IMAGES, **schedule, **PLUS), make(IMAGES, **schedule, **PLUS)
    refreshed.refresh = Refresh(refreshed.trainer.weights, 0.0)
    assert same_net(learn(refreshed, IMAGES), learn(plain, IMAGES))


def test_refresh_unlearns_the_batch_before_the_step() -> None:
    refreshed, plain = (
        make(POINTS, **SCHEDULE, refresh=0.01),
        build("fine-tuning", POINTS, "cpu", **SCHEDULE),
    )
    batch = next(POINTS[0].batches(16))
    trainer: Any = plain
    weights = trainer.trainer.weights
    gradients = torch.autograd.grad(
        cross_entropy(trainer.trainer.net(batch.images), batch.labels), weights
    )
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight += 0.01 * weight.norm() / gradient.norm() * gradient
    next(iter(refreshed.learn(POINTS[0])))
    next(iter(plain.learn(POINTS[0])))
    for one, two in zip(refreshed.trainer.weights, weights, strict=True):
        torch.testing.assert_close(one, two)


def test_restoring_the_tensors_of_a_step_undoes_it() -> None:
    learner = learn(make(POINTS, **SCHEDULE, **PLUS, refresh=0.01), [POINTS[0]])
    changing = learner._step._state
    before, kept = tensors(learner), [tensor.clone() for tensor in changing]
    next(iter(learner.learn(POINTS[1])))
    changed = tensors(learner)
    assert not any(torch.equal(before[name], changed[name]) for name in before)
    with torch.no_grad():
        torch._foreach_copy_(changing, kept)
    after = tensors(learner)
    assert all(torch.equal(before[name], after[name]) for name in before)


def tensors(learner: DER) -> dict[str, torch.Tensor]:
    """All that a step works on, each kind as one copied vector."""
    state, refresh = learner.state(), learner.refresh
    noted = refresh.squared_gradients if refresh else []
    kinds = {"net": state["net"].values(), "optimizer": state["optimizer"], "noted": noted}
    kinds |= {name: [part] for name, part in state["memory"].items()}
    return {name: torch.cat([part.flatten() for part in kind]) for name, kind in kinds.items()}


@pytest.mark.integration
@pytest.mark.parametrize(("beta", "least"), [(0.0, 0.70), (0.5, 0.87)])
def test_remembers_the_toy_stream(beta: float, least: float) -> None:
    assert toy_accuracy(partial(make, **TOY, beta=beta, buffer_size=200)) >= least


@pytest.mark.parametrize("name", ["alpha", "beta", "refresh"])
def test_negative_weights_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} must lie in 0"):
        make(POINTS, **{name: -0.1})


def test_logits_stored_at_task_end_are_those_of_the_trained_net() -> None:
    learner = make(
        IMAGES,
        net="convnet-pooled",
        batch_size=32,
        epochs=1,
        buffer_size=10,
        store_at_task_end=True,
    )
    for index in range(2):
        learn(learner, [IMAGES[index]])
        rows = torch.arange(10)
        mine = torch.isin(learner.buffer.targets(rows), torch.tensor(IMAGES[index].classes))
        with eval_mode(learner.trainer.net):
            said = learner.trainer.logits(learner.buffer.images(rows[mine]))
        assert mine.any()
        known = 2 * (index + 1)
        stored = learner.buffer.logits(rows[mine])
        torch.testing.assert_close(stored[:, :known], said[:, :known].float())
        assert (stored[:, known:] == NOT_STORED).all()


def test_storing_at_task_end_follows_the_reservoir() -> None:
    learner = make(POINTS, **SCHEDULE, buffer_size=30, store_at_task_end=True)
    sampler = Reservoir(30, POINTS.seed)
    targets = torch.zeros(30, dtype=torch.int64)
    for task in POINTS:
        learn(learner, [task])
        items, slots = sampler.insert(task.index, task.train.labels)
        targets[torch.from_numpy(slots)] = torch.from_numpy(task.train.labels[items])
    assert torch.equal(learner.buffer.targets(torch.arange(30)), targets)
    assert learner.buffer.filled == 30


def test_storing_at_task_end_refuses_an_online_stream() -> None:
    with pytest.raises(ValueError, match="online"):
        make(POINTS.with_changes(online=True), **{**SCHEDULE, "epochs": 1}, store_at_task_end=True)


def test_a_balanced_buffer_keeps_equally_many_images_of_every_class() -> None:
    learner = make(POINTS, **SCHEDULE, **PLUS, store_at_task_end=True, balanced=True)
    for number, task in enumerate(POINTS):
        learn(learner, [task])
        stored = learner.buffer.targets(torch.from_numpy(learner.sampler.used))
        counts = torch.bincount(stored, minlength=12)[: 4 * (number + 1)]
        assert counts.max() - counts.min() <= 1
        assert counts.sum() == 40


def test_a_balanced_buffer_replays_occupied_slots_and_resumes() -> None:
    settings = {**SCHEDULE, **PLUS, "store_at_task_end": True, "balanced": True}
    whole, _ = assert_resumes(partial(make, POINTS, **settings), POINTS)
    state = whole.sampler.state()
    state["labels"][[0, 7]] = -1  # two slots are free
    whole.sampler.load_state(state)
    drawn = whole._draw_replay(POINTS[2], steps=50, count=0, new=16)
    assert set(drawn.flatten().tolist()) == set(range(40)) - {0, 7}


def test_a_balanced_buffer_needs_storing_at_task_end() -> None:
    with pytest.raises(ValueError, match="give store_at_task_end=True"):
        make(POINTS, balanced=True)
