"""DER answers old images as when they were new; without its terms it is fine-tuning, bit by bit."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, mse_loss

from everlearn.memory import Reservoir, draw_rows
from everlearn.methods import build
from everlearn.methods.der import DER, Settings
from everlearn.nets import fast
from everlearn.nets.refresh import Refresh
from everlearn.settings import change_settings
from everlearn.stream import Gaussians

from .conftest import IMAGES, TOY, assert_goes_on, assert_plain_first, learn, same_net, toy_accuracy

PACE = {**TOY, "batch_size": 16, "epochs": 2}
POINTS = Gaussians(seed=1, tasks=3, train=21, test=5)
STREAMS = [(POINTS, PACE), (IMAGES, {"net": "convnet-pooled", "batch_size": 32, "epochs": 2})]
PLUS = {"beta": 0.5, "memory": 40}


def make(stream: Any, **changes: Any) -> DER:
    return DER(stream, change_settings(Settings(), changes, "der"), "cpu")


@pytest.mark.slow
@pytest.mark.parametrize(("stream", "pace"), STREAMS)
def test_b7_without_its_terms_it_is_fine_tuning(stream: Any, pace: dict[str, Any]) -> None:
    plain = learn(build("fine-tuning", stream, "cpu", **pace), stream)
    assert same_net(learn(make(stream, **pace, alpha=0.0, beta=0.0), stream), plain)


@pytest.mark.parametrize(("stream", "pace"), STREAMS)
def test_b14_the_first_task_is_fine_tuning(stream: Any, pace: dict[str, Any]) -> None:
    assert_plain_first(make(stream, **pace, **PLUS), stream, pace)


class PlainDER:
    """Algorithm 1 item by item, with a memory of Python's."""

    def __init__(self, net: torch.nn.Module, alpha: float, beta: float, memory: int) -> None:
        self.net, self.alpha, self.beta = net, alpha, beta
        self.memory: list[Any] = [None] * memory
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        self.choice = Reservoir(memory, POINTS.seed)

    def learn(self, index: int) -> None:
        steps, size, most = 2 * (84 // 16), 16, len(self.memory)
        slots, before = self.choice.slots(index, 80), self.choice.seen
        for step, batch in enumerate(POINTS[index].batches(size, 2, drop_last=True)):
            outputs = self.net(batch.images)
            loss = cross_entropy(outputs, batch.labels)
            if before:
                held = np.minimum(before + np.minimum(np.arange(steps) * size, 80), most)
                draws = [draw_rows(1, index, held, steps, size, lane)[step] for lane in (0, 1)]
                loss = loss + self.recall(*draws)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            for item in range(size if step < steps // 2 else 0):
                if slots[size * step + item] < most:
                    kept = batch.images[item], batch.labels[item], outputs[item].detach()
                    self.memory[slots[size * step + item]] = kept
        self.choice.seen += 80

    def recall(self, first: Any, second: Any) -> Any:
        images, _, logits = self.take(first)
        loss = self.alpha * mse_loss(self.net(images), logits)
        images, units, _ = self.take(second)
        return loss + self.beta * cross_entropy(self.net(images), units)

    def take(self, rows: Any) -> list[torch.Tensor]:
        return [torch.stack([self.memory[row][kind] for row in rows]) for kind in range(3)]


@pytest.mark.parametrize(
    ("alpha", "beta", "memory"), [(0.3, 0.0, 40), (0.0, 1.0, 40), (0.3, 0.5, 200)]
)
def test_b8_it_is_a_plain_loop_over_items(alpha: float, beta: float, memory: int) -> None:
    changes = {**PACE, "momentum": 0.9, "alpha": alpha, "beta": beta, "memory": memory}
    plain = PlainDER(make(POINTS, **changes).student.net, alpha, beta, memory)
    learner = make(POINTS, **changes)
    for task in POINTS:
        plain.learn(task.index)
        learn(learner, [task])
        for one, two in zip(learner.student.weights, plain.net.parameters(), strict=True):
            torch.testing.assert_close(one, two, atol=1e-4, rtol=1e-3)
    kept = learner.state()["memory"]
    for row, (image, unit, logits) in enumerate(plain.memory):
        assert torch.equal(kept["images"][row], image)
        assert kept["units"][row] == unit
        torch.testing.assert_close(kept["logits"][row], logits, atol=1e-3, rtol=1e-3)


def test_logits_are_kept_as_they_were_when_first_seen() -> None:
    learner = make(POINTS, **{**PACE, "epochs": 3, "rate": 0.1}, memory=200)
    steps = learner.learn(POINTS[0])
    next(steps)
    rows = torch.arange(16)
    first = make(POINTS, **PACE).student.logits(learner.buffer.images(rows))
    for _ in steps:
        pass
    assert torch.equal(learner.buffer.logits(rows), first)
    assert not torch.allclose(learner.student.logits(learner.buffer.images(rows)), first, atol=0.1)


def test_of_the_images_of_a_batch_in_one_slot_the_last_stays() -> None:
    learner = make(POINTS, **PACE, memory=3)
    wanted = learner.choice.slots(0, 80).reshape(5, 16)
    for found, places in zip(learner._find_slots(POINTS[0], 80, 16).tolist(), wanted, strict=True):
        last = {slot: item for item, slot in enumerate(places.tolist()) if slot < 3}
        assert {slot: item for item, slot in enumerate(found) if slot < 3} == last
        assert sum(slot < 3 for slot in found) == len(last)


@pytest.mark.parametrize("memory", [7, 40, 10**3])
def test_b18_the_buffer_never_exceeds_its_size(memory: int) -> None:
    learner = make(POINTS, **PACE, memory=memory)
    for number, task in enumerate(POINTS):
        learn(learner, [task])
        kept = learner.state()["memory"]
        assert {len(part) for part in kept.values()} == {min(memory, 80 * (number + 1))}
        met = {unit for other in POINTS for unit in other.classes if other.index <= number}
        assert set(kept["units"].tolist()) <= met


def test_an_online_stream_is_learned_in_one_pass() -> None:
    stream = Gaussians(seed=1, tasks=3, train=21, test=5, online=True)
    learner = learn(make(stream, **{**PACE, "epochs": 1}, **PLUS), stream)
    assert learner.choice.seen == 3 * 80
    assert learner.batch_size == 3 * 16


@pytest.mark.parametrize("refresh", [0.0, 1e-2])
def test_a_loaded_state_goes_on_to_the_same_bits(refresh: float) -> None:
    whole, second = assert_goes_on(partial(make, POINTS, **PACE, **PLUS, refresh=refresh), POINTS)
    for name, part in whole.state()["memory"].items():
        assert torch.equal(part, second.state()["memory"][name])


@pytest.mark.slow
def test_b17_to_refresh_by_nothing_is_to_leave_it() -> None:
    pace = {**STREAMS[1][1], "epochs": 1}
    plain, refreshed = make(IMAGES, **pace, **PLUS), make(IMAGES, **pace, **PLUS)
    refreshed.refresh = Refresh(refreshed.student.weights, 0.0)
    assert same_net(learn(refreshed, IMAGES), learn(plain, IMAGES))


def test_a_refreshed_step_unlearns_its_batch_first() -> None:
    refreshed, plain = (
        make(POINTS, **PACE, refresh=0.01),
        build("fine-tuning", POINTS, "cpu", **PACE),
    )
    batch = next(POINTS[0].batches(16))
    student: Any = plain
    weights = student.student.weights
    slopes = torch.autograd.grad(
        cross_entropy(student.student.net(batch.images), batch.labels), weights
    )
    with torch.no_grad():
        for weight, slope in zip(weights, slopes, strict=True):
            weight += 0.01 * weight.norm() / slope.norm() * slope
    next(iter(refreshed.learn(POINTS[0])))
    next(iter(plain.learn(POINTS[0])))
    for one, two in zip(refreshed.student.weights, weights, strict=True):
        torch.testing.assert_close(one, two)


def test_putting_back_what_a_step_names_undoes_it() -> None:
    learner = learn(make(POINTS, **PACE, **PLUS, refresh=0.01), [POINTS[0]])
    named = learner._step._changed
    before, kept = tensors(learner), [one.clone() for one in named]
    next(iter(learner.learn(POINTS[1])))
    changed = tensors(learner)
    assert not any(torch.equal(before[name], changed[name]) for name in before)
    with torch.no_grad():
        torch._foreach_copy_(named, kept)
    after = tensors(learner)
    assert all(torch.equal(before[name], after[name]) for name in before)


def tensors(learner: DER) -> dict[str, torch.Tensor]:
    """All that a step works on, each kind as one copied vector."""
    state, refresh = learner.state(), learner.refresh
    noted = refresh.changed if refresh else []
    kinds = {"net": state["net"].values(), "optimizer": state["optimizer"], "noted": noted}
    kinds |= {name: [part] for name, part in state["memory"].items()}
    return {name: torch.cat([part.flatten() for part in kind]) for name, kind in kinds.items()}


@pytest.mark.slow
@pytest.mark.parametrize(("beta", "least"), [(0.0, 0.70), (0.5, 0.87)])
def test_b12_der_remembers_points(beta: float, least: float) -> None:
    assert toy_accuracy(partial(make, **TOY, beta=beta, memory=200)) >= least


@pytest.mark.parametrize("name", ["alpha", "beta", "refresh"])
def test_negative_weights_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} must lie in 0"):
        make(POINTS, **{name: -0.1})


def test_late_logits_are_those_of_when_the_task_ends() -> None:
    learner = make(IMAGES, net="convnet-pooled", batch_size=32, epochs=1, memory=10, late=True)
    for index in range(2):
        learn(learner, [IMAGES[index]])
        rows = torch.arange(10)
        mine = torch.isin(learner.buffer.units(rows), torch.tensor(IMAGES[index].classes))
        with fast.evaluating(learner.student.net):
            said = learner.student.logits(learner.buffer.images(rows[mine]))
        assert mine.any()
        torch.testing.assert_close(learner.buffer.logits(rows[mine]), said)


def test_what_is_kept_late_is_what_a_reservoir_admits() -> None:
    learner, choice = make(POINTS, **PACE, memory=30, late=True), Reservoir(30, POINTS.seed)
    units = torch.zeros(30, dtype=torch.int64)
    for task in POINTS:
        learn(learner, [task])
        items, slots = choice.admit(task.index, task.train.labels)
        units[torch.from_numpy(slots)] = torch.from_numpy(task.train.labels[items])
    assert torch.equal(learner.buffer.units(torch.arange(30)), units)
    assert learner.buffer.filled == 30


def test_what_an_online_stream_forbids_is_refused() -> None:
    with pytest.raises(ValueError, match="online"):
        make(POINTS.with_changes(online=True), **{**PACE, "epochs": 1}, late=True)
