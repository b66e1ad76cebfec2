"""Elastic weight consolidation: a plain loop that keeps every task's weights does the same."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax

from everlearn import Canvas, Stream
from everlearn.core.settings import change_settings
from everlearn.methods import ewc
from everlearn.nets import build_classifier
from everlearn.training import fisher

from .conftest import (
    STREAM,
    TOY,
    TRAIN,
    assert_first_task_is_fine_tuning,
    assert_no_penalty,
    assert_resumes,
    learn,
    same,
    same_net,
    toy_accuracy,
    weights,
)

PICTURES = Stream(
    seed=1, tasks=2, classes_per_task=2, values_per_factor=2, canvas=Canvas(size=16),
    split=(0.9, 0.05, 0.05),
)  # fmt: skip


def make(stream: Any = STREAM, **changes: Any) -> ewc.EWC:
    return ewc.EWC(stream, change_settings(ewc.Settings(), TRAIN | changes, "ewc"), "cpu")


def measure(net: Any, own: list[Tensor], task: Any, samples: int, labels: str) -> list[Tensor]:
    """The Fisher information, image by image."""
    batch, uniforms = fisher.draw_samples(task, samples, "cpu")
    drawn = fisher.sample_labels(net(batch.images).detach(), uniforms)
    found = [torch.zeros_like(w) for w in own]
    for image, unit in zip(
        batch.images, drawn if labels == "sampled" else batch.labels, strict=True
    ):
        gradients = torch.autograd.grad(log_softmax(net(image[None]), 1)[0, unit], own)
        for total, gradient in zip(found, gradients, strict=True):
            total += gradient.square() / len(batch.labels)
    return found


def plain_loop(strength: float, decay: float | None, samples: int, labels: str) -> list[Tensor]:
    """Every task's weights are kept; nothing is put together."""
    net = build_classifier("mlp", 8, 6, 1, STREAM.seed)
    own = list(net.parameters())
    optimizer = torch.optim.Adam(own, lr=0.01)
    terms: list[tuple[list[Tensor], list[Tensor]]] = []
    for task in STREAM:
        for batch in task.batches(16, 2):
            loss = cross_entropy(net(batch.images), batch.labels)
            for importance, old in terms:
                parts = zip(importance, own, old, strict=True)
                loss = loss + strength * sum((f * (w - o).square()).sum() for f, w, o in parts)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        new, here = measure(net, own, task, samples, labels), [w.detach().clone() for w in own]
        if decay is None:
            terms.append((new, here))
        else:
            last = terms[0][0] if terms else [torch.zeros_like(w) for w in own]
            terms = [([decay * a + b for a, b in zip(last, new, strict=True)], here)]
    return [w.detach() for w in own]


@pytest.mark.parametrize(("decay", "labels"), [(None, "sampled"), (0.9, "sampled"), (None, "true")])
def test_matches_a_plain_loop(decay: float | None, labels: str) -> None:
    learner = learn(
        make(strength=100.0, decay=decay, fisher_labels=labels, fisher_samples=30), STREAM
    )
    plain = plain_loop(100.0, decay, 30, labels)
    for one, two in zip(weights(learner), plain, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("decay", [None, 0.9])
def test_penalty_is_zero_right_after_a_task(decay: float | None) -> None:
    learner = learn(make(decay=decay), [STREAM[0]])
    assert learner.penalty.importance.flat.any()
    assert_no_penalty(learner)


@pytest.mark.parametrize("decay", [None, 0.9])
def test_first_task_equals_fine_tuning(decay: float | None) -> None:
    assert_first_task_is_fine_tuning(make(strength=100.0, decay=decay), STREAM, TRAIN)


@pytest.mark.parametrize("decay", [None, 0.9])
def test_resumes_bit_for_bit(decay: float | None) -> None:
    whole, second = assert_resumes(partial(make, decay=decay), STREAM)
    assert same(second.state()["penalty"].values(), whole.state()["penalty"].values())


def test_penalizes_convolutions_and_resumes() -> None:
    changes = {"net": "convnet-pooled", "fisher_samples": 20, "strength": 100.0}
    first, second = learn(make(PICTURES, **changes), [PICTURES[0]]), make(PICTURES, **changes)
    second.load_state(first.state())
    assert all(part.any() for part in first.penalty.importance.views)
    whole = learn(make(PICTURES, **changes), PICTURES)
    assert same_net(learn(second, [PICTURES[1]]), whole)


def test_state_does_not_grow_with_tasks() -> None:
    sizes = [
        sum(part.numel() for part in learn(make(), tasks).state()["penalty"].values())
        for tasks in ([STREAM[0]], STREAM)
    ]
    assert sizes[0] == sizes[1]


def test_unseen_classes_have_no_fisher_information() -> None:
    learner = learn(make(include_unseen=False), [STREAM[0]])
    head = learner.penalty.importance.views[-1]  # biases of the outputs
    assert head[:2].all()
    assert not head[2:].any()


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown fisher_labels 'best'; known: sampled, true"):
        make(fisher_labels="best")
    with pytest.raises(ValueError, match="decay must lie in"):
        make(decay=1.5)
    with pytest.raises(ValueError, match="fisher_samples must lie in"):
        make(fisher_samples=0)


@pytest.mark.integration
def test_a_weak_penalty_forgets_the_toy_stream() -> None:
    assert toy_accuracy(partial(make, **TOY, decay=0.9), range(3)) <= 0.30
