"""Edge jitter: hardening, blurring, and the kernel that does both."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from everlearn import Stream
from everlearn.methods.dcl.edges import blur, change_edges, change_edges_plain, harden

# Square and not, one and several blocks of pixels, grey and coloured, thinner than the filter.
SHAPES = [(8, 1, 64, 64), (6, 3, 33, 17), (5, 1, 1, 3), (7, 2, 16, 16)]


def random_case(shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Images of few levels, and edges: none, hardened, blurred, and hardened then blurred."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 6, shape, generator=generator) / 5
    edges = 0.25 + 0.5 * torch.rand((shape[0], 2), generator=generator)
    places = torch.arange(shape[0])
    edges[:, 0] *= places % 2 == 1
    edges[:, 1] *= places % 4 >= 2
    return images, edges


def test_hardened_images_have_the_colours_of_the_canvas_but_in_thin_parts() -> None:
    images = Stream(tasks=1)[0].train.batch(slice(0, 100)).images
    hard = harden(images, torch.full((100, 1, 1, 1), 0.5))
    levels = torch.tensor([0, 169, 255]) / 255
    mixed, still_mixed = ((part[..., None] != levels).all(-1).sum() for part in (images, hard))
    # Where a shape is thin, no pixel around is covered by one colour.
    assert still_mixed < 0.15 * mixed


def test_a_higher_threshold_hardens_an_edge_towards_the_dark_side() -> None:
    image = torch.tensor([0.2, 0.2, 0.6, 1.0, 1.0]).expand(2, 1, 3, 5)
    hard = harden(image, torch.tensor([0.4, 0.6]).reshape(2, 1, 1, 1))
    assert torch.equal(hard[0, 0, 0], torch.tensor([0.2, 0.2, 1, 1, 1]))
    assert torch.equal(hard[1, 0, 0], torch.tensor([0.2, 0.2, 0.2, 1, 1]))


def test_blur_is_the_binomial_filter() -> None:
    image = torch.zeros(1, 1, 5, 5)
    image[..., 2, 2] = 16
    binomial = torch.tensor([0.0, 1, 2, 1, 0])
    torch.testing.assert_close(blur(image)[0, 0], torch.outer(binomial, binomial))
    torch.testing.assert_close(blur(torch.ones(1, 1, 3, 4)), torch.ones(1, 1, 3, 4))


def test_zeros_leave_an_image_as_it_is() -> None:
    images, edges = random_case((8, 1, 16, 16))
    changed = change_edges(images, edges)
    same = (changed == images).flatten(1).all(1)
    assert torch.equal(same, (edges == 0).all(1))


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_the_kernel_changes_images_as_torch_does(shape: tuple[int, ...]) -> None:
    images, edges = random_case(shape)
    expected = change_edges_plain(images, edges)
    found = change_edges(images.cuda(), edges.cuda()).cpu()
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    is_exact = edges[:, 1] == 0  # without blur nothing is rounded
    assert torch.equal(found[is_exact], expected[is_exact])


@pytest.mark.gpu
def test_the_kernel_runs_in_a_captured_graph() -> None:
    images, edges = (part.cuda() for part in random_case(SHAPES[0]))
    expected = change_edges(images, edges)  # compiles the kernel: a capture cannot
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = change_edges(images, edges)
    images.copy_(images.flip(-1))
    graph.replay()
    torch.testing.assert_close(found.flip(-1), expected, rtol=1e-6, atol=1e-6)
