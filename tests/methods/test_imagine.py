"""What VASE imagines: latents that only apply elsewhere vary, the others stay; drawn here or as there."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from everlearn.methods import build
from everlearn.methods.vase.imagine import explore, imagine, varied

from .conftest import IMAGES

BATCH = IMAGES[0].train.batch(slice(0, 6)).images
NOISE = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def learner() -> Any:
    """Of three known environments the last is that of all images; two latents do not apply there."""
    found: Any = build("vase", IMAGES, "cpu", net="vase-flat", z=4, most=5, guess="classifier")
    found.world.count.fill_(3)
    found.world.kl.fill_(1.0)
    found.world.masks[2] = torch.tensor([1.0, 0.0, 0.0, 1.0])
    found.world.masks[0] = torch.tensor([1.0, 0.0, 1.0, 1.0])
    with torch.no_grad():
        found.net.place.bias[2] = 99.0
    return found


def test_latents_vary_that_are_used_elsewhere_and_are_masked_here(learner: Any) -> None:
    assert varied(learner, torch.tensor(2)).tolist() == [False, True, True, False]
    learner.world.kl[1, 1] = 0.0  # and in the first it is masked
    assert varied(learner, torch.tensor(2)).tolist() == [False, False, True, False]
    assert not varied(learner, torch.tensor(1)).any()


def test_environments_that_are_not_known_say_nothing(learner: Any) -> None:
    learner.world.kl[:2] = 0.0
    assert not varied(learner, torch.tensor(2)).any()


def test_what_varies_is_drawn_from_the_prior_and_the_rest_is_the_code(learner: Any) -> None:
    mean, deviation = learner.codes(BATCH)
    found = explore(learner, BATCH, NOISE)
    assert torch.equal(found[:, 1:3], NOISE[1][:, 1:3])
    torch.testing.assert_close(found[:, [0, 3]], (mean + deviation * NOISE[0])[:, [0, 3]])


def test_it_is_drawn_here_or_where_most_of_it_is_used(learner: Any) -> None:
    """The second environment uses both latents that vary, the first one of them."""
    z = explore(learner, BATCH, NOISE)
    for past, place in [(False, 2), (True, 1)]:
        expected = learner.draw(z, torch.tensor(place)).sigmoid()
        torch.testing.assert_close(imagine(learner, BATCH, NOISE, past), expected)


def test_where_nothing_varies_it_is_drawn_here(learner: Any) -> None:
    learner.world.masks.fill_(1.0)
    expected = learner.draw(explore(learner, BATCH, NOISE), torch.tensor(2)).sigmoid()
    torch.testing.assert_close(imagine(learner, BATCH, NOISE, past=True), expected)
