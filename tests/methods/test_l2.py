"""L2 to the last weights: a plain loop with the penalty in its loss does the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from everlearn.core.settings import change_settings
from everlearn.methods import l2
from everlearn.nets import build_classifier

from .conftest import (
    STREAM,
    TRAIN,
    assert_first_task_is_fine_tuning,
    assert_no_penalty,
    assert_resumes,
    learn,
    weights,
)


def make(**changes: Any) -> l2.L2:
    return l2.L2(STREAM, change_settings(l2.Settings(), TRAIN | changes, "l2"), "cpu")


def plain_loop(strength: float) -> list[torch.Tensor]:
    net = build_classifier("mlp", 8, 6, 1, STREAM.seed)
    own = list(net.parameters())
    optimizer, old = torch.optim.Adam(own, lr=0.01), None
    for task in STREAM:
        for batch in task.batches(16, 2):
            loss = cross_entropy(net(batch.images), batch.labels)
            if old is not None:
                far = sum((w - o).square().sum() for w, o in zip(own, old, strict=True))
                loss = loss + strength * far
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        old = [weight.detach().clone() for weight in own]
    return [weight.detach() for weight in own]


def test_matches_a_plain_loop() -> None:
    for one, two in zip(weights(learn(make(strength=2.0), STREAM)), plain_loop(2.0), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-5)


def test_penalty_is_zero_right_after_a_task() -> None:
    assert_no_penalty(learn(make(), [STREAM[0]]))


def test_first_task_equals_fine_tuning() -> None:
    assert_first_task_is_fine_tuning(make(strength=100.0), STREAM, TRAIN)


def test_a_stronger_penalty_keeps_weights_nearer() -> None:
    start, moves = weights(learn(make(), [STREAM[0]])), []
    for strength in (0.0, 1.0, 100.0):
        end = weights(learn(make(strength=strength), [STREAM[0], STREAM[1]]))
        moves.append(sum(float((a - b).square().sum()) for a, b in zip(start, end, strict=True)))
    assert moves[0] > 2 * moves[1] > 4 * moves[2]


def test_resumes_bit_for_bit() -> None:
    assert_resumes(make, STREAM)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="strength must lie in"):
        make(strength=-1.0)
