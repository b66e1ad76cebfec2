"""Edge jitter: hardening, blurring, and the kernel that does both."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from everlearn import Canvas, Stream
from everlearn.methods.dcl.edges import (
    blur,
    change_edges,
    change_edges_plain,
    change_hard_edges,
    find_background,
    harden,
    harden_shapes,
    shrink,
)
from everlearn.render.affine import invert, transform_images

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


def test_a_shape_shrinks_by_the_pixels_beside_its_background() -> None:
    background = torch.tensor([0.2, 0.4]).reshape(2, 1, 1)
    image = background.repeat(1, 5, 6)
    image[0, 1:4, 1:] = 0.2  # in this channel the shape has the background's value
    image[1, 1:4, 1:] = 1.0
    shrunk = shrink(image[None], background)[0]
    expected = background.repeat(1, 5, 6)
    expected[1, 2, 2:] = (
        1.0  # beyond the border nothing is known, so the shape does not shrink there
    )
    assert torch.equal(shrunk, expected)


def test_a_lower_threshold_makes_bright_and_dark_shapes_larger() -> None:
    row = torch.tensor([0.5, 0.5, 0.8, 1.0, 1.0, 0.1, 0.0, 0.0, 0.2, 0.5, 0.5])
    image = row.expand(2, 1, 3, 11)  # background, bright part, dark part, background
    threshold = torch.tensor([0.5, 0.7]).reshape(2, 1, 1, 1)
    low, high = harden_shapes(image, threshold, torch.full((1, 1, 1), 0.5))[:, 0, 1]
    # 0.8 is 0.6 of the way from the background to 1, and 0.2 is 0.6 of the way to 0.
    assert torch.equal(low, torch.tensor([0.5, 0.5, 1, 1, 1, 0, 0, 0, 0, 0.5, 0.5]))
    assert torch.equal(high, torch.tensor([0.5, 0.5, 0.5, 1, 1, 0, 0, 0, 0.5, 0.5, 0.5]))


def test_images_with_hard_edges_become_those_with_soft_edges() -> None:
    hard, soft, background = hard_and_soft(200)
    halfway = change_hard_edges(hard, torch.tensor([0.0, 0.5]).expand(200, 2), background)
    before, after = ((images - soft).abs().mean() for images in (hard, halfway))
    assert after < 0.8 * before
    whole = change_hard_edges(hard, torch.tensor([0.0, 1.0]).expand(200, 2), background)
    assert after < 0.8 * (whole - soft).abs().mean()


def test_replayed_exemplars_become_images_with_hard_edges() -> None:
    stream = Stream(tasks=1, canvas=Canvas(parity=True))
    batch, exemplars = stream[0].train.batch(slice(None, None, 11)), stream[0].exemplars().images
    background = find_background(stream.canvas, "cpu")
    shown = transform_images(exemplars[batch.labels], invert(batch.theta))
    scale = batch.theta[:, :, :2].double().det().sqrt()
    edges = torch.stack(((1 - 0.5 / scale).clamp(0.01), torch.zeros_like(scale)), 1).float()
    hardened = change_hard_edges(shown, edges, background)
    ratios = area(hardened, background) / area(batch.images, background)
    for part in (scale < 0.6, (scale > 0.6) & (scale < 0.8), scale > 0.8):
        assert abs(ratios[part].mean() - 1) < 0.015
    errors = [(images - batch.images).abs().mean() for images in (hardened, shown)]
    assert errors[0] < 0.85 * errors[1]


def area(images: Tensor, background: Tensor) -> Tensor:
    """The number of pixels that are not of the background."""
    return ((images - background).abs() > 0.5 / 255).float().sum((1, 2, 3))


def hard_and_soft(count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The same images with hard and with soft edges, and the background."""
    streams = [Stream(tasks=1, canvas=Canvas(parity=parity)) for parity in (True, False)]
    hard, soft = (stream[0].train.batch(slice(0, count)).images for stream in streams)
    return hard, soft, find_background(streams[0].canvas, "cpu")


def test_zeros_leave_an_image_with_hard_edges_as_it_is() -> None:
    hard, _, background = hard_and_soft(8)
    assert torch.equal(change_hard_edges(hard, torch.zeros(8, 2), background), hard)


@pytest.mark.gpu
def test_hard_edges_change_on_a_gpu_as_on_a_cpu() -> None:
    hard, _, background = hard_and_soft(64)
    edges = random_case((64, 1, 1, 1))[1]
    expected = change_hard_edges(hard, edges, background)
    found = change_hard_edges(hard.cuda(), edges.cuda(), background.cuda()).cpu()
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


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
