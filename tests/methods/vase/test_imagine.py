"""Imagination: free latents are drawn from the prior, the others stay; decoded here or in the past."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from everlearn.methods import build
from everlearn.methods.vase.imagine import explore, free_latents, imagine

from ..conftest import IMAGES

BATCH = IMAGES[0].train.batch(slice(0, 6)).images
NOISE = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def learner() -> Any:
    """Return a learner of three environments; all images are of the last, which masks two latents."""
    found: Any = build(
        "vase",
        IMAGES,
        "cpu",
        net="vase-flat",
        latent_dim=4,
        max_environments=5,
        assign_by="classifier",
    )
    found.environments.state.count.fill_(3)
    found.environments.state.kl.fill_(1.0)
    found.environments.state.masks[2] = torch.tensor([1.0, 0.0, 0.0, 1.0])
    found.environments.state.masks[0] = torch.tensor([1.0, 0.0, 1.0, 1.0])
    with torch.no_grad():
        found.net.environment_head.bias[2] = 99.0
    return found


def test_free_latents_are_used_elsewhere_and_masked_here(learner: Any) -> None:
    assert free_latents(learner, torch.tensor(2)).tolist() == [False, True, True, False]
    learner.environments.state.kl[1, 1] = 0.0  # the first environment masks it
    assert free_latents(learner, torch.tensor(2)).tolist() == [False, False, True, False]
    assert not free_latents(learner, torch.tensor(1)).any()


def test_unknown_environments_free_no_latents(learner: Any) -> None:
    learner.environments.state.kl[:2] = 0.0
    assert not free_latents(learner, torch.tensor(2)).any()


def test_free_latents_are_noise_and_the_others_are_the_code(learner: Any) -> None:
    mean, deviation = learner.codes(BATCH)
    found = explore(learner, BATCH, NOISE)
    assert torch.equal(found[:, 1:3], NOISE[1][:, 1:3])
    torch.testing.assert_close(found[:, [0, 3]], (mean + deviation * NOISE[0])[:, [0, 3]])


def test_images_are_decoded_here_or_where_most_free_latents_are_used(learner: Any) -> None:
    """The second environment uses both free latents, the first one of them."""
    z = explore(learner, BATCH, NOISE)
    for past, environment in [(False, 2), (True, 1)]:
        expected = learner.decode(z, torch.tensor(environment)).sigmoid()
        torch.testing.assert_close(imagine(learner, BATCH, NOISE, past), expected)


def test_without_free_latents_images_are_decoded_here(learner: Any) -> None:
    learner.environments.state.masks.fill_(1.0)
    expected = learner.decode(explore(learner, BATCH, NOISE), torch.tensor(2)).sigmoid()
    torch.testing.assert_close(imagine(learner, BATCH, NOISE, past=True), expected)
