"""Features and logits in one pass equal those of two passes."""

from __future__ import annotations

from typing import Any

import torch

from everlearn.nets import build_net
from everlearn.nets.features import FeaturesAndLogits


def test_one_pass_gives_the_features_and_logits_of_two() -> None:
    net: Any = build_net("convnet-pooled", 1, 5, 8, seed=0).eval()
    images = torch.rand(3, 1, 8, 8)
    assert torch.equal(
        FeaturesAndLogits(net)(images), torch.cat([net.features(images), net(images)], 1)
    )
